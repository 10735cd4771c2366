//! Tests of the identity of unknown JSON.

use serde_json::json;

use super::*;

fn of_json(value: &Value) -> String {
    identity(value).key
}

#[test]
fn another_time_value_state_or_order_is_the_same_condition() {
    let first = json!({
        "id": 17, "name": "Disk [FIRING] 94% full", "host": "db-1", "state": "down", "message": "94 % on db-1",
        "check": {"id": 5, "checked_at": "2026-11-25T10:00:00Z"}, "tags": ["b", "a"], "took": 0.12,
    });
    let again = json!({
        "tags": ["a", "b"], "check": {"checked_at": "2026-11-25T11:00:00Z", "id": 5}, "took": 3,
        "id": 18, "name": "Disk [OK] 12% full", "host": "db-1", "state": "up", "message": "all is well",
    });
    assert_eq!(of_json(&first), of_json(&again));
    for (pointer, value) in [
        ("/host", json!("db-2")),
        ("/check/id", json!(6)),
        ("/name", json!("Inodes")),
    ] {
        let mut other = first.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        assert_ne!(of_json(&first), of_json(&other), "{pointer}");
    }
}

#[test]
fn a_body_of_noise_is_its_own_hash() {
    assert_ne!(of_json(&json!({"value": 1})), of_json(&json!({"value": 2})));
    assert_ne!(of_json(&json!([1])), of_json(&json!([2])));
}

#[test]
fn a_key_of_the_sender_is_found_in_any_spelling() {
    for key in ["dedup_key", "dedupKey", "Dedup-Key"] {
        assert_eq!(
            of_json(&json!({"x": 1, key: "k", "host": "db-1"})),
            "k",
            "{key}"
        );
    }
}
