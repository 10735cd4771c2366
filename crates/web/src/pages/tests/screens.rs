//! Tests of whole pages in their states.

use crate::assets::{ICON, SCRIPT, STYLE};
use crate::pages::list::{Alike, List, Query, System, list};
use crate::ports::Unavailable;
use crate::rights::Access;
use crate::shell::viewer::{Theme, Viewer};
use crate::testing::data::{at, elsewhere, ended, entry, id, report, running, story};
use crate::testing::markup::{check, texts};
use tarsy_core::alert::Severity;
use tarsy_core::chain::RunStatus;
use tarsy_core::execution::entry::{Mark, StopReason};
use tarsy_core::ids::SessionId;
use tarsy_core::review::{Review, Verdict};
use tarsy_core::summary::{Sure, executive_summary};
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::DeadReason;
use tarsy_reports::{
    AlertReport, DispositionKind, Facets, SeenBefore, SeenSession, SessionEntry, StatusCounts,
};

use super::{shown, shown_to};

#[test]
fn a_session_has_its_answer_before_its_steps() {
    let whole = shown(&report(), &story()).whole();
    assert_eq!(check(&whole).err(), None);
    // The names of the files have hashes of their contents.
    let files = [
        (STYLE.path(), "style.css"),
        (SCRIPT.path(), "script.js"),
        (ICON.path(), "icon.svg"),
    ];
    let whole = files
        .iter()
        .fold(whole, |page, (path, name)| page.replace(path, name));
    insta::assert_snapshot!("session", whole.replace("><", ">\n<"));
}

#[test]
fn a_session_whose_alert_was_seen_before_leads_to_the_earlier_ones() {
    let earlier = SeenSession {
        session_id: id("5e19c7f0"),
        finished_at: at(-90_000),
        chain: "kubernetes".to_owned(),
        title: "Pod restarts".to_owned(),
        severity: Some(Severity::High),
        mark: Some(Mark::NoSource),
        sure: Some(Sure::Likely),
        cause: Some("<script>alert(1)</script> the limit\u{202e}".to_owned()),
        next: None,
        verdict: None,
    };
    let nameless = SeenSession {
        session_id: id("77d0b3aa"),
        mark: None,
        sure: None,
        cause: None,
        ..earlier.clone()
    };
    let seen = SeenBefore {
        times: 4,
        days: 30,
        sessions: vec![earlier, nameless],
    };
    let report = AlertReport {
        seen_before: Some(seen),
        ..report()
    };
    let whole = shown(&report, &story()).whole();
    assert_eq!(check(&whole).err(), None);
    for part in [
        "<h2 id=\"h-seen\">Seen before</h2><p>4 times in the 30 days before.</p>",
        ", likely, unproven<p>&lt;script&gt;alert(1)&lt;/script&gt; the limit</p>",
        "<p>It names no cause.</p>",
    ] {
        assert!(whole.contains(part), "{part}");
    }
    let link = format!("<a href=\"/sessions/{}\">5e19c7f0</a>", id("5e19c7f0"));
    assert!(whole.contains(&link), "{link}");
}

#[test]
fn a_session_without_an_answer_has_its_reason_and_what_to_do() {
    let dead = AlertReport {
        dead_reason: Some(DeadReason::UnknownChain),
        dead_detail: Some("the header Tarsy-Chain names \"x\"".to_owned()),
        ..elsewhere(DispositionKind::Dead)
    };
    let joined = AlertReport {
        joined_session_id: Some(id("5e19c7f0")),
        ..elsewhere(DispositionKind::Joined)
    };
    let limited = AlertReport {
        limited_by: Some("storage".to_owned()),
        ..joined.clone()
    };
    let why = "route storage opens at most 2 investigations an hour";
    let list = ended(RunStatus::Limited, StopReason::Error, why);
    let states = [
        ("limited", limited),
        (
            "list of limited alerts",
            AlertReport {
                limited_by: Some("storage".to_owned()),
                ..list
            },
        ),
        ("running", running()),
        (
            "failed",
            ended(
                RunStatus::Failed,
                StopReason::Error,
                "no provider is registered",
            ),
        ),
        (
            "timed out",
            ended(
                RunStatus::TimedOut,
                StopReason::Deadline,
                "past its deadline",
            ),
        ),
        (
            "cancelled",
            ended(
                RunStatus::Cancelled,
                StopReason::Cancelled,
                "asked for by lea",
            ),
        ),
        ("joined", joined),
        ("dead letter", dead),
        ("in the queue", elsewhere(DispositionKind::Undecided)),
        ("ended", elsewhere(DispositionKind::Ended)),
    ];
    let mut said = Vec::new();
    for (name, report) in states {
        let events = if report.session.is_some() {
            &story()[..5]
        } else {
            &[]
        };
        let page = shown(&report, events);
        assert_eq!(check(&page.whole()).err(), None, "{name}");
        let answer = page.first.split("id=\"head\"").nth(1).unwrap_or_default();
        said.push(format!("{name}: {}", texts(answer)));
    }
    insta::assert_snapshot!("states", said.join("\n\n"));
}

#[test]
fn forms_are_rendered_for_those_who_may_send_them() {
    let allowed = Viewer {
        access: Access {
            may_ask: true,
            may_cancel: true,
            ..Access::default()
        },
        ..Viewer::default()
    };
    let form = "action=\"/sessions/0198b2c4-5d6e-7f80-9a1b-2c3da41c9e02/questions\"";
    assert!(shown_to(&report(), &story(), &allowed).first.contains(form));
    let without = shown(&report(), &story()).first;
    assert!(
        !without.contains("<form class=\"ask-form\"") && without.contains("tarsy ask a41c9e02")
    );
    let cancel = "/cancel\">Cancel";
    assert!(
        shown_to(&running(), &story()[..5], &allowed)
            .first
            .contains(cancel)
    );
    assert!(!shown(&running(), &story()[..5]).first.contains(cancel));
}

#[test]
fn a_theme_is_rendered_by_the_server() {
    let dark = Viewer {
        theme: Theme::Dark,
        path: "/queue?a=1".to_owned(),
        ..Viewer::default()
    };
    let page = shown_to(&report(), &story(), &dark).first;
    assert!(
        page.contains("<html lang=\"en\" class=\"dark\">") && page.contains("content=\"dark\""),
        "{page}"
    );
    let page = shown_to(&report(), &story(), &dark).second;
    assert!(
        page.contains("/theme/light?back=%2Fqueue%3Fa%3D1"),
        "{page}"
    );
}

fn listed(entries: &[SessionEntry], query: &Query, system: &System) -> String {
    listed_with(entries, &[], query, system)
}

fn listed_with(
    entries: &[SessionEntry],
    asked: &[SessionEntry],
    query: &Query,
    system: &System,
) -> String {
    let counts = StatusCounts {
        running: 1,
        completed: 14,
        failed: 2,
        ..StatusCounts::default()
    };
    let next = Some(id("00000001").to_string());
    let facets = Facets {
        chains: vec!["default".to_owned(), "team".to_owned()],
        sources: vec!["grafana".to_owned()],
    };
    let list_of = List {
        entries,
        asked,
        counts: Some(counts),
        query,
        system,
        facets: &facets,
        faults: &[],
        hidden: &[],
        next,
        now: at(0),
    };
    list(&list_of).into_string()
}

#[test]
fn a_second_look_stands_on_the_page_as_text() {
    for verdict in Verdict::ALL {
        let mut checked = report();
        let session = checked.session.as_mut().unwrap();
        session.review = Some(Review {
            verdict,
            model: "<img src=x>".to_owned(),
        });
        let analysis = session.final_analysis.get_or_insert_default();
        analysis.push_str("\n\n## Second look\n\n> Why: <script>alert(1)</script> [event 9]\n");
        let page = shown(&checked, &story()).whole();
        let sentence = session_sentence(&checked);
        let start = sentence.split(" by ").next().unwrap();
        assert!(page.contains(start), "no {start} in {page}");
        assert!(
            !page.contains("<img") && !page.contains("<script>alert"),
            "{page}"
        );
        assert_eq!(check(&page).err(), None);
    }
}

fn session_sentence(report: &AlertReport) -> String {
    let session = report.session.as_ref().unwrap();
    session.review.as_ref().unwrap().sentence()
}

#[test]
fn each_mark_stands_on_the_card_and_in_the_list_before_the_cause() {
    for mark in Mark::ALL {
        let mut marked = report();
        marked.session.as_mut().unwrap().mark = Some(mark);
        let page = shown(&marked, &story()).whole();
        let word = mark.word();
        assert!(
            page.contains(mark.sentence()) && page.contains(&format!(">{word}<")),
            "{page}"
        );
        let mut line = entry("00000010", "TargetDown shop/checkout", RunStatus::Completed);
        line.line.mark = Some(mark);
        let system = System {
            waiting: None,
            workers: 1,
            slots: 1,
            busy: 0,
            dead_letters: None,
        };
        let list = listed(&[line], &Query::default(), &system);
        assert_eq!((check(&page).err(), check(&list).err()), (None, None));
        assert!(
            list.to_lowercase().contains(&format!(">{word}: <")),
            "{list}"
        );
    }
}

#[test]
fn the_card_has_every_field_of_the_form_and_the_rest_of_the_analysis_once() {
    let analysis = "Cause: the disk [10]\nSure: likely, one fact fits\nNow: over since 13:40\nEvidence:\n- full [10]\n- slow \
                    [11]\nDo next: `df -h /data`\nNot seen: who wrote it\n\nIt began at 13:30.";
    let mut with_fields = report();
    let session = with_fields.session.as_mut().unwrap();
    session.final_analysis = Some(analysis.to_owned());
    session.executive_summary = executive_summary(analysis);
    let page = shown(&with_fields, &story()).first;
    for text in [
        "The disk",
        "likely, one fact fits",
        "over since 13:40",
        "who wrote it",
        "df -h /data",
        "It began at 13:30.",
    ] {
        assert_eq!(page.matches(text).count(), 1, "{text}: {page}");
    }
    let labels = ["Cause", "Sure", "Now", "Evidence", "Do next", "Not seen"];
    let places: Vec<Option<usize>> = labels
        .iter()
        .map(|label| page.find(&format!("<h2>{label}</h2>")))
        .collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?}"
    );
}

#[test]
fn alike_sessions_are_one_row_and_running_ones_come_first() {
    let mut entries = vec![entry(
        "00000010",
        "TargetDown shop/checkout",
        RunStatus::Completed,
    )];
    for number in 0..6 {
        let status = if number < 2 {
            RunStatus::Failed
        } else {
            RunStatus::Completed
        };
        entries.push(entry(
            &format!("0000002{number}"),
            &format!("KubeJobFailed batch/report-{number}"),
            status,
        ));
    }
    entries.push(entry("00000030", "Running now", RunStatus::Running));
    let system = System {
        waiting: Some(3),
        workers: 2,
        slots: 8,
        busy: 1,
        dead_letters: Some(1),
    };
    let query = Query::parse(Some("since=24h"));
    let page = listed(&entries, &query, &system);
    assert_eq!(check(&page).err(), None);
    insta::assert_snapshot!("list", page.replace("><", ">\n<"));
    let each = listed(
        &entries,
        &Query {
            alike: Alike::Each,
            ..query
        },
        &system,
    );
    assert_eq!(
        (
            page.matches("<li class=\"sr").count(),
            each.matches("<li class=\"sr").count()
        ),
        (3, 8)
    );
}

#[test]
fn an_address_opens_one_of_several_folded_rows_at_its_place() {
    let storm = |name: &str, first: u32| {
        let mut entries = Vec::new();
        for number in 0..5 {
            entries.push(entry(
                &format!("{:08}", first - number),
                &format!("{name} batch/report-{number}"),
                RunStatus::Completed,
            ));
        }
        entries
    };
    let entries = [storm("KubeJobFailed", 40), storm("TargetDown", 20)].concat();
    let query = |alike: &str| {
        Query::parse(Some(&format!(
            "status=completed&since=7d&before={}&alike={alike}",
            id("00000099")
        )))
    };
    let first = id("00000036");
    let second = id("00000016");
    let rows = |page: &str| page.matches("<li class=\"sr").count();
    let folded = listed(&entries, &query(""), &System::default());
    assert_eq!(rows(&folded), 2);
    let before = id("00000099");
    let link = |alike: &str, place: SessionId| {
        format!(
            "href=\"/?status=completed&amp;since=7d{alike}&amp;before={before}#g-{}\"",
            place.short()
        )
    };
    assert!(
        folded.contains(&link(&format!("&amp;alike={first}"), first)),
        "{folded}"
    );
    // The newest session of a row, for the key `o`.
    assert!(
        folded.contains(&format!("data-open=\"/sessions/{}\"", id("00000040"))),
        "{folded}"
    );
    let one = listed(&entries, &query(&first.to_string()), &System::default());
    assert_eq!((check(&one).err(), rows(&one)), (None, 1 + 5 + 1));
    assert!(
        one.contains(&link("", first)) && one.contains("5 alike, show as one row"),
        "{one}"
    );
    assert!(
        one.contains(&link(&format!("&amp;alike={first}%2C{second}"), second)),
        "{one}"
    );
    // A link stays good when a newer alike session has begun, or an older one is on the next page.
    for member in ["00000040", "00000038"] {
        assert_eq!(
            rows(&listed(
                &entries,
                &query(&id(member).to_string()),
                &System::default()
            )),
            7
        );
    }
    for unknown in ["x", "1,2", "00000000-0000-7000-8000-000000000000"] {
        assert_eq!(
            rows(&listed(&entries, &query(unknown), &System::default())),
            2,
            "{unknown}"
        );
    }
}

#[test]
fn an_empty_list_says_what_to_do() {
    let system = System::default();
    let none = texts(&listed(&[], &Query::parse(Some("since=24h")), &system));
    assert!(
        none.contains("tarsy submit") && none.contains("Show the last 7 days or all times"),
        "{none}"
    );
    let words = Query::parse(Some("since=24h&q=payments+ledger"));
    let filtered = listed(&[], &words, &system);
    let said = texts(&filtered);
    assert!(
        said.contains("is in no alert and no analysis of the last 24 hours"),
        "{said}"
    );
    assert!(
        said.contains("An id is found by six or more characters"),
        "{said}"
    );
    for wider in [
        "/?q=payments+ledger&amp;since=7d",
        "/?q=payments+ledger&amp;since=",
    ] {
        assert!(
            filtered.contains(&format!("href=\"{wider}\"")),
            "{wider}: {filtered}"
        );
    }
    let everywhere = listed(
        &[],
        &Query::parse(Some("since=&q=payments+ledger")),
        &system,
    );
    assert!(
        !everywhere.contains("since=7d"),
        "a wider search than all times: {everywhere}"
    );
}

#[test]
fn each_value_of_the_filter_is_shown_and_removed_by_itself() {
    let query = Query::parse(Some(
        "status=failed&severity=high,low&chain=team&label=pod%3Dx&since=2026-11-20&until=2026-11-21T10:00&other=1",
    ));
    let page = listed(&[], &query, &System::default());
    assert_eq!(check(&page).err(), None);
    let chips = page
        .split("class=\"chips\"")
        .nth(1)
        .unwrap()
        .split("</ul>")
        .next()
        .unwrap();
    let links: Vec<&str> = chips
        .split("href=\"")
        .skip(1)
        .filter_map(|link| link.split('"').next())
        .collect();
    let rest = "chain=team&amp;label=pod%3Dx&amp;since=2026-11-20&amp;until=2026-11-21T10%3A00";
    assert_eq!(links.len(), 6, "{chips}");
    assert_eq!(
        links[0],
        format!("/?status=failed&amp;severity=low&amp;{rest}")
    );
    assert_eq!(
        links[5],
        "/?status=failed&amp;severity=high&amp;severity=low&amp;chain=team&amp;label=pod%3Dx&amp;since=2026-11-20"
    );
    // The form has what is set, and keeps what it does not show.
    for field in [
        "value=\"high\" checked",
        "value=\"critical\">",
        "<option value=\"team\" selected>",
        "<option value=\"default\">",
        "name=\"from\" value=\"2026-11-20\"",
        "name=\"until\" value=\"2026-11-21T10:00\"",
        "type=\"hidden\" name=\"status\" value=\"failed\"",
        "type=\"hidden\" name=\"label\" value=\"pod=x\"",
    ] {
        assert!(page.contains(field), "{field}: {page}");
    }
    assert!(texts(&page).contains("No session of this period has all of these filters."));
    assert_eq!(
        Query::parse(Some("since=24h&from=2026-11-20T00:00")).since(),
        "2026-11-20T00:00"
    );
    assert_eq!(
        (
            Query::parse(Some("since=24h&from=")).since(),
            Query::parse(Some("until=1d")).since()
        ),
        ("24h", "")
    );
}

#[test]
fn questions_stand_below_their_investigation_and_none_looks_like_a_failed_alert() {
    let about = |last: &str, parent: &str, title: &str, status: RunStatus| {
        let mut question = entry(last, title, status);
        (question.line.parent_id, question.line.severity) =
            (Some(id(parent)), Some(Severity::Critical));
        question.questions = 0;
        question
    };
    let mut investigation = entry("00000010", "TargetDown shop/checkout", RunStatus::Completed);
    investigation.questions = 2;
    let asked = [
        about("00000012", "00000010", "And now?", RunStatus::Failed),
        about("00000011", "00000010", "Since when?", RunStatus::Completed),
    ];
    let page = listed_with(
        &[investigation],
        &asked,
        &Query::default(),
        &System::default(),
    );
    assert_eq!(
        (check(&page).err(), page.matches("<li class=\"sr").count()),
        (None, 1)
    );
    let below = page
        .split("<details class=\"qs\">")
        .nth(1)
        .unwrap()
        .split("</details>")
        .next()
        .unwrap();
    assert_eq!(
        texts(below).trim(),
        "2 questions ✓ answered Since when? – no answer And now?"
    );
    assert!(
        below.contains(&format!("href=\"/sessions/{}\"", id("00000011"))),
        "{below}"
    );
    // A search finds them as rows of their own.
    let found = listed(&asked, &Query::parse(Some("q=now")), &System::default());
    let row = found
        .split("<ol class=\"srs\">")
        .nth(1)
        .unwrap()
        .split("</li>")
        .next()
        .unwrap();
    assert!(
        texts(row).starts_with("– no answer question about 00000010: And now?"),
        "{}",
        texts(row)
    );
    assert!(
        !row.contains("critical") && !row.contains("class=\"err\"") && !row.contains("st failed"),
        "{row}"
    );
}

#[test]
fn a_part_of_the_queue_that_does_not_answer_says_so() {
    use crate::pages::queue::{QueuePage, queue};
    use tarsy_reports::{Check, Verdict};
    let page = queue(&QueuePage {
        lanes: Err(Unavailable("NATS does not answer".to_owned())),
        workers: Vec::new(),
        dead: Err(Unavailable("the database does not answer".to_owned())),
        checks: vec![
            Check::new("postgres", Verdict::Fail, "schema <b>1</b> (behind)").fix("tarsy migrate"),
        ],
    });
    let page = page.into_string();
    assert_eq!(check(&page).err(), None);
    let said = texts(&page);
    assert!(
        said.contains("NATS does not answer") && said.contains("the database does not answer"),
        "{said}"
    );
    assert!(said.contains("tarsy worker"), "{said}");
    assert!(
        said.contains("schema <b>1</b> (behind)") && said.contains("tarsy migrate"),
        "{said}"
    );
}

#[test]
fn an_event_by_itself_has_its_moment_and_no_time_since_a_start_that_is_unknown() {
    use crate::pages::event::event;
    let story = story();
    let result = story
        .iter()
        .find(|event| event.event_type == EventType::ToolResult)
        .unwrap();
    let said = texts(&event(result.session_id, result).into_string());
    assert!(
        said.contains("21 Nov 14:02") && said.contains("Answered") && !said.contains("at +"),
        "{said}"
    );
}
