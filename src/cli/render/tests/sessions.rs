//! Tests of lists of sessions, of `sessions show` and of its report.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use uuid::Uuid;

use super::{fits, narrow, story};
use crate::cli::render::report;
use crate::cli::render::tables::{list, show};
use crate::cli::render::timeline::{Charset, Style, event_line};
use tarsy_core::alert::Severity;
use tarsy_core::execution::entry::{Mark, StopReason};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::review::{Review, Verdict};
use tarsy_core::verdicts::{PersonVerdict, Rating};
use tarsy_engine::ports::{DeadReason, RunStatus, ToolCallState};
use tarsy_store::{
    AlertReport, AlertUpdateReport, DispositionKind, ExecutionReport, JoinedAlert, ModelReport,
    QuestionReport, SessionLine, SessionReport, StageReport, Tokens, ToolCallReport,
};

pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    "2026-11-21T14:02:00Z".parse::<DateTime<Utc>>().unwrap()
        + TimeDelta::milliseconds(seconds * 1000 + 250)
}

pub(super) fn id(last: &str) -> SessionId {
    SessionId::parse(&format!("0198b2c4-5d6e-7f80-9a1b-2c3d{last}")).unwrap()
}

pub(super) fn line(last: &str, status: RunStatus, title: &str) -> SessionLine {
    SessionLine {
        session_id: id(last),
        created_at: at(0),
        finished_at: (status != RunStatus::Running).then(|| at(734)),
        status,
        stop_reason: None,
        mark: None,
        severity: Some(Severity::Critical),
        title: Some(title.to_owned()),
        alert_type: None,
        chain: "kubernetes".to_owned(),
        worker: "tarsy-worker-7c9f8d-4711".to_owned(),
        parent_id: None,
        verdict: None,
    }
}

fn lines() -> Vec<SessionLine> {
    vec![
        line(
            "a41c9e02",
            RunStatus::Running,
            "KubePodOOMKilled checkout/checkout-7d9f in production, zone b",
        ),
        line(
            "77d0b3aa",
            RunStatus::TimedOut,
            "\u{1b}[2JDisk 盘 full\non db-3\u{202e}",
        ),
        SessionLine {
            title: None,
            severity: None,
            worker: "w1".to_owned(),
            ..line("5e19c7f0", RunStatus::Completed, "")
        },
    ]
}

#[test]
fn a_list_of_sessions_fits_the_terminal() {
    insta::assert_snapshot!(
        "sessions_80",
        fits(&list::sessions(&lines(), at(95), &narrow()), 80)
    );
    let ascii = list::sessions(
        &lines(),
        at(95),
        &Style {
            charset: Charset::Ascii,
            ..narrow()
        },
    );
    assert!(ascii.iter().all(|line| line.is_ascii()), "{ascii:#?}");
    let tiny = fits(
        &list::sessions(
            &lines(),
            at(95),
            &Style {
                width: 40,
                ..narrow()
            },
        ),
        40,
    );
    insta::assert_snapshot!("sessions_40", tiny);
    let running = list::running(&lines()[0], at(95), &narrow());
    assert_eq!(
        fits(std::slice::from_ref(&running), 80),
        "14:02:00  a41c9e02  running for 1 min 35 s on tarsy-worker-7c9f8d-4711  critica…"
    );
}

#[test]
fn colours_take_no_room_in_a_table() {
    let coloured = list::sessions(
        &lines(),
        at(95),
        &Style {
            color: true,
            ..narrow()
        },
    )
    .join("\n");
    let mut plain = coloured.clone();
    for code in ["0", "2", "31", "32"] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert!(coloured.len() > plain.len());
    assert_eq!(
        plain,
        list::sessions(&lines(), at(95), &narrow()).join("\n")
    );
}

fn execution(agent: &str, status: RunStatus, error: Option<&str>) -> ExecutionReport {
    ExecutionReport {
        execution_id: ExecutionId(Uuid::from_u128(1)),
        parent_execution_id: None,
        parent_call_id: None,
        agent: agent.to_owned(),
        strategy: "native-thinking".to_owned(),
        status,
        iteration: 2,
        started_at: at(0),
        finished_at: Some(at(6)),
        analysis: (status == RunStatus::Completed)
            .then(|| format!("Cause: seen by {agent} [5]\n# <b>\n```\nopen")),
        error: error.map(ToOwned::to_owned),
        tool_calls: 2,
        usage: Tokens {
            input: 4_101,
            cached: 1_920,
            output: 612,
            thinking: 300,
        },
    }
}

fn stage(name: &str, executions: Vec<ExecutionReport>) -> StageReport {
    StageReport {
        stage_no: 1,
        name: name.to_owned(),
        status: RunStatus::Completed,
        started_at: at(0),
        finished_at: Some(at(6)),
        executions,
    }
}

fn call(tool: &str, arguments: &str, state: ToolCallState, result: Option<&str>) -> ToolCallReport {
    ToolCallReport {
        agent: "sre".to_owned(),
        at: at(1),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        state,
        duration_ms: 84,
        result: result.map(ToOwned::to_owned),
        result_bytes: result.map(|_| 2_148),
        error: result
            .is_none()
            .then(|| "no answer within 60000 ms".to_owned()),
        event: result.map(|_| 5),
    }
}

const ANALYSIS: &str = "Cause: the heap limit leaves no room [5]\nEvidence: exit 137 [5]\nDo next: raise the limit\n\n\
    ## Details\n```\nlimits: 512Mi\n```\n<img src=\"http://evil/x\"> ![pixel](http://evil/y)\n```\nunclosed\n";

fn completed() -> AlertReport {
    AlertReport {
        alert_id: id("a41c9e02"),
        received_at: at(0),
        disposition: DispositionKind::Opened,
        joined_session_id: None,
        limited_by: None,
        subject: "tarsy.alerts.critical.drill".to_owned(),
        stream_sequence: 18,
        deliveries: 2,
        headers: json!({"Tarsy-Retry-Of": id("77d0b3aa").to_string()}),
        dead_reason: None,
        dead_detail: None,
        fingerprint: Some("{}:{alertname=\"KubePodOOMKilled\"}".to_owned()),
        alert_type: Some("KubePodOOMKilled".to_owned()),
        title: Some("KubePodOOMKilled checkout/checkout-7d9f".to_owned()),
        severity: Some(Severity::Critical),
        source: Some("alertmanager".to_owned()),
        body: Some("status: firing\n```\n# not a heading of the report\n````\nmore".to_owned()),
        joined: vec![JoinedAlert {
            alert_id: id("5e19c7f0"),
            received_at: at(3),
            title: Some("the same *again*".to_owned()),
            severity: Some(Severity::High),
        }],
        parent_id: None,
        questions: Vec::new(),
        seen_before: None,
        session: Some(completed_session()),
        url: Some(format!(
            "https://tarsy.example.com/sessions/{}",
            id("a41c9e02")
        )),
    }
}

fn completed_session() -> SessionReport {
    SessionReport {
        created_at: at(0),
        deadline_at: at(2_400),
        finished_at: Some(at(6)),
        cancel_requested_at: None,
        status: RunStatus::Completed,
        waits_for_approval: false,
        stop_reason: Some(StopReason::FinalAnswer),
        mark: None,
        review: None,
        chain: "kubernetes".to_owned(),
        worker: "w2".to_owned(),
        epoch: 2,
        previous_workers: vec!["w1".to_owned()],
        last_seq: 19,
        alert_updates: Vec::new(),
        covered_updates: 0,
        executive_summary: Some(
            "Cause: the heap limit leaves no room [5]\nEvidence: exit 137 [5]\nDo next: raise the limit".to_owned(),
        ),
        final_analysis: Some(ANALYSIS.to_owned()),
        verdicts: Vec::new(),
        citations: json!([{
            "start": 7, "end": 36, "text": "the heap limit leaves no room",
            "sources": [
                {"uri": "https://docs.example.com/jvm_memory?a=1&b=2", "title": "JVM *memory*\n# now"},
                {"uri": "javascript:alert(1)", "title": "<b>"},
            ],
        }]),
        error: None,
        stages: vec![
            stage(
                "investigation",
                vec![
                    execution("sre", RunStatus::Completed, None),
                    execution("database", RunStatus::TimedOut, Some("two model calls in a row took longer than 2m00s")),
                ],
            ),
            stage("investigation synthesis", vec![execution("synthesis", RunStatus::Completed, None)]),
        ],
        models: vec![ModelReport {
            provider: "gemini".to_owned(),
            backend: "google-native".to_owned(),
            model: "gemini-2.5-flash".to_owned(),
            calls: 4,
            failed: 1,
            usage: Tokens { input: 8_202, cached: 3_840, output: 1_224, thinking: 600 },
        }],
        model_calls: vec![],
        tool_calls: vec![
            call(
                "k8s.describe_pod",
                r#"{"pod":"checkout-7d9f"}"#,
                ToolCallState::Done,
                Some("Last State: `OOMKilled`\nexit 137"),
            ),
            call("k8s.restart", "{}", ToolCallState::Lost, None),
        ],
    }
}

fn running() -> AlertReport {
    let mut report = completed();
    let session = report.session.as_mut().unwrap();
    (session.finished_at, session.status, session.stop_reason) = (None, RunStatus::Running, None);
    (session.executive_summary, session.final_analysis) = (None, None);
    session.cancel_requested_at = Some(at(5));
    report.joined.clear();
    report
}

fn elsewhere(disposition: DispositionKind) -> AlertReport {
    AlertReport {
        disposition,
        session: None,
        joined: Vec::new(),
        headers: json!({}),
        url: None,
        ..completed()
    }
}

#[test]
fn a_session_is_shown_on_one_screen() {
    insta::assert_snapshot!(
        "show_completed",
        fits(&show::show(&completed(), at(95), &narrow()), 80)
    );
    insta::assert_snapshot!(
        "show_running",
        fits(&show::show(&running(), at(95), &narrow()), 80)
    );
    let ascii = show::show(
        &completed(),
        at(95),
        &Style {
            charset: Charset::Ascii,
            ..narrow()
        },
    );
    assert!(ascii.iter().all(|line| line.is_ascii()), "{ascii:#?}");
}

#[test]
fn the_other_workers_of_a_session_are_named_and_its_leases_are_not_counted() {
    let chain = |worker: &str, previous: &[&str]| {
        let mut report = completed();
        let session = report.session.as_mut().unwrap();
        session.worker = worker.to_owned();
        session.epoch = 7;
        session.previous_workers = previous.iter().map(|name| (*name).to_owned()).collect();
        let lines = show::show(&report, at(95), &narrow());
        lines
            .into_iter()
            .find(|line| line.contains("on worker"))
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!(
        chain("w1", &["w1", "w1"]),
        "chain        kubernetes on worker w1"
    );
    assert_eq!(
        chain("w2", &["w1", "w3", "w1"]),
        "chain        kubernetes on worker w2, earlier on w1, w3"
    );
}

#[test]
fn each_mark_is_in_lists_reports_json_and_on_the_screen() {
    for mark in Mark::ALL {
        let mut marked = completed();
        marked.session.as_mut().unwrap().mark = Some(mark);
        let word = mark.word();
        let sentence = mark.sentence();

        let screen = show::show(
            &marked,
            at(95),
            &Style {
                width: 200,
                ..narrow()
            },
        )
        .join("\n");
        assert!(
            screen.contains(&format!("{word}, completed")) && screen.contains(sentence),
            "{screen}"
        );
        assert!(
            report::report(&marked, at(95))
                .join("\n")
                .contains(&format!("**{sentence}**"))
        );
        let entry = SessionLine {
            mark: Some(mark),
            ..line("a41c9e02", RunStatus::Completed, "t")
        };
        assert!(
            list::sessions(std::slice::from_ref(&entry), at(95), &narrow())
                .join("\n")
                .contains(word)
        );
        for of in [
            serde_json::to_value(&marked.session).unwrap(),
            serde_json::to_value(&entry).unwrap(),
        ] {
            assert_eq!(
                (of["mark"].as_str(), of["mark_text"].as_str()),
                (Some(mark.as_str()), Some(sentence))
            );
        }
    }
}

#[test]
fn the_newest_verdict_of_a_person_is_on_the_screen() {
    let mut judged = completed();
    let verdict = |rating, cause: Option<&str>| PersonVerdict {
        at: at(6),
        person: "ana".to_owned(),
        channel: "cli".to_owned(),
        rating,
        cause: cause.map(str::to_owned),
        action: Some("rolled back".to_owned()),
    };
    judged.session.as_mut().unwrap().verdicts = vec![
        verdict(Rating::Wrong, Some("the leak of 4.2")),
        verdict(Rating::Right, None),
    ];
    let style = Style {
        width: 200,
        ..narrow()
    };
    let screen = show::show(&judged, at(95), &style).join("\n");
    let expected =
        "wrong by ana (cli), 2026-11-21 14:02:06Z; cause: the leak of 4.2; did: rolled back";
    assert!(
        screen.contains(expected) && !screen.contains("right by ana"),
        "{screen}"
    );
}

#[test]
fn a_second_look_is_in_reports_json_and_on_the_screen() {
    for verdict in Verdict::ALL {
        let mut checked = completed();
        let review = Review {
            verdict,
            model: "m-<b>1".to_owned(),
        };
        let sentence = review.sentence();
        let session = checked.session.as_mut().unwrap();
        session.review = Some(review);
        let style = Style {
            width: 200,
            ..narrow()
        };
        let screen = show::show(&checked, at(95), &style).join("\n");
        assert!(screen.contains(&sentence), "{screen}");
        let report = report::report(&checked, at(95)).join("\n");
        let start = sentence.split(" by ").next().unwrap();
        assert!(
            report.contains(start) && !report.replace("\\<b>", "").contains("<b>"),
            "{report}"
        );
        let json = serde_json::to_value(&checked.session).unwrap();
        assert_eq!(json["review"]["verdict"], verdict.as_str());
    }
}

#[test]
fn a_report_of_a_short_answer_has_its_text_once() {
    let mut short = completed();
    let session = short.session.as_mut().unwrap();
    session.executive_summary =
        Some("Cause: the disk of db-3 is full\nDo next: delete old logs".to_owned());
    session.final_analysis =
        Some("**Cause:** the disk of db-3 is full\n\n**Do next:** delete old logs".to_owned());
    let markdown = report::report(&short, at(95)).join("\n");
    assert_eq!(
        markdown.matches("the disk of db-3 is full").count(),
        1,
        "{markdown}"
    );
    assert!(markdown.contains("## Summary"), "{markdown}");
}

#[test]
fn an_alert_without_a_session_has_its_state_and_the_next_command() {
    let state = |report: AlertReport| {
        let lines = show::show(&report, at(95), &narrow());
        [&lines[2], lines.last().unwrap()].map(|line| line.trim().to_owned())
    };
    let joined = AlertReport {
        joined_session_id: Some(id("5e19c7f0")),
        ..elsewhere(DispositionKind::Joined)
    };
    let limited = AlertReport {
        limited_by: Some("storage".to_owned()),
        ..joined.clone()
    };
    assert_eq!(
        state(limited)[0],
        "state        not investigated: limit of route storage; see session 5e19c7f0"
    );
    let details = "Details: tarsy sessions show 5e19c7f0";
    assert_eq!(
        state(joined),
        [
            "state        joined session 5e19c7f0: same fingerprint",
            details
        ]
    );
    let dead = AlertReport {
        dead_reason: Some(DeadReason::UnknownChain),
        dead_detail: Some("header Tarsy-Chain names \"x\"".to_owned()),
        ..elsewhere(DispositionKind::Dead)
    };
    let letter = "Dead letter: tarsy dead-letters show a41c9e02";
    let undeliverable = "state        undeliverable: unknown_chain: header Tarsy-Chain names \"x\"";
    assert_eq!(state(dead), [undeliverable, letter]);
    assert_eq!(
        state(elsewhere(DispositionKind::Undecided))[1],
        "Watch: tarsy watch a41c9e02"
    );
    assert!(state(elsewhere(DispositionKind::Ended))[0].contains("resolved before one began"));
}

#[test]
fn text_from_outside_cannot_leave_its_place_in_a_report() {
    let markdown = report::report(&completed(), at(95)).join("\n");
    insta::assert_snapshot!("report", markdown);
    insta::assert_snapshot!(
        "report_running",
        report::report(&running(), at(95)).join("\n")
    );
}

#[test]
fn every_event_of_every_session_is_one_line() {
    let lines: Vec<String> = story()
        .iter()
        .map(|event| event_line(event, &narrow()))
        .collect();
    insta::assert_snapshot!("event_lines_80", fits(&lines, 80));
}

fn asked() -> AlertReport {
    let question = |last: &str, question: &str, answer: Option<&str>| QuestionReport {
        session_id: id(last),
        created_at: at(60),
        status: if answer.is_some() {
            RunStatus::Completed
        } else {
            RunStatus::TimedOut
        },
        question: Some(question.to_owned()),
        answer: answer.map(ToOwned::to_owned),
        error: answer.is_none().then(|| "past its deadline".to_owned()),
    };
    let answer = "For some hours, but not for good. The leak stays.\n```\n512Mi\n```\n<img src=x>";
    let questions = vec![
        question(
            "5e19c7f0",
            "Would 768Mi be *enough*?\nAnd for how long?\u{1b}[2J",
            Some(answer),
        ),
        question("77d0b3aa", "Who deployed it?", None),
    ];
    AlertReport {
        questions,
        headers: json!({}),
        joined: Vec::new(),
        ..completed()
    }
}

fn question() -> AlertReport {
    let mut report = AlertReport {
        alert_id: id("5e19c7f0"),
        parent_id: Some(id("a41c9e02")),
        title: Some("Would 768Mi be *enough*?".to_owned()),
        body: Some("Would 768Mi be *enough*?\nAnd for how long?".to_owned()),
        source: Some("question".to_owned()),
        fingerprint: None,
        questions: Vec::new(),
        ..asked()
    };
    let session = report.session.as_mut().unwrap();
    session.executive_summary = None;
    session.final_analysis = Some("For some hours, but not for good. The leak stays.".to_owned());
    report
}

#[test]
fn an_investigation_lists_its_questions_and_a_question_names_its_investigation() {
    insta::assert_snapshot!(
        "show_asked",
        fits(&show::show(&asked(), at(95), &narrow()), 80)
    );
    insta::assert_snapshot!(
        "show_question",
        fits(&show::show(&question(), at(95), &narrow()), 80)
    );
    insta::assert_snapshot!("report_asked", report::report(&asked(), at(95)).join("\n"));
    insta::assert_snapshot!(
        "report_question",
        report::report(&question(), at(95)).join("\n")
    );
    for ascii in [asked(), question()].map(|each| {
        show::show(
            &each,
            at(95),
            &Style {
                charset: Charset::Ascii,
                ..narrow()
            },
        )
    }) {
        assert!(ascii.iter().all(|line| line.is_ascii()), "{ascii:#?}");
    }
}

#[test]
fn a_question_is_marked_in_a_list() {
    let question = SessionLine {
        parent_id: Some(id("a41c9e02")),
        ..line("77d0b3aa", RunStatus::Running, "Is it\u{1b}[2J over?")
    };
    let listed =
        list::sessions(std::slice::from_ref(&question), at(95), &Style::default()).join("\n");
    assert!(
        listed.contains("-         ↳ question about a41c9e02: Is it over?"),
        "{listed}"
    );
    let ascii = list::running(
        &question,
        at(95),
        &Style {
            width: 140,
            charset: Charset::Ascii,
            ..Style::default()
        },
    );
    assert!(
        ascii.ends_with("critical  -> question about a41c9e02: Is it over?"),
        "{ascii}"
    );
}

#[test]
fn changes_of_the_alert_are_listed_and_late_ones_are_named() {
    let update = |number, report| AlertUpdateReport {
        number,
        at: at(2),
        alert_id: id("77d0b3aa"),
        report,
    };
    let grown = json!({"firing": {"count": 3, "lines": ["n2"]}});
    let mut alert = completed();
    if let Some(session) = &mut alert.session {
        session.alert_updates = vec![update(1, grown), update(2, json!({"status": "resolved"}))];
        session.covered_updates = 1;
    }
    let shown = show::show(&alert, at(60), &narrow());
    fits(&shown, 80);
    let from = shown
        .iter()
        .position(|line| line.contains("the alert changed"))
        .unwrap();
    let expected = [
        "  the alert changed 2 times; the last 1 came too late for the analysis:",
        "    77d0b3aa  2026-11-21 14:02:02Z  3 more alerts fire",
        "    77d0b3aa  2026-11-21 14:02:02Z  the alert is resolved",
    ];
    assert_eq!(shown[from..from + 3], expected);
    let report = report::report(&alert, at(60)).join("\n");
    assert!(
        report.contains("- **Not covered:** 1 change of the alert after the last model call\n"),
        "{report}"
    );
}
