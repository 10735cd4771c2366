//! The schema and the reader agree: each file that loads is valid, and what the schema refuses has a fault.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use super::schema;
use crate::read::context::Context;
use crate::read::reader::Field;
use crate::read::yaml;
use crate::{Config, EXAMPLE, EXAMPLES};

fn validator() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| {
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        jsonschema::options()
            .offline()
            .build(&schema)
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The faults that the schema finds in a text.
pub(crate) fn refused(text: &str) -> Vec<String> {
    let root = yaml::to_node(text).unwrap();
    let context = Context::new(&|_| None);
    let value = Field::root(&context, &root).json();
    if value.is_null() {
        return Vec::new();
    }
    let errors = validator().iter_errors(&value);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, end, found);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
}

#[test]
fn each_example_is_valid() {
    let mut texts: Vec<(String, String)> = vec![("example".to_owned(), EXAMPLE.to_owned())];
    let cases = EXAMPLES.iter();
    texts.extend(cases.map(|example| (example.case.to_owned(), example.text.to_owned())));
    let mut paths = Vec::new();
    files(&repository().join("examples"), "tarsy.yaml", &mut paths);
    files(&repository().join("examples/config"), ".yaml", &mut paths);
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        texts.push((path.display().to_string(), text));
    }
    assert!(texts.len() > 20, "{}", texts.len());
    for (name, text) in texts {
        assert_eq!(refused(&text), Vec::<String>::new(), "{name}");
    }
}

/// The blocks of code of a document that are sections of a file.
fn blocks(document: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let mut is_fenced = false;
    for line in document.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            blocks.push(String::new());
        } else if is_fenced || line.trim().is_empty() || line.starts_with("    ") {
            let line = if is_fenced {
                line
            } else {
                line.get(4..).unwrap_or_default()
            };
            let block = blocks.last_mut().unwrap();
            block.push_str(line);
            block.push('\n');
        } else if !blocks.last().unwrap().is_empty() {
            blocks.push(String::new());
        }
    }
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let sections = schema["properties"].as_object().unwrap();
    blocks.retain(|text| {
        let Ok(root) = yaml::to_node(text) else {
            return false;
        };
        let context = Context::new(&|_| None);
        let keys = Field::root(&context, &root).json();
        let keys = keys.as_object().cloned().unwrap_or_default();
        !keys.is_empty() && keys.keys().all(|key| sections.contains_key(key))
    });
    blocks
}

#[test]
fn each_block_of_the_documents_is_valid() {
    let mut paths = Vec::new();
    files(&repository().join("docs"), ".md", &mut paths);
    let mut count = 0;
    for path in paths {
        for block in blocks(&std::fs::read_to_string(&path).unwrap()) {
            count += 1;
            assert_eq!(
                refused(&block),
                Vec::<String>::new(),
                "{}\n{block}",
                path.display()
            );
        }
    }
    assert!(count > 15, "{count}");
}

#[test]
fn each_configuration_of_the_chart_is_valid() {
    let mut paths = Vec::new();
    files(
        &repository().join("deploy/helm/tarsy/ci"),
        "-values.yaml",
        &mut paths,
    );
    let mut count = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut config = String::new();
        for line in text.lines().skip_while(|line| *line != "config:").skip(1) {
            if !line.is_empty() && !line.starts_with([' ', '#']) {
                break;
            }
            config.push_str(line.get(2..).unwrap_or_default());
            config.push('\n');
        }
        count += usize::from(!config.is_empty());
        assert_eq!(refused(&config), Vec::<String>::new(), "{}", path.display());
    }
    assert!(count > 3, "{count}");
}

#[test]
fn what_the_schema_refuses_has_a_fault() {
    for text in [
        "wroker: {}",
        "worker: []",
        "worker: {slots: 0}",
        "worker: {slots: lots}",
        "worker: {slots: 1.5}",
        "worker: {lease: 30}",
        "worker: {lease: 30 seconds}",
        "worker: {probe_models: maybe}",
        "worker: {max_alert_bytes: 1GB}",
        "dedupe: {on_resolved: cancle}",
        "defaults: {iteration_strategy: native-thinkin}",
        "defaults: {max_iteration: 3}",
        "defaults: {summarize_over: 5K}",
        "agents: {sre: {instructions: 7}}",
        "agents: {sre: {tools: k8s.pods}}",
        "agent_chains: {a: {stages: []}}",
        "agent_chains: {a: {}}",
        "agent_chains: {a: {stages: [{agents: [sre]}]}}",
        "agent_chains: {a: {stages: [{agents: [{}]}]}}",
        "agent_chains: {a: {default: 'no', stages: [{agents: [{name: sre}]}]}}",
        "agent_chains: {a: {stages: [{agents: [{name: sre}], replicas: 11}]}}",
        "llm_providers: {a: {model: m}}",
        "llm_providers: {a: {provider: opnai, model: m}}",
        "llm_providers: {a: {provider: openai, model: m, temperature: 3}}",
        "llm_providers: {a: {provider: google, model: m, thinking: {level: low, budget: 1k}}}",
        "llm_providers: {a: {provider: openai, model: m, price: {input: -1, output: 1}}}",
        "llm_providers: {a: {provider: openai, model: m, price: {input: 1}}}",
        "llm_service: {tls: {key: /k}}",
        "llm_service: {concurrency: {gogle: 1}}",
        "mcp_servers: {a: {command: c, type: http2}}",
        "mcp_servers: {a: {command: c, env: {A: 1}}}",
        "mcp_servers: {a: {command: c, max_memory: 1}}",
        "mcp_servers: {a: {url: 'http://h/mcp', not_run_on: [200]}}",
        "mcp_servers: {a: {command: c, probe: {arguments: {}}}}",
        "mcp_servers: {a: {command: c, probe: {tool: t, arguments: [1]}}}",
        "streams: {placement: {}}",
        "streams: {alerts: {max_age: 1h}}",
        "routes: [{match: []}]",
        "routes: [{name: a, match: [], priority: urgent}]",
        "receive: {headers: [tarsy-chain]}",
        "runbooks: {hosts: [{token_file: /t}]}",
        "runbooks: {hosts: [7]}",
        "notifications: {a: {url_env: A}}",
        "notifications: {a: {kind: mail}}",
        "notifications: {a: {kind: teams, url_env: A, timeout: 1}}",
        "sources: {a: {like: nothing}}",
        "sources: {a: {severity: {form: /a}}}",
    ] {
        assert_ne!(refused(text), Vec::<String>::new(), "{text}");
        assert!(Config::parse("f", text, &|_| None).is_err(), "{text}");
    }
}

#[test]
fn a_variable_may_stand_for_each_scalar() {
    let text = "worker: {slots: '${A:-4}', lease: '${B:-30s}', probe_models: '${C:-true}', max_alert_bytes: '${D:-1MiB}'}\n\
                dedupe: {on_resolved: '${E:-cancel}'}\ndefaults: {summarize_over: '${F:-5k}'}\n\
                llm_providers: {a: {provider: '${G:-openai}', model: '${H:-m}', temperature: '${I:-0.5}'}}";
    assert_eq!(refused(text), Vec::<String>::new());
    assert_eq!(
        Config::parse("f", text, &|_| None).map(|config| config.worker.slots),
        Ok(4)
    );
}

#[test]
fn the_chart_has_the_schema_of_the_file() {
    let path = repository().join("deploy/helm/tarsy/values.schema.json");
    let chart: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(
        chart["properties"]["config"] == super::of_file(),
        "in deploy/helm/tarsy: jq --slurpfile file <(tarsy config schema) \
         '.properties.config = ($file[0] | del(.[\"$schema\"], .title))' values.schema.json"
    );
}
