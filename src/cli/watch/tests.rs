//! Tests of the watcher: its output, its end and its exit code.

use parking_lot::Mutex;
use std::future::{pending, ready};
use std::sync::Arc;

use futures_util::stream;
use serde_json::json;

use super::*;
use crate::cli::render::tests::story;
use tarsy_core::timeline::DeltaKind;

/// A writer that the test can read at any time.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Case {
    out: Shared,
    notes: Shared,
    watch: Watch<Shared, Shared>,
}

fn case(options: Options) -> Case {
    let out = Shared::default();
    let notes = Shared::default();

    Case {
        watch: Watch::new(out.clone(), notes.clone(), options),
        out,
        notes,
    }
}

fn options() -> Options {
    Options {
        style: Style::default(),
        agent: None,
        json: false,
        live: Live::Off,
        timeout: None,
        ends_with_us: false,
    }
}

fn session() -> SessionId {
    story()[0].session_id
}

fn feed(events: Vec<TimelineEvent>) -> impl Stream<Item = anyhow::Result<TimelineItem>> {
    stream::iter(events)
        .map(|event| Ok(TimelineItem::Event(event)))
        .chain(stream::pending())
}

fn half_sentence() -> Delta {
    let event = story()[2].clone();
    Delta {
        session_id: event.session_id,
        execution_id: event.execution_id.unwrap(),
        agent: None,
        epoch: 1,
        iteration: 1,
        attempt: 1,
        kind: DeltaKind::Text,
        offset: 0,
        delta: "The pod was".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_completed_investigation_is_followed_to_its_end_and_each_event_printed_once() {
    let mut case = case(Options {
        json: true,
        ..options()
    });
    let doubled = story()
        .into_iter()
        .flat_map(|event| [event.clone(), event])
        .collect();
    let watched = case
        .watch
        .follow(session(), feed(doubled), pending())
        .await
        .unwrap();
    assert_eq!(watched, Watched::Over(Exit::Done));
    let printed: Vec<TimelineEvent> = case
        .out
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(printed, story());
    assert_eq!(case.notes.text(), "");
}

#[tokio::test(start_paused = true)]
async fn with_the_name_of_an_agent_only_its_events_and_the_end_are_printed() {
    let mut events = story();
    for event in events.iter_mut().filter(|event| event.session_seq > 6) {
        event.agent = event.agent.as_ref().map(|_agent| "logs".to_owned());
    }
    let mut expected = events.clone();
    expected.retain(|event| event.agent.as_deref() == Some("logs") || event.event_type.is_end());
    assert!(expected.len() > 1 && expected.len() < events.len());
    let mut case = case(Options {
        json: true,
        agent: Some("logs".to_owned()),
        live: Live::Lines,
        ..options()
    });
    let other = stream::iter([Ok(TimelineItem::Delta(half_sentence()))]);
    let feed = other.chain(feed(events));
    let watched = case.watch.follow(session(), feed, pending()).await.unwrap();
    assert_eq!(watched, Watched::Over(Exit::Done));
    let printed: Vec<TimelineEvent> = case
        .out
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(printed, expected);
}

#[tokio::test(start_paused = true)]
async fn an_investigation_without_an_analysis_fails_the_command() {
    for end in [
        EventType::SessionFailed,
        EventType::SessionCancelled,
        EventType::SessionTimedOut,
    ] {
        let mut events = story();
        events.last_mut().unwrap().event_type = end;
        let watched = case(options())
            .watch
            .follow(session(), feed(events), pending())
            .await
            .unwrap();
        assert_eq!(watched, Watched::Over(Exit::Failed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_joined_alert_leads_to_the_session_that_it_joined() {
    let target = "0198b2c4-0000-7f80-9a1b-2c3d5e19c7f0";
    let mut event = story().pop().unwrap();
    event.session_seq = 1;
    event.event_type = EventType::Joined;
    event.metadata =
        json!({"joined_session_id": target, "fingerprint": "groupKey {}:{alertname=\"DiskFull\"}"});
    let mut case = case(options());
    let watched = case
        .watch
        .follow(session(), feed(vec![event.clone()]), pending())
        .await
        .unwrap();
    assert_eq!(watched, Watched::Follow(SessionId::parse(target).unwrap()));
    assert_eq!(
        case.out.text(),
        "joined session 5e19c7f0: same fingerprint (groupKey {}:{alertname=\"DiskFull\"}). Following it.\n"
    );
    event.metadata = json!({});
    assert!(
        case.watch
            .follow(session(), feed(vec![event]), pending())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn an_alert_within_the_cooldown_leads_to_the_session_that_covers_it() {
    let target = "0198b2c4-0000-7f80-9a1b-2c3d5e19c7f0";
    let mut event = story().pop().unwrap();
    event.session_seq = 1;
    event.event_type = EventType::Joined;
    let finished_at = event.created_at - chrono::TimeDelta::minutes(12);
    event.metadata =
        json!({"joined_session_id": target, "reason": "cooldown", "finished_at": finished_at});
    let mut case = case(options());
    let watched = case
        .watch
        .follow(session(), feed(vec![event]), pending())
        .await
        .unwrap();
    assert_eq!(watched, Watched::Follow(SessionId::parse(target).unwrap()));
    assert_eq!(
        case.out.text(),
        "session 5e19c7f0 investigated the same fingerprint 12 min ago and completed (cooldown); \
         tarsy submit --force investigates again. Following it.\n"
    );
}

#[tokio::test(start_paused = true)]
async fn an_alert_above_the_limit_of_its_route_leads_to_the_session_that_lists_it() {
    let target = "0198b2c4-0000-7f80-9a1b-2c3d5e19c7f0";
    let mut event = story().pop().unwrap();
    event.session_seq = 1;
    event.event_type = EventType::Joined;
    event.metadata = json!({"joined_session_id": target, "reason": "limited", "route": "storage", "max_per_hour": 2});
    let mut case = case(options());
    let watched = case
        .watch
        .follow(session(), feed(vec![event]), pending())
        .await
        .unwrap();
    assert_eq!(watched, Watched::Follow(SessionId::parse(target).unwrap()));
    assert_eq!(
        case.out.text(),
        "not investigated: route storage opens at most 2 investigations an hour. Session 5e19c7f0 lists the alert.\n"
    );
}

fn waiting(text: &str) -> Waiting {
    Waiting {
        text: text.to_owned(),
        reason: "queued".to_owned(),
        complete: true,
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_position_is_a_status_line_on_a_terminal_and_one_note_elsewhere() {
    for (live, out, notes) in [
        (Live::Off, "", "queued: 2\n"),
        (Live::Lines, "", "queued: 2\n"),
        (Live::Redraw, "queued: 3\r\u{1b}[2K", ""),
    ] {
        let mut case = case(Options {
            live,
            timeout: Some(Duration::from_secs(30)),
            ..options()
        });
        let pieces = [
            Waiting {
                complete: false,
                ..waiting("queued: 3")
            },
            waiting("queued: 2"),
            waiting("queued: 1"),
        ];
        let pieces = stream::iter(pieces.map(|piece| Ok(TimelineItem::Waiting(Some(piece)))))
            .chain(feed(story().drain(..1).collect()));
        case.watch
            .follow(session(), pieces, pending())
            .await
            .unwrap();
        assert!(case.out.text().starts_with(out), "{:?}", case.out.text());
        assert!(
            case.notes.text().starts_with(notes),
            "{:?}",
            case.notes.text()
        );
        assert_eq!(
            case.notes.text().matches("queued").count(),
            notes.matches("queued").count()
        );
        assert!(case.out.text().contains("● started"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_reason_for_a_wait_is_noted_again_only_if_it_changes_or_after_an_event() {
    let item = |reason: &str, text: &str| {
        let waiting = Waiting {
            text: text.to_owned(),
            reason: reason.to_owned(),
            complete: true,
        };
        Ok(TimelineItem::Waiting(Some(waiting)))
    };
    let event = |index: usize| Ok(TimelineItem::Event(story()[index].clone()));
    for (live, json) in [(Live::Off, false), (Live::Off, true), (Live::Redraw, false)] {
        let mut case = case(Options {
            live,
            json,
            timeout: Some(Duration::from_secs(30)),
            ..options()
        });
        let items = vec![
            event(0),
            item("llm", "waiting 1 s"),
            item("llm", "waiting 2 s"),
            item("db", "no database"),
            Ok(TimelineItem::Waiting(None)),
            event(1),
            item("db", "no database again"),
        ];
        let feed = stream::iter(items).chain(stream::pending());
        case.watch.follow(session(), feed, pending()).await.unwrap();
        let out = case.out.text();
        let notes = case.notes.text();

        if live == Live::Redraw {
            assert!(
                out.contains("no database again") && !notes.contains("database"),
                "{out:?} {notes:?}"
            );
        } else {
            assert!(
                notes.starts_with("waiting 1 s\nno database\nno database again\nNo end"),
                "{notes:?}"
            );
            assert!(!out.contains("waiting"), "{out:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_drill_is_not_said_to_continue() {
    let mut case = case(Options {
        ends_with_us: true,
        ..options()
    });
    let interrupt = tokio::time::sleep(Duration::from_secs(1)); // paused time: when everything else is idle
    let watched = case
        .watch
        .follow(session(), feed(story().drain(..3).collect()), interrupt)
        .await
        .unwrap();
    assert_eq!(watched, Watched::Over(Exit::Interrupted));
    assert_eq!(
        case.notes.text(),
        "Interrupted: the drill ends, and its investigation with it.\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_ends_the_watching_and_names_the_command_to_continue() {
    let mut case = case(Options {
        timeout: Some(Duration::from_secs(30)),
        ..options()
    });
    let watched = case
        .watch
        .follow(session(), feed(story().drain(..3).collect()), pending())
        .await
        .unwrap();
    assert_eq!(watched, Watched::Over(Exit::StillRunning));
    assert_eq!(
        case.notes.text(),
        "No end after 30 s. The investigation continues: tarsy watch a41c9e02\n"
    );
    let shown: Vec<_> = case
        .out
        .text()
        .lines()
        .skip(2)
        .map(|line| line.chars().skip(12).take(10).collect::<String>())
        .collect();
    assert_eq!(
        shown,
        [
            "● started ".to_owned(),
            "● stage   ".to_owned(),
            "∴ thinking".to_owned()
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_without_an_event_is_noted_once() {
    let mut case = case(Options {
        timeout: Some(Duration::from_secs(30)),
        ..options()
    });
    let watched = case
        .watch
        .follow(session(), stream::pending(), pending())
        .await
        .unwrap();
    assert_eq!(watched, Watched::Over(Exit::StillRunning));
    assert_eq!(
        case.notes.text(),
        format!(
            "waiting: session a41c9e02 has no event yet; it is in the queue, or there is no such session\n\
             No end after 30 s. To watch it again: tarsy watch {}\n",
            session()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_detaches_and_never_cancels() {
    let mut case = case(Options {
        live: Live::Redraw,
        ..options()
    });
    let feed = stream::iter([Ok(TimelineItem::Delta(half_sentence()))]).chain(stream::pending());
    let interrupt = tokio::time::sleep(Duration::from_secs(1)); // paused time: when everything else is idle
    let watched = case.watch.follow(session(), feed, interrupt).await.unwrap();
    assert_eq!(watched, Watched::Over(Exit::Interrupted));
    assert_eq!(
        case.out.text(),
        "            writing… The pod was\r\u{1b}[2K"
    );
    assert_eq!(
        case.notes.text(),
        "Detached. The investigation continues: tarsy watch a41c9e02\n"
    );
    // Without an event the watcher does not know whether the session is running.
    let at_once = case
        .watch
        .follow(session(), stream::pending(), ready(()))
        .await
        .unwrap();
    assert_eq!(at_once, Watched::Over(Exit::Interrupted));
}

#[tokio::test(start_paused = true)]
async fn a_half_sentence_can_be_read_from_a_pipe_before_it_is_durable() {
    let mut case = case(Options {
        live: Live::Lines,
        ..options()
    });
    let (pieces, rest) = tokio::sync::mpsc::channel(4);
    let feed = stream::unfold(rest, |mut rest| async move {
        rest.recv().await.map(|piece| (Ok(piece), rest))
    });
    pieces
        .send(TimelineItem::Delta(half_sentence()))
        .await
        .unwrap();
    {
        let mut following = std::pin::pin!(case.watch.follow(session(), feed, pending()));
        assert!(
            tokio::time::timeout(Duration::from_millis(1), &mut following)
                .await
                .is_err()
        );
        assert_eq!(case.out.text(), "            writing… The pod was\n");
        let more = Delta {
            offset: 11,
            delta: " killed".to_owned(),
            ..half_sentence()
        };
        pieces.send(TimelineItem::Delta(more)).await.unwrap();
        assert!(
            tokio::time::timeout(Duration::from_millis(50), &mut following)
                .await
                .is_err()
        );
        assert_eq!(case.out.text(), "            writing… The pod was\n");
        assert!(
            tokio::time::timeout(Duration::from_millis(60), &mut following)
                .await
                .is_err()
        );
        assert_eq!(
            case.out.text(),
            "            writing… The pod was\n            writing… The pod was killed\n"
        );
        drop(pieces);
        let error = following.await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!("timeline of session {} broke off before its end", session())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn deltas_are_json_lines_when_asked_for() {
    for (live, expected) in [(Live::Off, None), (Live::Lines, Some(half_sentence()))] {
        let mut case = case(Options {
            json: true,
            live,
            ..options()
        });
        let feed = stream::iter([Ok(TimelineItem::Delta(half_sentence()))]);
        assert!(case.watch.follow(session(), feed, pending()).await.is_err());
        let printed: Option<Delta> = case
            .out
            .text()
            .lines()
            .next()
            .map(|line| serde_json::from_str(line).unwrap());
        assert_eq!(printed, expected);
    }
}
