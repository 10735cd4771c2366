//! `tarsy sources show`: the YAML of one source, with the keys that it inherits by `like`.

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};

use super::{is_of_user, unknown_source};
use crate::cli::args::SourcesShowArgs;
use crate::cli::commands::output::{print, print_json};
use crate::cli::exit::Exit;
use tarsy_config::read::yaml;
use tarsy_config::{BUILTIN, Config};

/// The keys of a source in the order in which a body is read.
const ORDER: [&str; 19] = [
    "like",
    "recognise",
    "ignore",
    "parse",
    "each",
    "capture",
    "type",
    "title",
    "severity",
    "status",
    "test",
    "key",
    "labels",
    "links",
    "runbook",
    "refs",
    "at",
    "text",
    "auth",
];

pub(super) fn show(config: &Config, args: &SourcesShowArgs) -> anyhow::Result<Exit> {
    let all = config.sources.all();
    if !all.contains(&args.name) {
        bail!("{}", unknown_source(&all, &args.name));
    }
    if args.json {
        print_json(&json!({&args.name: resolved(config, &args.name)?}))?;
        return Ok(Exit::Done);
    }
    let builtin = BUILTIN.iter().find(|builtin| builtin.name == args.name);
    let text = match builtin {
        Some(builtin) if !is_of_user(config, &args.name) => builtin.text.to_owned(),
        Some(_) | None => declaration(config, &args.name)?,
    };
    let mut lines = vec![format!("  {}:", args.name)];
    lines.extend(text.lines().map(|line| {
        if line.is_empty() {
            String::new()
        } else {
            format!("    {line}")
        }
    }));
    print(&lines)?;
    Ok(Exit::Done)
}

fn declaration(config: &Config, name: &str) -> anyhow::Result<String> {
    let fields = resolved(config, name)?;
    let by_code = match like(config, name).as_deref().unwrap_or(name) {
        base @ ("alertmanager" | "grafana") => {
            format!("# code reads the bodies of {base}; only refs and auth can be set\n")
        }
        _ => String::new(),
    };
    if fields.is_empty() {
        return Ok(format!("{by_code}{{}}"));
    }
    let yaml = tarsy_config::yaml(&Value::Object(fields));
    Ok(format!("{by_code}{yaml}"))
}

/// The keys of the source that this one is like, replaced by its own.
fn resolved(config: &Config, name: &str) -> anyhow::Result<Map<String, Value>> {
    let own = written(config, name);
    let base_name = like(config, name).unwrap_or_else(|| name.to_owned());
    let base = BUILTIN.iter().find(|builtin| builtin.name == base_name);
    let mut fields = match base {
        Some(base) => object(&yaml::to_json(base.text).context("a built-in source")?),
        None => Map::new(),
    };
    if base_name != name {
        fields.remove("recognise");
    }
    let has_base = !fields.is_empty();
    fields.extend(
        own.into_iter()
            .filter(|(key, _)| key != "like" || !has_base),
    );
    let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
    fields.sort_by_key(|(key, _)| {
        let place = ORDER.iter().position(|known| known == key);
        place.unwrap_or(ORDER.len())
    });
    Ok(fields.into_iter().collect())
}

fn like(config: &Config, name: &str) -> Option<String> {
    Some(written(config, name).get("like")?.as_str()?.to_owned())
}

/// The keys in the file of the user; none for a built-in source.
fn written(config: &Config, name: &str) -> Map<String, Value> {
    let sources = json!(config.sources);
    sources.get(name).map(object).unwrap_or_default()
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
