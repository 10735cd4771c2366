//! Checks one MCP server, the tools that it lists, and the system that it queries.

use std::sync::Arc;

use super::{Check, Checked, Verdict, in_one_line};
use crate::process::tools::{Backend, checked};
use tarsy_config::Config;
use tarsy_engine::plan::route;
use tarsy_mcp::Inventory;

/// The characters of a failure of a backend that are shown.
const MAX_FAILURE: usize = 200;

pub(super) async fn check(name: String, config: Arc<Config>) -> Checked {
    let check = format!("mcp {name}");
    let (inventory, backend) = checked(&config, &name).await.map_err(|error| {
        let used = chains_with(&config, &name);
        let used = if used.is_empty() {
            "no chain uses it".to_owned()
        } else {
            format!("used by chains {used}")
        };
        Check::new(check.as_str(), Verdict::Fail, format!("{error:#}; {used}"))
    })?;
    Ok(vec![found(check, &inventory, &backend)])
}

/// The check of a configuration without tools; `None` if there are some.
pub(super) fn no_servers(config: &Config) -> Option<Check> {
    let detail = "no MCP server is configured: an investigation can look at nothing, so its analysis is unproven";
    let fix = "add a server to mcp_servers; tarsy config example kubernetes prints one";
    config
        .mcp_servers
        .is_empty()
        .then(|| Check::new("tools", Verdict::Warn, detail.to_owned()).fix(fix))
}

fn found(check: String, inventory: &Inventory, backend: &Backend) -> Check {
    let Inventory { tools, unknown, .. } = inventory;
    let read_only = tools
        .iter()
        .filter(|tool| tool.offered && tool.read_only)
        .count();
    let withheld = tools.iter().filter(|tool| !tool.offered).count();
    let mut detail = format!("{} tools, {read_only} read-only", tools.len());
    if withheld > 0 {
        detail.push_str(&format!(
            "; {withheld} not offered (tarsy tools shows the reasons)"
        ));
    }
    if let Backend::Fails { tool, error } = backend {
        let error: String = in_one_line(error).chars().take(MAX_FAILURE).collect();
        let detail = format!("{detail}; the server answers, but {tool} fails: {error}");
        return Check::new(check, Verdict::Fail, detail)
            .fix(format!("tarsy tools call {tool} shows the whole answer"));
    }
    if !unknown.is_empty() {
        let detail = format!(
            "{detail}; the server has no tool of these names: {}",
            unknown.join(", ")
        );
        return Check::new(check, Verdict::Warn, detail)
            .fix("tarsy tools shows the names of its tools");
    }
    if !tools.iter().any(|tool| tool.offered) {
        return Check::new(check, Verdict::Warn, format!("{detail}: a model can call none"))
            .fix("list tools that change nothing in read_only, or other tools that may be called in allow");
    }
    match backend {
        Backend::Answers { tool, took } => {
            let detail = format!("{detail}; {tool} answers in {} ms", took.as_millis());
            Check::new(check, Verdict::Ok, detail)
        }
        Backend::NotChecked | Backend::Fails { .. } => {
            let fix =
                "no tool can be called without arguments: name one with probe: {tool, arguments}";
            Check::new(check, Verdict::Ok, format!("{detail}; backend not checked")).fix(fix)
        }
    }
}

fn chains_with(config: &Config, server: &str) -> String {
    let mut chains: Vec<&str> = config.agent_chains.keys().map(String::as_str).collect();
    chains.retain(|chain| {
        route::choose(config, "", Some(chain)).is_ok_and(|route| {
            route::servers_of(config, &route)
                .iter()
                .any(|name| name == server)
        })
    });
    chains.join(", ")
}
