//! The wire form of a timeline event: JSON, bounded in size.
//!
//! The bound must hold for every event, whatever a tool returned: an event that cannot be published would block all
//! later events of its session.

use serde_json::{Map, Value};

use crate::names::timeline_subject;
use tarsy_core::timeline::TimelineEvent;

/// The largest event on the wire.
pub const MAX_EVENT_BYTES: usize = 256 * 1024;

/// The size above which entries are removed from metadata that is too large.
const MAX_METADATA_ENTRY_BYTES: usize = 1024;
const MAX_METADATA_BYTES: usize = 64 * 1024;
/// Room for the notice at the end of truncated content.
const NOTICE_BYTES: usize = 128;

/// The event if it has at most `max_bytes`, else a truncated copy with `truncated` set. Deterministic.
pub(super) fn truncate(event: TimelineEvent, max_bytes: usize) -> TimelineEvent {
    if encode(&event).len() <= max_bytes {
        return event;
    }
    let bytes = event.content.len();
    let mut cut = TimelineEvent {
        truncated: true,
        content: String::new(),
        ..event.clone()
    };
    if json_len(&cut.metadata) > MAX_METADATA_BYTES.min(max_bytes / 4) {
        cut.metadata = truncate_metadata(&cut.metadata, MAX_METADATA_BYTES.min(max_bytes / 4));
    }
    let room = max_bytes.saturating_sub(encode(&cut).len() + NOTICE_BYTES);
    let kept = escaped_prefix(&event.content, room);
    cut.content = if kept.len() == bytes {
        event.content
    } else {
        format!(
            "{kept}\n[cut here: {} of {bytes} bytes; the store has all of it]",
            kept.len()
        )
    };
    cut
}

/// The event of a message on this subject. `None` for a message that is not an event, and for the event of another
/// session: a client that may publish here could repeat it with its signature.
pub(super) fn decode(subject: &str, payload: &[u8]) -> Option<TimelineEvent> {
    let event: Option<TimelineEvent> = serde_json::from_slice(payload).ok();
    event.filter(|event| timeline_subject(event.session_id) == subject)
}

/// The event's JSON.
pub(super) fn encode(event: &TimelineEvent) -> Vec<u8> {
    // Serialisation fails only for a map whose keys are not strings; an event has none.
    serde_json::to_vec(event).unwrap_or_default()
}

fn json_len(value: &Value) -> usize {
    value.to_string().len()
}

/// Keeps the small entries, which programs evaluate.
fn truncate_metadata(metadata: &Value, max_bytes: usize) -> Value {
    let Value::Object(entries) = metadata else {
        return Value::Null;
    };
    let mut kept = Map::new();
    let mut bytes = 0;
    for (key, value) in entries {
        let entry = key.len() + json_len(value);
        if entry <= MAX_METADATA_ENTRY_BYTES && bytes + entry <= max_bytes {
            bytes += entry;
            kept.insert(key.clone(), value.clone());
        }
    }
    Value::Object(kept)
}

/// The longest prefix of whole characters whose JSON form has at most `max_bytes`.
fn escaped_prefix(text: &str, max_bytes: usize) -> &str {
    let mut bytes = 0;
    for (at, character) in text.char_indices() {
        bytes += match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            _ => character.len_utf8(),
        };
        if bytes > max_bytes {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use tarsy_core::ids::SessionId;
    use tarsy_core::timeline::{EventStatus, EventType};

    fn event(content: String, metadata: Value) -> TimelineEvent {
        TimelineEvent {
            session_id: SessionId(Uuid::nil()),
            session_seq: 1,
            execution_id: None,
            sequence_number: None,
            stage: None,
            agent: None,
            iteration: None,
            attempt: None,
            event_type: EventType::ToolResult,
            status: EventStatus::Completed,
            content,
            metadata,
            created_at: chrono::DateTime::UNIX_EPOCH,
            truncated: false,
        }
    }

    #[test]
    fn an_event_within_the_bound_stays_as_it_is() {
        let small = event("text".into(), json!({"kind": "x"}));
        assert_eq!(truncate(small.clone(), MAX_EVENT_BYTES), small);
    }

    #[test]
    fn the_event_of_another_session_is_no_event_of_this_subject() {
        let one = event("text".into(), json!({}));
        let of = |session: SessionId| decode(&timeline_subject(session), &encode(&one));
        assert_eq!(
            (of(one.session_id), of(SessionId(Uuid::max()))),
            (Some(one.clone()), None)
        );
        assert_eq!(decode(&timeline_subject(one.session_id), b"{}"), None);
    }

    #[test]
    fn content_is_truncated_between_characters_with_a_notice() {
        let cut = truncate(
            event("é".repeat(200_000), json!({"kind": "x"})),
            MAX_EVENT_BYTES,
        );
        let length = encode(&cut).len();
        assert!(
            length <= MAX_EVENT_BYTES && length > MAX_EVENT_BYTES - 256,
            "{length}"
        );
        assert!(cut.truncated);
        assert_eq!(cut.metadata, json!({"kind": "x"}));
        let (kept, mark) = cut.content.split_once('\n').unwrap();
        assert_eq!(
            mark,
            format!(
                "[cut here: {} of 400000 bytes; the store has all of it]",
                kept.len()
            )
        );
        assert_eq!(kept, "é".repeat(kept.len() / 2));
    }

    #[test]
    fn oversized_metadata_keeps_its_small_entries_and_the_content() {
        let metadata = json!({"epoch": 3, "huge": "x".repeat(300_000), "kind": "y"});
        let cut = truncate(event("short".into(), metadata), MAX_EVENT_BYTES);
        assert_eq!(
            cut,
            TimelineEvent {
                truncated: true,
                ..event("short".into(), json!({"epoch": 3, "kind": "y"}))
            }
        );
    }

    proptest! {
        #[test]
        fn no_event_exceeds_the_bound_and_truncating_twice_changes_nothing(
            content in "(\\PC|[\\x00-\\x1f\"\\\\]){0,3000}",
            keys in 0_usize..400,
            value in ".{0,40}",
        ) {
            let metadata = Value::Object((0..keys).map(|key| (key.to_string(), json!(value))).collect());
            let once = truncate(event(content, metadata), 2048);
            prop_assert!(encode(&once).len() <= 2048);
            prop_assert_eq!(truncate(once.clone(), 2048), once);
        }
    }
}
