//! Kills the LLM service and its providers.

use std::time::Duration;

use chrono::Utc;

use super::bed::Bed;
use super::{Measured, Pace};
use crate::proofs::load::MARK;
use crate::support::system::Setup;

/// The answer whose first tries fail.
const FAILING: usize = 6;

/// Answers that think first and call then, so that most of the time the middle of an answer passes.
fn thinking(pace: Pace, fail: &str) -> String {
    let mut text = format!("name: thinking\nmatch: {MARK}\nprovider_state: true\nanswers:\n");
    let wait = pace.call.as_millis();
    for step in 1..pace.answers {
        let pod = "namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p";
        let call = format!("{{tool: drill.describe_pod, arguments: {{{pod}, step: {step}}}}}");
        let fail = if step == FAILING { fail } else { "" };
        text.push_str(&format!(
            "  - chunks: [{{thinking: Looking.}}, {{wait: {wait}ms}}, {{call: {call}}}]\n{fail}"
        ));
    }
    text + "  - chunks: [{text: \"Cause: a drill [[*]]. The end.\"}]\n"
}

fn setup(pace: Pace, fail: &str) -> Setup<'static> {
    Setup {
        transcript: Some(thinking(pace, fail)),
        ..Setup::default()
    }
}

pub(super) async fn killed(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::start(pace.patient(), setup(pace, "")).await;
    let address = bed.system.llm_addr().to_owned();
    bed.system.llm.kill().await;
    bed.system.start_llm_service(&address).await;
    let back = Utc::now();
    bed.end(1).await;
    vec![Measured::new(
        "a running session takes its next step, after the return",
        bed.steps_after(back),
    )]
}

pub(super) async fn gone(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::start(pace.patient(), setup(pace, "")).await;
    let (address, at) = (bed.system.llm_addr().to_owned(), Utc::now());
    bed.system.llm.kill().await;
    let noticed = bed
        .logged_after(at, "claiming paused: llm-service unavailable")
        .await;
    let new = bed.publish(1).await;
    tokio::time::sleep(pace.outage).await; // the outage itself
    bed.system.start_llm_service(&address).await;
    let back = Utc::now();
    bed.end(1).await;
    vec![
        Measured::new("log: claiming paused", noticed),
        Measured::new(
            "a released session is resumed, after the return",
            bed.resumed_after(back),
        ),
        Measured::new(
            "an alert that waited is opened, after the return",
            bed.opened_after(back, &new),
        ),
    ]
}

/// The longest pause between two events of each session.
const PAUSES: &str = "SELECT max(extract(epoch FROM pause)) * 1000 AS ms FROM (SELECT session_id, created_at - \
                      lag(created_at) OVER (PARTITION BY session_id ORDER BY session_seq) AS pause \
                      FROM timeline_events) AS pauses GROUP BY session_id";

pub(super) async fn rate_limited(pace: Pace) -> Vec<Measured> {
    let asked = pace.retry_after;
    let fail = format!(
        "    fail: {{code: rate_limited, message: busy, retryable: true, retry_after: {}s, times: 2}}\n",
        asked.as_secs()
    );
    let bed = Bed::start(pace.patient(), setup(pace, &fail)).await;
    bed.end(1).await;
    let pauses = bed.milliseconds(PAUSES);
    assert!(
        pauses.iter().all(|pause| *pause >= 2 * asked),
        "each refusal is waited out: {pauses:?}"
    );
    assert_eq!(errors(&bed), 0, "a wait is no failed call");
    vec![Measured::new("the session pauses", pauses)]
}

pub(super) async fn failing(pace: Pace) -> Vec<Measured> {
    let fail =
        "    fail: {code: max_retries, message: busy, retryable: true, status: '503', times: 3}\n";
    let bed = Bed::start(pace.patient(), setup(pace, fail)).await;
    bed.end(1).await;
    assert_eq!(
        errors(&bed),
        3 * i64::try_from(super::bed::SESSIONS).unwrap(),
        "three failed calls each"
    );
    let pauses: Vec<Duration> = bed.milliseconds(
        "SELECT extract(epoch FROM min(e.created_at) - min(f.first)) * 1000 AS ms FROM timeline_events e JOIN \
         (SELECT session_id, min(created_at) AS first, max(session_seq) AS last FROM timeline_events \
         WHERE event_type = 'error' GROUP BY 1) AS f ON f.session_id = e.session_id AND e.session_seq > f.last \
         GROUP BY e.session_id",
    );
    vec![Measured::new(
        "from the first failed call to the next step",
        pauses,
    )]
}

fn errors(bed: &Bed) -> i64 {
    bed.system
        .database
        .number("SELECT count(*) FROM timeline_events WHERE event_type = 'error'")
}
