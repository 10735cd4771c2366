//! Tests of the forms that queue an alert, and of the links to them.

use serde_json::json;

use crate::pages::submit::{Again, Submit, again, submit};
use crate::ports::Cooldown;
use crate::rights::Access;
use crate::shell::viewer::Viewer;
use crate::testing::data::{elsewhere, ended, report, running, story};
use crate::testing::markup::{check, texts};
use tarsy_core::alert::Severity;
use tarsy_core::execution::entry::StopReason;
use tarsy_engine::ports::RunStatus;
use tarsy_reports::{AlertReport, DispositionKind};

use super::{shown, shown_to};

fn allowed() -> Viewer {
    Viewer {
        access: Access {
            may_rerun: true,
            may_submit: true,
            ..Access::default()
        },
        ..Viewer::default()
    }
}

#[test]
fn the_form_of_an_alert_keeps_what_was_typed_and_says_why_it_was_not_sent() {
    let chains = ["alone".to_owned(), "team".to_owned()];
    let request = report().alert_id;
    let empty = Submit {
        request,
        alert: "",
        priority: None,
        chain: None,
        cooldown: Cooldown::Counts,
        chains: &[],
        problem: None,
    };
    let refused = Submit {
        alert: "\n disk <94 %> full\n",
        priority: Some(Severity::High),
        chain: Some("team"),
        cooldown: Cooldown::Ignored,
        chains: &chains,
        problem: Some("there is no chain"),
        ..empty
    };
    let pages = [empty, refused].map(|form| submit(&form).into_string());
    for page in &pages {
        assert_eq!(check(page).err(), None);
    }
    insta::assert_snapshot!("submit", pages.join("\n\n").replace("><", ">\n<"));
}

#[test]
fn the_form_of_a_rerun_has_the_stored_alert_and_a_way_to_change_it() {
    let report = AlertReport {
        headers: json!({"Tarsy-Chain": "team"}),
        ..report()
    };
    let chains = ["alone".to_owned(), "team".to_owned()];
    let form = Again {
        request: report.alert_id,
        report: &report,
        chain: None,
        chains: &chains,
        problem: None,
    };
    let page = again(&form, &allowed()).into_string();
    assert_eq!(check(&page).err(), None);
    insta::assert_snapshot!("rerun", page.replace("><", ">\n<"));
    let question = AlertReport {
        parent_id: Some(report.alert_id),
        ..report.clone()
    };
    let only_reruns = Viewer {
        access: Access {
            may_submit: false,
            ..allowed().access
        },
        ..allowed()
    };
    for (report, viewer) in [(&question, &allowed()), (&report, &only_reruns)] {
        let page = again(&Again { report, ..form }, viewer).into_string();
        assert!(!page.contains("/submit?from="), "{page}");
    }
}

#[test]
fn links_to_the_forms_are_rendered_for_those_who_may_and_for_what_is_over() {
    let failed = ended(
        RunStatus::Failed,
        StopReason::Error,
        "no provider is registered",
    );
    for (report, has_link) in [
        (report(), true),
        (failed.clone(), true),
        (elsewhere(DispositionKind::Ended), true),
        (running(), false),
        (elsewhere(DispositionKind::Joined), false),
        (elsewhere(DispositionKind::Dead), false),
        (elsewhere(DispositionKind::Undecided), false),
    ] {
        let events = if report.session.is_some() {
            &story()[..5]
        } else {
            &[]
        };
        let page = shown_to(&report, events, &allowed()).whole();
        assert_eq!(check(&page).err(), None);
        assert_eq!(
            page.contains("/rerun\">Rerun</a>"),
            has_link,
            "{}",
            texts(&page)
        );
        assert!(page.contains("<a href=\"/submit\">Submit</a>"), "{page}");
        let without = shown(&report, events).whole();
        assert!(
            !without.contains("/rerun\"") && !without.contains("\"/submit\""),
            "{without}"
        );
    }
    assert!(
        shown_to(&failed, &story()[..5], &allowed())
            .first
            .contains("Investigate it again")
    );
}
