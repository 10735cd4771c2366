//! Notes are added once for each session and moment, whatever happens to the answers.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;
use tarsy_config::sections::destinations::{BUILTIN_DESTINATION_NAMES, Destination};
use tarsy_engine::ports::{Arrival, ProviderAnswer};

use super::fake::{Fault, Vendor};
use super::{builtin, message, needed};
use crate::destination::Sender;
use crate::guard;

const REMARK: &str = "may be a repetition";

/// A destination at its vendor.
struct Scene {
    vendor: Vendor,
    destination: Destination,
}

impl Scene {
    async fn new(name: &str) -> Self {
        Self::with(builtin(name, "http://unknown")).await
    }

    async fn with(destination: Destination) -> Self {
        let vendor = Vendor::start(destination.clone()).await;
        let base = vendor.address.clone();
        Self {
            vendor,
            destination: Destination {
                base,
                ..destination
            },
        }
    }

    /// One attempt; `in_doubt` as the row of the outbox has it.
    async fn attempt(&self, in_doubt: Doubt) -> ProviderAnswer {
        let client = guard::client().unwrap();
        let sender = Sender {
            client: &client,
            destination: &self.destination,
            secret: "s3cret",
        };
        let mut message = message(needed(&self.destination));
        message.may_repeat = in_doubt == Doubt::Yes;
        sender.deliver(&message).await
    }

    /// Attempts as a worker makes them, until the note is closed.
    async fn deliver(&self) -> ProviderAnswer {
        let mut doubt = Doubt::No;
        for _ in 0..10 {
            let answer = self.attempt(doubt).await;
            let ProviderAnswer::Unavailable { arrival, .. } = answer else {
                return answer;
            };
            if arrival == Arrival::Unknown {
                doubt = Doubt::Yes;
            }
        }
        panic!("the note is never closed")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doubt {
    Yes,
    No,
}

#[tokio::test]
async fn a_lost_answer_leads_to_no_second_note_where_the_vendor_can_be_asked() {
    for name in BUILTIN_DESTINATION_NAMES {
        for fault in Fault::ALL {
            let scene = Scene::new(name).await;
            scene.vendor.state.lock().unwrap().faults = VecDeque::from([fault]);
            let closed = scene.deliver().await;
            let is_kept = matches!(fault, Fault::KeptAndDropped | Fault::KeptAnd(_));
            let expected = if is_kept {
                ProviderAnswer::Found { receipt: None }
            } else {
                ProviderAnswer::Accepted { receipt: None }
            };
            assert_eq!(closed, expected, "{name} {fault:?}");
            let notes = scene.vendor.notes();
            assert_eq!(notes.len(), 1, "{name} {fault:?}");
            assert!(
                !notes[0].contains(REMARK),
                "{name}: every note since then was read"
            );
        }
    }
}

#[tokio::test]
async fn every_sequence_of_faults_leaves_one_note() {
    for first in Fault::ALL {
        for second in Fault::ALL {
            for third in Fault::ALL {
                let scene = Scene::new("pagerduty").await;
                let faults = [first, second, third];
                scene.vendor.state.lock().unwrap().faults = VecDeque::from(faults);
                scene.deliver().await;
                assert_eq!(scene.vendor.notes().len(), 1, "{faults:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_list_that_fails_is_read_later_and_a_refused_one_leads_to_a_remark() {
    let scene = Scene::new("jira").await;
    scene.vendor.state.lock().unwrap().list_status = 503;
    let answer = scene.attempt(Doubt::Yes).await;
    assert!(
        matches!(answer, ProviderAnswer::Unavailable { .. }),
        "{answer:?}"
    );
    assert_eq!(scene.vendor.notes().len(), 0);

    scene.vendor.state.lock().unwrap().list_status = 403;
    let answer = scene.attempt(Doubt::Yes).await;
    assert_eq!(answer, ProviderAnswer::Accepted { receipt: None });
    let [note] = scene.vendor.notes().try_into().unwrap();
    assert!(note.contains(REMARK), "{note}");
}

#[tokio::test]
async fn a_list_that_reports_a_failure_is_read_later() {
    let scene = Scene::new("zabbix").await;
    scene.vendor.state.lock().unwrap().list = json!({"error": {"code": -32_600}});
    let answer = scene.attempt(Doubt::Yes).await;
    let ProviderAnswer::Unavailable { arrival, .. } = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(arrival, Arrival::Unknown);
    assert_eq!(scene.vendor.notes().len(), 0);
}

#[tokio::test]
async fn a_list_that_does_not_show_all_texts_leads_to_a_remark() {
    let full: Vec<_> = (0..100).map(|_| json!({"note": "another"})).collect();
    for (name, list) in [
        ("jira", json!({"comments": [{"id": "1"}]})),
        ("opsgenie", json!({"data": full})),
    ] {
        let scene = Scene::new(name).await;
        scene.vendor.state.lock().unwrap().list = list;
        let answer = scene.attempt(Doubt::Yes).await;
        assert_eq!(answer, ProviderAnswer::Accepted { receipt: None }, "{name}");
        let [note] = scene.vendor.notes().try_into().unwrap();
        assert!(note.contains(REMARK), "{name}: {note}");
    }
}

#[tokio::test]
async fn the_next_page_begins_behind_the_items_of_a_shorter_one() {
    let scene = Scene::new("jira").await;
    scene.vendor.state.lock().unwrap().other_pages = 2;
    let answer = scene.attempt(Doubt::Yes).await;
    assert_eq!(answer, ProviderAnswer::Accepted { receipt: None });
    let requests = scene.vendor.state.lock().unwrap().requests.clone();
    for (request, offset) in requests.iter().zip([0, 1, 2]) {
        let parameter = format!("startAt={offset} ");
        assert!(request.line.contains(&parameter), "{}", request.line);
    }
    assert_eq!(requests.len(), 4, "three pages and the note");
    assert!(
        !scene.vendor.notes()[0].contains(REMARK),
        "the empty page is the end"
    );
}

#[tokio::test]
async fn a_status_that_is_not_listed_as_accepted_is_given_up() {
    let scene = Scene::new("jira").await;
    scene.vendor.state.lock().unwrap().faults = VecDeque::from([Fault::KeptAnd(202)]);
    let answer = scene.attempt(Doubt::No).await;
    assert!(
        matches!(answer, ProviderAnswer::Rejected { .. }),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_note_is_found_on_the_fifth_page_and_not_searched_beyond() {
    for (pages, found) in [(4, true), (5, false)] {
        let scene = Scene::new("github").await;
        scene.attempt(Doubt::No).await;
        scene.vendor.state.lock().unwrap().other_pages = pages;
        let answer = scene.attempt(Doubt::Yes).await;
        let is_found = answer == ProviderAnswer::Found { receipt: None };
        assert_eq!(is_found, found, "{pages} pages: {answer:?}");
        let repeated = scene
            .vendor
            .notes()
            .iter()
            .filter(|note| note.contains(REMARK))
            .count();
        assert_eq!(repeated, usize::from(!found));
    }
}

#[tokio::test]
async fn without_a_list_a_repetition_says_so_unless_the_vendor_recognises_it() {
    for (idempotent, remarks) in [(false, 1), (true, 0)] {
        let destination = Destination {
            find: None,
            idempotent,
            ..builtin("gitlab", "http://unknown")
        };
        let scene = Scene::with(destination).await;
        scene.vendor.state.lock().unwrap().faults = VecDeque::from([Fault::KeptAndDropped]);
        scene.deliver().await;
        let notes = scene.vendor.notes();
        assert_eq!(notes.len(), 2, "the same id twice");
        assert_eq!(
            notes.iter().filter(|note| note.contains(REMARK)).count(),
            remarks
        );
    }
}

#[tokio::test]
async fn an_answer_says_when_the_next_attempt_is_due_or_that_there_is_none() {
    let scene = Scene::new("jira").await;
    let faults = [429, 302, 401, 404, 410, 400].map(Fault::Status);
    scene.vendor.state.lock().unwrap().faults = VecDeque::from(faults);
    let later = |status: u16| ProviderAnswer::Unavailable {
        reason: format!("HTTP {status}: {{}}"),
        retry_after: Some(Duration::from_secs(7)),
        arrival: Arrival::Refused,
    };
    let never = |status: u16| ProviderAnswer::Rejected {
        reason: format!("HTTP {status}: {{}}"),
    };
    for expected in [
        later(429),
        later(302),
        later(401),
        never(404),
        never(410),
        never(400),
    ] {
        assert_eq!(scene.attempt(Doubt::No).await, expected);
    }
    assert_eq!(scene.vendor.notes().len(), 0);
    let requests = scene.vendor.state.lock().unwrap().requests.len();
    assert_eq!(requests, 6, "no redirect is followed");
}
