//! Tests of `tarsy queue`.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::{fits, narrow};
use crate::cli::render::tables::queue::{self, QueuedAlert};
use tarsy_bus::{Backlog, MessageKind, Priority};
use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_engine::ports::WorkerStatus;

fn now() -> DateTime<Utc> {
    "2026-11-21T14:02:00Z".parse().unwrap()
}

fn queued(last: &str, title: Option<&str>, seconds: i64) -> QueuedAlert {
    QueuedAlert {
        alert_id: SessionId::parse(&format!("0198b2c4-5d6e-7f80-9a1b-2c3d{last}")).unwrap(),
        kind: if last == "5e19c7f0" {
            MessageKind::Question
        } else {
            MessageKind::Alert
        },
        priority: Priority::High,
        queued_at: now() - TimeDelta::seconds(seconds),
        subject: "tarsy.alerts.high".to_owned(),
        title: title.map(str::to_owned),
    }
}

fn worker(name: &str, state: &str, unavailable: &[&str]) -> WorkerStatus {
    WorkerStatus {
        worker_id: WorkerId(Uuid::nil()),
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
        slots: 4,
        sessions: vec![SessionId(Uuid::nil())],
        busy: 1,
        state: state.to_owned(),
        unavailable: unavailable
            .iter()
            .map(|service| (*service).to_owned())
            .collect(),
        state_ms: 12_345,
    }
}

#[test]
fn the_queue_shows_each_priority_what_comes_next_and_why_workers_are_paused() {
    let backlog = [
        (Priority::High, 5, 1, Some(Duration::from_secs(75))),
        (Priority::Low, 0, 0, None),
    ];
    let backlog = backlog.map(|(priority, pending, in_progress, oldest)| Backlog {
        priority,
        pending,
        in_progress,
        oldest,
    });
    let next = [
        queued(
            "77d0b3aa",
            Some(
                "\u{1b}[2JDisk 盘 full\non db-3, which is a title that is longer than the terminal",
            ),
            75,
        ),
        queued("5e19c7f0", Some("Would 768Mi be enough?"), 7),
        queued("a41c9e02", None, 0),
    ];
    let mut lines = queue::queue(&backlog, &next, now(), &narrow());
    let workers = [
        worker("w1", "paused", &["database", "llm-service"]),
        worker("w2", "claiming", &[]),
        worker("w3", "paused", &[]),
    ];
    lines.extend(queue::workers(&workers, &narrow()));
    insta::assert_snapshot!("queue_80", fits(&lines, 80));
    let empty = queue::queue(&[], &[], now(), &narrow()).len();
    assert_eq!(
        (empty, queue::workers(&[], &narrow())),
        (
            2,
            vec!["no worker is running: tarsy worker starts one".to_owned()]
        )
    );
}

#[test]
fn a_worker_without_a_provider_is_listed_with_the_command_that_says_why() {
    let mut keyless = worker("vm-27499", "paused", &["providers"]);
    keyless.state_ms = 12_000;
    let lines = queue::workers(&[keyless], &narrow());
    fits(&lines, 80);
    assert!(
        lines[1].ends_with("paused: no provider of models can be called (since 12 s)"),
        "{lines:#?}"
    );
    assert_eq!(
        lines[2],
        "no provider of models can be called: tarsy models --probe says why"
    );
}
