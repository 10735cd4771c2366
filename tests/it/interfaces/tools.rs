//! `tarsy tools` and `tarsy tools call` as processes with real servers.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::commands::{Ran, run_with};
use crate::support::process::TARSY;

/// A folder with a configuration whose server `k8s` has tools with all kinds of names and rules.
struct Configured {
    folder: TempDir,
}

impl Configured {
    fn new(rest: &str) -> Self {
        let configured = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let evidence = |name: &str| {
            let answers = json!([
                {"contains": {"what": "fail"}, "file": "text", "is_error": true},
                {"contains": {"what": "long"}, "file": "long"},
                {"file": "text"},
            ]);
            let read_only = !name.contains("delete");
            json!({"description": "Looks.", "read_only": read_only, "schema": {"type": "object"}, "answers": answers})
        };
        let names = [
            "pods/list.v2",
            "pods_get",
            "pods_delete",
            "secrets__get",
            "pods_delete_all",
        ];
        let tools: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), evidence(name)))
            .collect();
        std::fs::write(
            configured.file("evidence.yaml"),
            json!({"tools": tools}).to_string(),
        )
        .unwrap();
        std::fs::write(
            configured.file("text"),
            "two pods, password=hunter2-hunter2",
        )
        .unwrap();
        std::fs::write(configured.file("long"), "a line of a log\n".repeat(4_000)).unwrap();
        let folder = configured.folder.path().display();
        let text = format!(
            "mcp_servers:\n  k8s:\n    command: {TARSY}\n    args: [evidence-server, {folder}]\n    \
             env: {{TARSY_TOOL_CALLS_FILE: {folder}/calls}}\n    deny: [secrets__get]\n    allow: [pods_delete]\n{rest}"
        );
        std::fs::write(configured.file("tarsy.yaml"), text).unwrap();
        configured
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn tools(&self, args: &[&str]) -> Ran {
        let config = self.file("tarsy.yaml");
        run_with(
            &[("TARSY_CONFIG", config.to_str().unwrap())],
            &[&["tools"], args].concat(),
            b"",
        )
        .await
    }

    fn calls(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file("calls")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[tokio::test]
async fn every_tool_is_listed_with_the_reason_why_it_is_offered_or_not() {
    let configured = Configured::new("agents:\n  sre: {tools: ['k8s.pods_*']}\n");
    let ran = configured.tools(&["--json"]).await.exits(0);
    let listed: Vec<_> = ran
        .json()
        .iter()
        .map(|tool| {
            json!([
                tool["tool"],
                tool["offered"],
                tool["because"],
                tool["withheld"]
            ])
        })
        .collect();
    let declared = "its server declares it read-only";
    assert_eq!(
        listed,
        [
            json!(["pods_delete", true, "allow names it", null]),
            json!(["pods_delete_all", false, null, "it may change something"]),
            json!(["pods_get", true, declared, null]),
            json!(["pods/list.v2", true, declared, null]),
            json!(["secrets__get", false, null, "deny names it"]),
        ]
    );
    assert_eq!(ran.json()[3]["name"], "k8s.pods_list_v2_9302877e");
    let note = "agent sre of chain default gets 2 tools: its key tools does not name 1 others";
    assert!(ran.err.contains(note), "{}", ran.err);
    let shown = configured.tools(&[]).await.exits(0);
    let words = shown.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "k8s: 5 tools, 3 offered",
        "is \"pods/list.v2\" at its server",
        "deny names it.",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[tokio::test]
async fn a_tool_is_called_by_either_name_and_its_result_is_masked() {
    let configured = Configured::new("");
    for name in ["k8s.pods/list.v2", "k8s.pods_list_v2_9302877e"] {
        let ran = configured
            .tools(&["call", name, "--args", r#"{"namespace": "shop"}"#])
            .await
            .exits(0);
        assert_eq!(ran.out, "two pods, password=[masked]\n");
    }
    let expected = json!({"tool": "pods/list.v2", "arguments": {"namespace": "shop"}});
    assert_eq!(configured.calls(), [expected.clone(), expected]);
    let failed = configured
        .tools(&[
            "call",
            "k8s.pods_get",
            "--args",
            r#"{"what": "fail"}"#,
            "--json",
        ])
        .await
        .exits(1);
    let outcome = &failed.json()[0];
    assert_eq!(
        (&outcome["is_error"], &outcome["read_only"], &outcome["cut"]),
        (&json!(true), &json!(true), &json!(false))
    );
    let long = ["call", "k8s.pods_get", "--args", r#"{"what": "long"}"#];
    let cut = configured.tools(&long).await.exits(0);
    assert!(
        cut.out.len() < 40_000 && cut.err.contains("64000 bytes in all; --whole prints them"),
        "{}",
        cut.err
    );
    let whole = configured
        .tools(&[&long[..], &["--whole"]].concat())
        .await
        .exits(0);
    assert_eq!(whole.out.trim_end().lines().count(), 4_000);
}

#[tokio::test]
async fn a_call_follows_the_rules_of_the_configuration() {
    let configured = Configured::new("");
    for (args, code, reason) in [
        (
            &["call", "k8s.pods_delete"][..],
            1,
            "k8s.pods_delete may change something: --allow-changes calls it",
        ),
        (
            &["call", "k8s.pods_delete_all", "--allow-changes"],
            1,
            "not offered to models: it may change something",
        ),
        (
            &["call", "k8s.secrets__get"],
            1,
            "is not offered to models: deny names it",
        ),
        (
            &["call", "k8s.nothing"],
            1,
            "k8s has no tool \"k8s.nothing\": tarsy tools k8s lists them",
        ),
        (
            &["call", "other.x"],
            1,
            "there is no MCP server \"other\"; defined: k8s",
        ),
        (
            &["call", "pods_get"],
            1,
            "\"pods_get\" is no tool; accepted: server.tool",
        ),
        (
            &["call", "k8s.pods_get", "--args", "[]"],
            2,
            "accepted: a JSON object",
        ),
    ] {
        let ran = configured.tools(args).await.exits(code);
        assert!(ran.err.contains(reason), "{args:?}: {}", ran.err);
    }
    assert_eq!(configured.calls(), Vec::<Value>::new());
    configured
        .tools(&["call", "k8s.pods_delete", "--allow-changes"])
        .await
        .exits(0);
    assert_eq!(
        configured.calls(),
        [json!({"tool": "pods_delete", "arguments": {}})]
    );
}
