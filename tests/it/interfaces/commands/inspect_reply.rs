//! `tarsy inspect reply`: its output; it needs no server and no configuration, and refuses no input.

use serde_json::{Value, json};

use super::run_with;

async fn inspected(args: &[&str], text: &[u8]) -> Value {
    let args = [&["inspect", "reply"], args].concat();
    // These addresses are invalid, so a command that uses one of them fails.
    let env = [
        ("NATS_URL", "nats://127.0.0.1:1"),
        ("DATABASE_URL", "nonsense"),
        ("TARSY_CONFIG", "/nowhere.yaml"),
    ];
    let ran = run_with(&env, &args, text).await.exits(0);
    assert_eq!(ran.err, "");
    serde_json::from_str(&ran.out).unwrap()
}

#[tokio::test]
async fn an_answer_is_shown_with_every_field_in_its_order() {
    let text = b"Thought: Which disk?\nAction: host.df\nAction Input:\n  path: /var\n  depth: 2\n";
    let ran = run_with(&[], &["inspect", "reply", "-"], text)
        .await
        .exits(0);
    let keys: Vec<&str> = ran
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("  \"")?.split_once('"'))
        .map(|(key, _)| key)
        .collect();
    let expected = [
        "kind",
        "thought",
        "action",
        "action_input",
        "arguments",
        "final_answer",
        "found",
        "feedback",
    ];
    assert_eq!(keys, expected);
    assert_eq!(
        serde_json::from_str::<Value>(&ran.out).unwrap(),
        json!({
            "kind": "action", "thought": "Which disk?", "action": "host.df", "action_input": "path: /var\ndepth: 2",
            "arguments": {"path": "/var", "depth": 2}, "final_answer": null,
            "found": ["thought", "action", "action_input"], "feedback": null,
        })
    );
}

#[tokio::test]
async fn a_tool_is_known_if_the_list_names_it() {
    let call = b"Action: host.df\nAction Input: {}";
    assert_eq!(
        inspected(&["--tools", "db.top.tables, host.df"], call).await["kind"],
        "action"
    );
    let unknown = inspected(&["--tools", "db.top.tables,host.du"], call).await;
    let feedback = "Observation: Error - Unknown tool 'host.df'. Did you mean 'host.du'? Available tools:\n  \
                    - db.top.tables\n  - host.du";
    assert_eq!(
        (&unknown["kind"], &unknown["feedback"]),
        (&json!("unknown_tool"), &json!(feedback))
    );
    assert_eq!(
        inspected(&["--tools", ""], call).await["kind"],
        "unknown_tool"
    );
    assert_eq!(inspected(&[], call).await["kind"], "action");
}

#[tokio::test]
async fn an_answer_is_read_from_a_file_and_a_missing_file_is_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "Final Answer: Full.").unwrap();
    let path = file.path().display().to_string();
    assert_eq!(inspected(&[&path], b"").await["final_answer"], "Full.");
    let ran = run_with(&[], &["inspect", "reply", "/no/such/file"], b"")
        .await
        .exits(1);
    assert!(
        ran.err.starts_with("tarsy: cannot read /no/such/file"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn any_bytes_are_accepted_and_control_characters_are_escaped() {
    for bytes in [&b""[..], b"\xff\xfe\x00", b"\x1b[2J", &[0xc3; 70_000]] {
        assert_eq!(inspected(&[], bytes).await["kind"], "malformed");
    }
    let text = "Final Answer: a\u{1b}[2J\u{9b}2J\u{7f}b";
    let ran = run_with(&[], &["inspect", "reply"], text.as_bytes())
        .await
        .exits(0);
    assert!(
        !ran.out.contains(|c: char| c.is_control() && c != '\n'),
        "{:?}",
        ran.out
    );
    let shown: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(shown["final_answer"], "a\u{1b}[2J\u{9b}2J\u{7f}b");
}
