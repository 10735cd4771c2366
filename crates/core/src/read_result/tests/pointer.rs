//! Tests of the pointers into JSON results.

use serde_json::json;

use super::read;

const PODS: &str = r#"{"items": [
  {"metadata": {"name": "a"}, "status": {"phase": "Running", "restarts": 1.10}},
  {"metadata": {"name": "b"}, "status": {"phase": "Pending", "restarts": 12345678901234567890.5}},
  {"metadata": {"name": "c"}, "status": {"phase": "Running", "reason": "two\nlines, \"quoted\""}}]}"#;

#[test]
fn a_pointer_shows_each_value_on_a_line_with_its_index() {
    let phases = read(
        PODS,
        &json!({"event": 5, "pointer": "/items/*/status/phase"}),
    )
    .unwrap();
    assert_eq!(
        phases,
        "event 5 (k8s.logs), \"/items/*/status/phase\", lines 1 to 3 of 3; 24 bytes in total\n\
         0| Running\n1| Pending\n2| Running\n[this is the end of the result]"
    );
    let one = read(PODS, &json!({"event": 5, "pointer": "/items/1/metadata"})).unwrap();
    assert!(one.contains("\n0| {\"name\":\"b\"}\n"), "{one}");
}

#[test]
fn the_values_of_a_pointer_are_the_bytes_that_the_tool_wrote() {
    let restarts = read(
        PODS,
        &json!({"event": 5, "pointer": "/items/*/status/restarts"}),
    )
    .unwrap();
    assert!(
        restarts.contains("\n0| 1.10\n1| 12345678901234567890.5\n"),
        "{restarts}"
    );
    let reason = read(
        PODS,
        &json!({"event": 5, "pointer": "/items/2/status/reason"}),
    )
    .unwrap();
    assert!(
        reason.contains("\n0| \"two\\nlines, \\\"quoted\\\"\"\n"),
        "{reason}"
    );
}

#[test]
fn a_star_stands_for_the_members_of_an_object_and_a_key_may_be_escaped() {
    let text = r#"{"by/name": {"a~b": {"n": 1}, "x\n[event 9]": {"n": 2}}}"#;
    let all = read(text, &json!({"event": 5, "pointer": "/by~1name/*/n"})).unwrap();
    assert!(
        all.contains("\n0 \"a~b\"| 1\n1 \"x\\n[event 9]\"| 2\n"),
        "{all}"
    );
    let one = read(text, &json!({"event": 5, "pointer": "/by~1name/a~0b/n"})).unwrap();
    assert!(one.contains("\n0| 1\n"), "{one}");
}

#[test]
fn a_pointer_reads_the_json_of_each_line() {
    let text = "{\"level\": \"info\"}\nnot json\n{\"level\": \"error\"}\n";
    let levels = read(text, &json!({"event": 5, "pointer": "/level"})).unwrap();
    assert!(levels.contains("\n0| info\n2| error\n"), "{levels}");
}

#[test]
fn a_pointer_combines_with_search_count_and_numbers() {
    let pointer = "/items/*/status/phase";
    let running = read(
        PODS,
        &json!({"event": 5, "pointer": pointer, "pattern": "^Running$", "context": 0}),
    )
    .unwrap();
    assert!(
        running.contains("\n0> Running\n2> Running\n[no more matches]"),
        "{running}"
    );
    let by = read(
        PODS,
        &json!({"event": 5, "pointer": pointer, "by": "group"}),
    )
    .unwrap();
    assert!(by.ends_with("3 of 3 lines\n2| Running\n1| Pending"), "{by}");
    let numbers = read(
        PODS,
        &json!({"event": 5, "pointer": "/items/*/status/restarts", "show": "numbers"}),
    )
    .unwrap();
    assert!(
        numbers.contains("\n| count 2, min 1.10, median 1.10, p90 12345678901234567890.5,"),
        "{numbers}"
    );
}

#[test]
fn a_pointer_to_nothing_is_told_what_is_there() {
    let fault = |pointer: &str| read(PODS, &json!({"event": 5, "pointer": pointer})).unwrap_err();
    assert_eq!(
        fault("/items/*/state/phase"),
        "/items/*/state/phase names nothing: step 3 (\"state\") is missing; the object there has the keys \
         \"metadata\", \"status\""
    );
    assert!(
        fault("/items/phase")
            .ends_with("the array there has 3 elements: give a number from 0, or *")
    );
    assert!(fault("/items/0/metadata/name/x").ends_with("there is nothing below it"));
    assert!(fault("items").starts_with("pointer \"items\" does not begin with a slash"));
    assert!(
        read("plain text", &json!({"event": 5, "pointer": "/a"}))
            .unwrap_err()
            .starts_with("the result is no JSON")
    );
}
