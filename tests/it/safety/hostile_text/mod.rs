//! Text of alerts, tools and models costs a bounded time per byte, wherever it passes: the database, the search,
//! messages, pages, the report and the terminal. Forty shapes of 100 KB are sent through each.
//!
//! `-- --nocapture` prints the worst cost of each part. `TARSY_TEST_PROGRAM=<an optimised program>` holds each page
//! to 200 ms; without it, and for the rest, the limits leave room for a busy machine. A part that needs quadratic
//! time misses them many times over.

mod shapes;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use tarsy_core::alert::refs::Refs;
use tarsy_core::execution::entry::Entry;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::notification::summary::{Outcome, Summary};
use tarsy_core::notification::{Moment, Notification, NotificationKey, slack, teams, webhook};
use tarsy_core::search::{alert_words, analysis_words, label_query, query};
use tarsy_core::summary::executive_summary;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{Checkpoint, Journal as _, Opened, SessionEnd, Sessions as _};
use tarsy_reports::SessionFilter;
use tarsy_store::Store;

use self::shapes::{BYTES, Shape};
use super::processor_time::Clock;
use crate::adapters::store::fixture::{
    begin_stage, checkpoint, completed, new_id, open_request, received, settled,
};
use crate::support::figures::is_proof;
use crate::support::process::{TARSY, program};
use crate::support::system::TestSystem;
use crate::web::Web;

/// The number of times that a slow step is tried, of which the best counts: other processes use this machine, too.
const TRIES: usize = 3;
const SLOW: Duration = Duration::from_millis(100);
/// The time limit for a statement of Postgres, with the words that are made for it without optimisation, on a machine
/// that runs other tests: 100 µs a byte. Postgres' own parser takes 500 for such a text.
const STATEMENT_LIMIT: Duration = Duration::from_secs(10);
/// The time limit for the words or the messages of a text, without optimisation: 20 µs of the processor a byte.
const WORDS_LIMIT: Duration = Duration::from_secs(2);
/// The time limit for a page or a command of a program without optimisation, on such a machine: 200 µs a byte.
const PAGE_LIMIT: Duration = Duration::from_secs(20);
/// The same of an optimised one.
const OPTIMISED_PAGE_LIMIT: Duration = Duration::from_millis(200);

/// The costs of all shapes by the part that they passed.
#[derive(Default)]
struct Costs(BTreeMap<&'static str, Vec<(Duration, String)>>);

impl Costs {
    fn add(&mut self, part: &'static str, shape: &Shape, cost: Duration) {
        self.0
            .entry(part)
            .or_default()
            .push((cost, shape.name.clone()));
    }

    /// Prints the worst cost of each part beside that of prose, and checks it.
    fn check(mut self, limits: &[(&'static str, Duration)]) {
        let mut missed = Vec::new();
        for (part, limit) in limits {
            let mut costs = self.0.remove(part).expect("a part that was measured");
            let prose = costs.first().expect("the first shape is prose").0;
            costs.sort_unstable();
            let (worst, shape) = costs.last().unwrap();
            let per_byte = worst.as_nanos() / BYTES as u128;
            println!(
                "{part:24} {worst:>10.1?} {per_byte:>6} ns a byte  {shape:24}  prose {prose:.1?}"
            );
            if worst > limit {
                missed.push(format!("{part}: {shape} takes {worst:?}"));
            }
        }
        assert!(
            self.0.is_empty(),
            "parts without a limit: {:?}",
            self.0.keys()
        );
        assert_eq!(missed, Vec::<String>::new());
    }
}

/// A session whose alert, result and analysis are the text.
async fn store_everywhere(store: &Store, shape: &Shape, costs: &mut Costs) -> SessionId {
    let (id, text) = (new_id(), &shape.text);
    store.receive(received(id, text.as_bytes())).await.unwrap();
    let mut request = open_request(id, &id.to_string());
    request.alert.text.clone_from(text);
    let begun = Instant::now();
    let Ok(Opened::Session(claimed)) = store.open(request).await else {
        panic!("not opened: {}", shape.name)
    };
    costs.add("alert, opened", shape, begun.elapsed());
    let lease = claimed.lease;
    store.step(lease, begin_stage(id, 1)).await.unwrap();
    let execution = ExecutionId::derive(id, 1, 1);
    let begun = Instant::now();
    store.append(lease, result(execution, text)).await.unwrap();
    costs.add("result, checkpoint", shape, begun.elapsed());
    let summary = executive_summary(text);
    let end = SessionEnd {
        final_analysis: Some(text.clone()),
        executive_summary: summary,
        ..completed()
    };
    let begun = Instant::now();
    store.finish(lease, end).await.unwrap();
    costs.add("analysis, finished", shape, begun.elapsed());
    settled(store, id).await.unwrap();
    id
}

/// A checkpoint with the text as a result, a response and the analysis.
fn result(execution: ExecutionId, text: &str) -> Checkpoint {
    let mut made = checkpoint(execution, 1);
    made.entries = vec![Entry::Feedback {
        content: text.to_owned(),
        about: None,
    }];
    made.tool_calls[0].result = Some(text.to_owned());
    made.events = vec![
        EventDraft::new(
            EventType::ToolResult,
            text,
            json!({"tool_name": "k8s.get", "is_error": false}),
        ),
        EventDraft::new(EventType::LlmResponse, text, json!({})),
        EventDraft::new(EventType::FinalAnalysis, text, json!({})),
    ];
    made
}

/// The processor time of the words of a text, and of the query that a text is.
fn words(shape: &Shape, costs: &mut Costs) {
    let best = |work: &dyn Fn()| processor_time(work);
    costs.add(
        "words of an alert",
        shape,
        best(&|| drop(alert_words(&[&shape.text], &shape.text))),
    );
    costs.add(
        "words of an analysis",
        shape,
        best(&|| drop(analysis_words(Some(&shape.text), Some(&shape.text)))),
    );
    costs.add("query", shape, best(&|| drop(query(&shape.text))));
}

/// The processor time of the messages to chats and programs about a session with this alert and analysis.
fn messages(shape: &Shape, costs: &mut Costs) {
    let summary = Summary {
        title: shape.text.clone(),
        severity: None,
        chain: None,
        outcome: Some(Outcome::Completed),
        analysis: Some(shape.text.clone()),
        mark: None,
        review: None,
        error: None,
        refs: Refs::default(),
        began_at: None,
        ended_at: None,
        seen_before: None,
        request: None,
    };
    let key = NotificationKey {
        session: new_id(),
        route: "ops".to_owned(),
        moment: Moment::Ended,
        request: None,
    };
    let message = Notification {
        about: key.session,
        key,
        summary,
        url: None,
        template: None,
        may_repeat: false,
        stays_in_thread: false,
    };
    let best = |render: fn(&Notification) -> serde_json::Value| {
        processor_time(&|| assert!(render(&message).is_object()))
    };
    costs.add("message to Slack", shape, best(slack::message));
    costs.add("message to Teams", shape, best(teams::message));
    costs.add("message to a program", shape, best(webhook::message));
}

/// The time of this work, the best of a few tries if it is slow.
fn processor_time(work: &dyn Fn()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let clock = Clock::start();
        work();
        best = best.min(clock.elapsed());
        if best <= SLOW {
            break;
        }
    }
    best
}

/// The same of work that waits for other processes.
async fn time(work: impl AsyncFn()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let begun = Instant::now();
        work().await;
        best = best.min(begun.elapsed());
        if best <= SLOW {
            break;
        }
    }
    best
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_hostile_shapes_cost_a_bounded_time_per_byte_in_every_part() {
    let mut shapes = shapes::all();
    assert_eq!(shapes.len(), 41);
    // Prose, and each fourth shape; `prove` sends all.
    let mut numbers = 0..;
    shapes.retain(|_| {
        is_proof()
            || numbers
                .next()
                .is_some_and(|number: usize| number.is_multiple_of(4))
    });
    let system = TestSystem::start(&[]).await;
    let store = system.database.store();
    let mut costs = Costs::default();
    let mut ids = Vec::new();
    for shape in &shapes {
        assert!(
            (BYTES - 8..=BYTES).contains(&shape.text.len()),
            "{}",
            shape.name
        );
        words(shape, &mut costs);
        messages(shape, &mut costs);
        ids.push(store_everywhere(&store, shape, &mut costs).await);
    }
    let web = Web::start(&system, &[]).await;
    for (shape, id) in shapes.iter().zip(&ids) {
        for (part, path) in [
            ("page", format!("/sessions/{id}")),
            ("page of every event", format!("/sessions/{id}?view=all")),
            ("page of the result", format!("/sessions/{id}/events/3")),
            ("page of a response", format!("/sessions/{id}/events/4")),
            ("report", format!("/sessions/{id}/report.md")),
            (
                "list",
                format!(
                    "/?q={}",
                    url::form_urlencoded::byte_serialize(&shape.text.as_bytes()[..60])
                        .collect::<String>()
                ),
            ),
        ] {
            let page = time(async || assert_eq!(web.get(&path).await.status, 200, "{path}"));
            costs.add(part, shape, page.await);
        }
        let beginning: String = shape.text.chars().take(200).collect();
        let filter = SessionFilter {
            limit: 50,
            search: Some(beginning),
            ..SessionFilter::default()
        };
        let search = time(async || drop(store.list_sessions(filter.clone()).await.unwrap()));
        costs.add("search", shape, search.await);
        assert!(label_query(&shape.text, &shape.text).len() < 32);
        costs.add("terminal", shape, terminal(&system, *id).await);
    }
    let page_limit = if program() == TARSY {
        PAGE_LIMIT
    } else {
        OPTIMISED_PAGE_LIMIT
    };
    costs.check(&[
        ("words of an alert", WORDS_LIMIT),
        ("words of an analysis", WORDS_LIMIT),
        ("query", WORDS_LIMIT),
        ("message to Slack", WORDS_LIMIT),
        ("message to Teams", WORDS_LIMIT),
        ("message to a program", WORDS_LIMIT),
        ("alert, opened", STATEMENT_LIMIT),
        ("result, checkpoint", STATEMENT_LIMIT),
        ("analysis, finished", STATEMENT_LIMIT),
        ("search", STATEMENT_LIMIT),
        ("page", page_limit),
        ("page of every event", page_limit),
        ("page of the result", page_limit),
        ("page of a response", page_limit),
        ("report", page_limit),
        ("list", page_limit),
        ("terminal", PAGE_LIMIT),
    ]);
}

/// The time of `tarsy sessions show`, its start included.
async fn terminal(system: &TestSystem, id: SessionId) -> Duration {
    let env = system.env(system.database.url());
    let begun = Instant::now();
    let mut command = tokio::process::Command::new(program());
    command
        .args(["sessions", "show", &id.to_string()])
        .envs(env.each().iter().copied());
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    begun.elapsed()
}
