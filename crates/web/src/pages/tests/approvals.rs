//! Tests of the pages of approvals: what a person sees, and that no text of theirs or of a model becomes markup.

use serde_json::json;

use super::{shown, shown_to};
use crate::decisions::refusal;
use crate::pages::approvals::{
    Approvals, Form, Offer, Outcome, Request, approvals, of_session, request,
};
use crate::ports::{NoRecord, Notice};
use crate::shell::viewer::Viewer;
use crate::shell::{Frame, NavEntry, page};
use crate::testing::approvals::{detail, freeze, row, vote};
use crate::testing::data::{at, id, report, running, story};
use crate::testing::markup::{check, texts};
use tarsy_core::approvals::Refusal;
use tarsy_reports::{ApprovalDetail, ApprovalRow, OtherRequest, RequestState};

const HOSTILE: &str = "</pre><script>alert(1)</script>\u{202e}gnp.\u{1b}[31m\u{200b}<img src=x>";

fn form() -> Form<'static> {
    Form {
        nonce: id("00000001"),
        comment: "",
        approval: Offer::Approval,
    }
}

fn page_of(detail: &ApprovalDetail, form: Option<Form<'_>>, outcome: Outcome<'_>) -> String {
    let shown = request(&Request {
        detail,
        form,
        outcome,
        now: at(60),
    });
    let shown = shown.into_string();
    assert_eq!(check(&shown).err(), None, "{shown}");
    shown
}

/// The place of a text in a page.
fn place(page: &str, text: &str) -> usize {
    page.find(text)
        .unwrap_or_else(|| panic!("no {text:?} in {page}"))
}

#[test]
fn a_request_is_shown_in_the_order_in_which_a_person_judges_it() {
    let page = page_of(&detail(), Some(form()), Outcome::None);
    let order = [
        "h-al", "h-ca", "h-ar", "h-or", "h-ev", "h-wh", "h-ot", "h-vo", "h-de", "<form",
    ];
    let places: Vec<usize> = order.iter().map(|mark| place(&page, mark)).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn the_form_names_the_call_and_the_update_that_the_page_shows() {
    let detail = detail();
    let page = page_of(&detail, Some(form()), Outcome::None);
    for field in [
        format!("name=\"call\" value=\"{}\"", detail.row.call_sha256),
        format!("name=\"seen_updates\" value=\"{}\"", detail.row.updates),
        format!("name=\"nonce\" value=\"{}\"", id("00000001")),
        format!("action=\"/approvals/{}\"", detail.row.id()),
        "method=\"post\"".to_owned(),
    ] {
        assert!(page.contains(&field), "{field}: {page}");
    }
    for choice in ["approve", "deny", "deny_session"] {
        assert_eq!(
            page.matches(&format!("name=\"decision\" value=\"{choice}\""))
                .count(),
            1
        );
    }
}

#[test]
fn only_those_who_may_have_a_form_and_only_while_it_can_count() {
    let open = detail();
    let without = page_of(&open, None, Outcome::None);
    assert!(
        !without.contains("<form") && texts(&without).contains("You may not decide"),
        "{without}"
    );
    let own = Form {
        approval: Offer::OnlyDenial,
        ..form()
    };
    let frozen = ApprovalDetail {
        freeze: Some(freeze("a release")),
        ..detail()
    };
    for page in [
        page_of(&open, Some(own), Outcome::None),
        page_of(&frozen, Some(form()), Outcome::None),
    ] {
        assert!(!page.contains("value=\"approve\""), "{page}");
        assert!(page.contains("value=\"deny\""), "{page}");
    }
    for state in [
        RequestState::Decided,
        RequestState::Expired,
        RequestState::Ended,
        RequestState::Closed,
    ] {
        let over = ApprovalDetail {
            row: ApprovalRow { state, ..row() },
            ..detail()
        };
        let page = page_of(&over, Some(form()), Outcome::None);
        assert!(!page.contains("<form"), "{state:?}: {page}");
    }
}

#[test]
fn hostile_texts_are_text_and_hidden_characters_are_marked() {
    let mut hostile = detail();
    hostile.call.arguments = json!({"pod": HOSTILE, "long": "x".repeat(9_000)}).to_string();
    hostile.call.origins = json!([{"at": "/pod"}]);
    hostile.call.why = HOSTILE.to_owned();
    hostile.row.tool = format!("k8s.{HOSTILE}");
    hostile.row.policy = HOSTILE.to_owned();
    hostile.alert.body = Some(HOSTILE.to_owned());
    hostile.alert.title = Some(HOSTILE.to_owned());
    hostile.evidence[0].content = HOSTILE.to_owned();
    hostile.votes_cast[0].comment = Some(HOSTILE.to_owned());
    hostile.votes_cast[0].person = HOSTILE.to_owned();
    hostile.freeze = Some(freeze(HOSTILE));
    let typed = Form {
        comment: HOSTILE,
        ..form()
    };
    let html = page_of(&hostile, Some(typed), Outcome::Problem(HOSTILE));
    // Arguments have it as JSON escapes control characters; the alert, the evidence, the words and the comment do not.
    assert_eq!(html.matches("<mark class=\"hc\">U+001B</mark>").count(), 5);
    assert!(html.matches("<mark class=\"hc\">U+202E</mark>").count() >= 6);
    assert!(html.contains(&"x".repeat(9_000)), "all arguments are shown");
    assert!(!html.contains("<script") && !html.contains("<img"));
    let viewer = Viewer {
        notice: Notice {
            open: Some(2),
            freeze: hostile.freeze.clone(),
        },
        ..Viewer::default()
    };
    let whole = page(
        &Frame::plain("x", NavEntry::Approvals),
        &viewer,
        &maud::html! {},
    );
    let whole = whole.into_string();
    assert_eq!(check(&whole).err(), None, "{whole}");
    assert!(whole.contains("U+202E"), "{whole}");
}

#[test]
fn what_became_of_a_form_is_said_at_the_top() {
    let mut counted = vote();
    counted.refused = None;
    let mut changed = vote();
    changed.refused = Some("changed".to_owned());
    for (outcome, expected) in [
        (
            Outcome::Vote(&counted),
            "Recorded: ana approved this call at",
        ),
        (
            Outcome::Vote(&changed),
            "Not counted: the alert has changed",
        ),
        (
            Outcome::Sent {
                again: "/approvals",
                missing: NoRecord::NotYet,
            },
            "Sent, not recorded yet",
        ),
        (
            Outcome::Sent {
                again: "/approvals",
                missing: NoRecord::Unconfirmed,
            },
            "It may have been sent, and is not recorded yet",
        ),
        (
            Outcome::Sent {
                again: "/approvals",
                missing: NoRecord::Unread,
            },
            "the database could not be read",
        ),
        (
            Outcome::Problem("Not sent: nats unavailable"),
            "Not sent: nats unavailable",
        ),
    ] {
        let page = page_of(&detail(), Some(form()), outcome);
        assert!(
            texts(&page).contains(expected),
            "{expected}: {}",
            texts(&page)
        );
        assert!(place(&page, "id=\"outcome\"") < place(&page, "h-al"));
    }
    for word in Refusal::ALL.map(Refusal::as_str) {
        assert!(refusal(word).len() > 15, "{word}");
    }
    assert_eq!(refusal("some_day"), "some day");
}

#[test]
fn a_lost_call_with_the_same_arguments_is_a_warning_above_everything() {
    let lost = |call_state: &str, is_same_call| OtherRequest {
        is_same_call,
        call_state: Some(call_state.to_owned()),
        ..detail().others[0].clone()
    };
    for (other, is_warned) in [
        (lost("lost", true), true),
        (lost("lost", false), false),
        (lost("done", true), false),
    ] {
        let detail = ApprovalDetail {
            others: vec![other],
            ..detail()
        };
        let page = page_of(&detail, Some(form()), Outcome::None);
        assert_eq!(
            page.contains("so it may have changed something: "),
            is_warned,
            "{page}"
        );
    }
}

#[test]
fn the_list_has_open_ones_first_and_a_form_for_those_who_may_freeze() {
    let open = [row()];
    let mut decided = row();
    decided.state = RequestState::Closed;
    decided.closed_as = Some("approved".to_owned());
    decided.decided_by = vec!["ana".to_owned()];
    decided.outcome_at = Some(at(30));
    let decided = [decided];
    let none = Approvals {
        open: &[],
        decided: &[],
        freeze: None,
        freeze_form: None,
        outcome: Outcome::None,
        now: at(60),
    };
    let frozen = freeze("a release");
    let all = Approvals {
        open: &open,
        decided: &decided,
        freeze: Some(&frozen),
        freeze_form: Some(id("00000001")),
        ..none.clone()
    };
    let may_freeze = Approvals {
        freeze_form: Some(id("00000001")),
        ..none.clone()
    };
    let pages = [none, all, may_freeze].map(|page| approvals(&page).into_string());
    for page in &pages {
        assert_eq!(check(page).err(), None, "{page}");
    }
    assert!(!pages[0].contains("<form"), "{}", pages[0]);
    assert!(pages[1].contains("value=\"end\""), "{}", pages[1]);
    assert!(pages[2].contains("value=\"begin\""), "{}", pages[2]);
}

#[test]
fn the_bar_and_a_session_show_what_waits() {
    let viewer = Viewer {
        notice: Notice {
            open: Some(3),
            freeze: Some(freeze("a release")),
        },
        ..Viewer::default()
    };
    let mut waiting = running();
    waiting.session.as_mut().unwrap().waits_for_approval = true;
    let page = shown_to(&waiting, &story()[..5], &viewer).whole();
    assert_eq!(check(&page).err(), None);
    let said = texts(&page);
    assert!(
        said.contains("waiting for approval") && said.contains("All changes are frozen"),
        "{said}"
    );
    assert!(page.contains("href=\"/approvals\">Approvals"), "{page}");
    let section = of_session(&[row()], at(60)).into_string();
    assert_eq!(check(&section).err(), None);
    assert!(texts(&section).contains("k8s.rollout_restart"), "{section}");
    assert_eq!(of_session(&[], at(60)).into_string(), "");
    let plain = shown(&report(), &story()).whole();
    assert!(!plain.contains("/approvals"), "{plain}");
}
