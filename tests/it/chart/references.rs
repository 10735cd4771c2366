//! Values that name other values: one that leads nowhere is refused with its path, any other is accepted.

use serde_json::{Value, json};

use super::helm::{Case, Helm};

/// A name that no values file defines.
const ABSENT: &str = "no-such-name";
/// The folder of the files of `notifications.secrets`.
const FOLDER: &str = "/var/run/secrets/tarsy/notifications/";

/// A value that names another one.
struct Reference {
    /// The map in `config`, as a JSON pointer.
    map: String,
    key: &'static str,
    /// A value that leads to an existing object.
    present: Value,
    /// The same, leading nowhere.
    absent: Value,
}

impl Reference {
    fn new(map: &str, key: &'static str, present: &str) -> Self {
        Self {
            map: map.to_owned(),
            key,
            present: json!(present),
            absent: json!(ABSENT),
        }
    }

    fn list(map: &str, key: &'static str, present: &str) -> Self {
        Self {
            map: map.to_owned(),
            key,
            present: json!([present]),
            absent: json!([ABSENT]),
        }
    }

    fn with(self, absent: &str) -> Self {
        Self {
            absent: json!(absent),
            ..self
        }
    }

    /// As a refusal names it: `config.agent_chains.default.stages[0].llm_provider`.
    fn path(&self) -> String {
        let parts = self
            .map
            .split('/')
            .skip(1)
            .map(|part| match part.parse::<usize>() {
                Ok(index) => format!("[{index}]"),
                Err(_) => format!(".{part}"),
            });
        format!("config{}.{}", parts.collect::<String>(), self.key)
    }

    /// The values with this reference, and nothing else that leads nowhere.
    fn values(&self, value: &Value) -> Value {
        let mut config = json!({
            "llm_providers": {
                "main": {"provider": "google", "model": "m", "api_key_env": "GEMINI_API_KEY"},
                "other": {"provider": "google", "model": "m", "api_key_env": "GEMINI_API_KEY"},
            },
            "mcp_servers": {"k8s": {"url": "https://tools.example.com/mcp"}},
            "agents": {"sre": {}},
            "agent_chains": {"default": {
                "default": true, "synthesis": {},
                "stages": [{"name": "look", "agents": [{"name": "sre"}], "synthesis": {}}],
            }},
            "defaults": {"llm_provider": "main", "synthesis": {}},
            "notifications": {
                "team": {"kind": "slack", "channel": "C1"},
                "mail": {"kind": "email", "smtp": {"host": "h"}, "from": "a@b.example", "to": ["c@d.example"]},
            },
        });
        config.pointer_mut(&self.map).unwrap()[self.key] = value.clone();
        json!({
            "config": config,
            "llmService": {"keys": [{"variable": "GEMINI_API_KEY", "secret": {"name": "keys", "key": "gemini"}}]},
            "notifications": {"secrets": [{"file": "slack", "secret": {"name": "chats", "key": "slack"}}]},
            "worker": {
                "extraEnv": [{"name": "K8S_TOKEN", "value": "x"}],
                "sidecars": [{"name": "tools", "image": "registry.example.com/tools:1", "port": 8080}],
            },
        })
    }
}

fn references() -> Vec<Reference> {
    let chain = "/agent_chains/default";
    let layers = [
        "/defaults".to_owned(),
        "/agents/sre".to_owned(),
        chain.to_owned(),
        format!("{chain}/stages/0"),
        format!("{chain}/stages/0/agents/0"),
    ];
    let of_layer = |layer: &String| {
        [
            Reference::new(layer, "llm_provider", "main"),
            Reference::new(layer, "summarize_with", "other"),
            Reference::list(layer, "fallback_providers", "other"),
            Reference::list(layer, "mcp_servers", "k8s"),
        ]
    };
    let mut all: Vec<Reference> = layers.iter().flat_map(of_layer).collect();
    for synthesis in [
        "/defaults/synthesis".to_owned(),
        format!("{chain}/synthesis"),
        format!("{chain}/stages/0/synthesis"),
    ] {
        all.push(Reference::new(&synthesis, "agent", "sre"));
        all.push(Reference::new(&synthesis, "llm_provider", "main"));
    }
    let route = "/notifications/team";
    for key in ["url_file", "token_file", "secret_file"] {
        let present = format!("{FOLDER}slack");
        all.push(Reference::new(route, key, &present).with(&format!("{FOLDER}{ABSENT}")));
    }
    for key in ["password_file", "ca_file"] {
        let present = format!("{FOLDER}slack");
        let absent = format!("{FOLDER}{ABSENT}");
        all.push(Reference::new("/notifications/mail/smtp", key, &present).with(&absent));
    }
    all.extend([
        Reference::new(&format!("{chain}/stages/0/agents/0"), "name", "sre"),
        Reference::new("/defaults", "chain", "default"),
        Reference::list(route, "chains", "default"),
        Reference::new("/llm_providers/main", "api_key_env", "GEMINI_API_KEY"),
        Reference::new("/mcp_servers/k8s", "token_env", "K8S_TOKEN"),
        Reference::new("/mcp_servers/k8s", "url", "http://localhost:8080/mcp")
            .with("http://127.0.0.1:8081/mcp"),
    ]);
    all
}

#[test]
fn a_value_that_names_an_absent_one_is_refused_and_any_other_is_accepted() {
    let Some(helm) = Helm::find() else { return };
    let references = references();
    let case = |value: &dyn Fn(&Reference) -> Value| -> Vec<Case> {
        references
            .iter()
            .map(|reference| Case::with("default", &reference.values(&value(reference))))
            .collect()
    };
    let present = helm.render(&case(&|reference| reference.present.clone()));
    for (reference, rendered) in references.iter().zip(present) {
        assert!(
            rendered.is_ok(),
            "{}: {:?}",
            reference.path(),
            rendered.err()
        );
    }
    let absent = helm.render(&case(&|reference| reference.absent.clone()));
    for (reference, rendered) in references.iter().zip(absent) {
        let path = reference.path();
        let fault = rendered.expect_err(&format!("{path} leads nowhere and is accepted"));
        assert!(fault.contains(&path), "{path}: {fault}");
        assert_eq!(fault.matches("\n  - ").count(), 1, "{path}: {fault}");
    }
}

#[test]
fn a_key_in_a_config_map_and_a_program_that_no_image_has_are_refused() {
    let Some(helm) = Helm::find() else { return };
    let set = [
        (
            json!({"config": {"llm_providers": {"a": {"provider": "google", "model": "m", "api_key": "abc"}}}}),
            "additional properties 'api_key' not allowed",
        ),
        (
            json!({"config": {"mcp_servers": {"k": {"command": "kubernetes-mcp-server"}}}}),
            "k.command is a program",
        ),
    ];
    let cases: Vec<Case> = set
        .iter()
        .map(|(set, _)| Case::with("default", set))
        .collect();
    for ((_, expected), rendered) in set.iter().zip(helm.render(&cases)) {
        let fault = rendered.unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
    let own = json!({
        "config": {"mcp_servers": {"k": {"command": "kubernetes-mcp-server"}}},
        "worker": {"image": {"repository": "registry.example.com/tarsy-with-tools", "tag": "1"}},
    });
    assert!(helm.render(&[Case::with("default", &own)])[0].is_ok());
}

#[test]
fn without_a_least_number_of_workers_their_absence_is_no_alert() {
    let Some(helm) = Helm::find() else { return };
    let rules = |least: u32| {
        let set = json!({
            "autoscaling": {"minReplicas": least},
            "metrics": {"prometheusRule": {"enabled": true}},
        });
        let release = helm.render(&[Case::with("keda", &set)]).remove(0).unwrap();
        let groups = release.of_kind("PrometheusRule")[0]["spec"]["groups"]
            .as_array()
            .unwrap()
            .clone();
        let rules = groups
            .iter()
            .flat_map(|group| group["rules"].as_array().unwrap().clone());
        rules
            .filter_map(|rule| Some(rule["alert"].as_str()?.to_owned()))
            .collect::<Vec<_>>()
    };
    let (none, one) = (rules(0), rules(1));
    assert_eq!(one.len(), none.len() + 1);
    let more: Vec<&String> = one.iter().filter(|alert| !none.contains(alert)).collect();
    assert_eq!(more, ["TarsyNoWorkers"]);
}
