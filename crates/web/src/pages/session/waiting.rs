//! The page of an alert that no worker has received yet.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::ports::{Lane, Unavailable};
use crate::shell::words::{moment, queued};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::WorkerStatus;

/// The content of the page.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub id: SessionId,
    pub lanes: Result<Vec<Lane>, Unavailable>,
    pub workers: Vec<WorkerStatus>,
}

/// The page below its bar. The script replaces its parts once the store knows the alert.
pub(crate) fn waiting(waiting: &Waiting) -> Markup {
    let id = waiting.id;
    html! {
        div.head #head {
            p.crumb {
                a href="/" { "Sessions" } span aria-hidden="true" { "/" } span.id { (id.short()) }
                button.act type="button" data-copy-link="" { "Copy link" }
            }
            h1 { b { "In the queue" } }
            p.meta {
                (queued())
                @if let Some(at) = submitted_at(id) { span { "submitted " (moment(at)) } }
            }
        }
        div.cols {
            div.main {
                div #banner role="status" {}
                section.answer #answer aria-label="Answer" {
                    div.wait {
                        p { "No worker has seen an alert or a question with this id yet. " (queue(waiting)) }
                        p { "This page updates by itself." }
                        p.muted { "If no alert has this id, or it was deleted, this page stays as it is." }
                    }
                }
                section.thread #thread aria-label="Questions" {}
                section.tl #timeline aria-label="Timeline" {
                    div role="log" aria-label="Steps" aria-live="polite" { ol.rows #rows data-last="0" {} }
                    p.new hidden { a href="#timeline" {} }
                }
            }
            aside #beside aria-label="In a terminal" {
                section { h2 { "In a terminal" } p.cli { code { "tarsy watch " (id) } } p { a href="/queue" { "Queue and workers" } } }
            }
        }
    }
}

/// The state of the queue and of the workers.
fn queue(waiting: &Waiting) -> Markup {
    let slots: u32 = waiting.workers.iter().map(|worker| worker.slots).sum();
    let busy: u32 = waiting.workers.iter().map(|worker| worker.busy).sum();
    html! {
        @match &waiting.lanes {
            Ok(lanes) => {
                @let full: Vec<&Lane> = lanes.iter().filter(|lane| lane.waiting > 0).collect();
                @if full.is_empty() { "No alert waits that a worker has not claimed" } @else {
                    "Waiting: "
                    @for (index, lane) in full.iter().enumerate() { @if index > 0 { ", " } (lane.waiting) " " (lane.priority) }
                }
                "; "
            },
            Err(_) => "The queue does not answer; ",
        }
        @match waiting.workers.len() {
            0 => span.warn { "no worker has sent its status within the last 15 seconds." },
            1 => { "1 worker, " (busy) " of " (slots) " slots busy." }
            workers => { (workers) " workers, " (busy) " of " (slots) " slots busy." }
        }
    }
}

/// The creation time of the id, which only a UUID of version 7 contains.
fn submitted_at(id: SessionId) -> Option<DateTime<Utc>> {
    if id.0.get_version_num() != 7 {
        return None;
    }
    let (seconds, nanoseconds) = id.0.get_timestamp()?.to_unix();
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use http_body_util::BodyExt as _;
    use serde_json::json;

    use super::*;
    use crate::testing::backend::FakeBackend;
    use crate::testing::data::report;
    use crate::testing::markup::{check, texts};

    #[tokio::test]
    async fn an_id_that_no_worker_has_seen_has_a_page_that_waits_and_is_404_in_the_api() {
        let backend = FakeBackend::with_events(0);
        backend.report(None);
        let id = report().alert_id;
        let page = backend.answer(&format!("/sessions/{id}"), &[]).await;
        assert_eq!(
            (
                page.status(),
                page.headers()["cache-control"].to_str().unwrap()
            ),
            (StatusCode::OK, "no-store")
        );
        let page = page.into_body().collect().await.unwrap().to_bytes();
        let page = String::from_utf8(page.to_vec()).unwrap();
        assert_eq!(check(&page).err(), None);
        assert!(
            page.contains(&format!("data-live=\"/sessions/{id}/live\"")),
            "{page}"
        );
        let said = texts(&page);
        assert!(
            said.contains("No alert waits that a worker has not claimed")
                && said.contains("updates by itself")
        );
        for path in [
            format!("/api/v1/sessions/{id}"),
            format!("/sessions/{id}/report.md"),
        ] {
            assert_eq!(
                backend.answer(&path, &[]).await.status(),
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }

    #[test]
    fn the_page_has_the_numbers_of_the_queue_and_the_time_of_the_id() {
        let lane = |priority, waiting| Lane {
            priority,
            waiting,
            in_work: 0,
            oldest: None,
        };
        let worker = json!({"worker_id": uuid::Uuid::nil(), "name": "w", "version": "1", "slots": 4, "sessions": [], "busy": 3,
                            "state": "claiming"});
        let worker: WorkerStatus = serde_json::from_value(worker).unwrap();
        let shown = |lanes, workers| {
            texts(
                &waiting(&Waiting {
                    id: report().alert_id,
                    lanes,
                    workers,
                })
                .into_string(),
            )
        };
        let said = shown(
            Ok(vec![lane("critical", 2), lane("high", 0), lane("low", 1)]),
            vec![worker.clone(), worker],
        );
        assert!(
            said.contains("Waiting: 2 critical, 1 low;")
                && said.contains("2 workers, 6 of 8 slots busy."),
            "{said}"
        );
        let said = shown(Err(Unavailable("nats unavailable".to_owned())), Vec::new());
        assert!(
            said.contains("The queue does not answer")
                && said.contains("no worker has sent its status"),
            "{said}"
        );
        let id = SessionId(uuid::Uuid::from_u128(1));
        assert_eq!(
            (
                submitted_at(id),
                submitted_at(SessionId(uuid::Uuid::now_v7())).is_some()
            ),
            (None, true)
        );
    }
}
