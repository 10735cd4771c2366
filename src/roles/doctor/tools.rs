//! Checks one MCP server and the tools that it lists.

use std::sync::Arc;

use super::{Check, Checked, Verdict};
use crate::config::Config;
use crate::engine::plan::planner;
use crate::mcp::Inventory;
use crate::roles::tools::list;

pub(super) async fn check(name: String, config: Arc<Config>) -> Checked {
    let check = format!("mcp {name}");
    let inventory = list(&config, &name).await.map_err(|error| {
        let used = chains_with(&config, &name);
        let used = if used.is_empty() { "no chain uses it".to_owned() } else { format!("used by chains {used}") };
        Check::new(check.as_str(), Verdict::Fail, format!("{error:#}; {used}"))
    })?;
    Ok(vec![found(check, &inventory)])
}

fn found(check: String, Inventory { tools, unknown, .. }: &Inventory) -> Check {
    let read_only = tools.iter().filter(|tool| tool.offered && tool.read_only).count();
    let withheld = tools.iter().filter(|tool| !tool.offered).count();
    let mut detail = format!("stdio, {} tools, {read_only} read-only", tools.len());
    if withheld > 0 {
        detail.push_str(&format!("; {withheld} not offered (tarsy tools shows the reasons)"));
    }
    if !unknown.is_empty() {
        let detail = format!("{detail}; the server has no tool of these names: {}", unknown.join(", "));
        return Check::new(check, Verdict::Warn, detail).fix("tarsy tools shows the names of its tools");
    }
    if tools.iter().any(|tool| tool.offered) {
        return Check::new(check, Verdict::Ok, detail);
    }
    Check::new(check, Verdict::Warn, format!("{detail}: a model can call none"))
        .fix("list tools that change nothing in read_only, or other tools that may be called in allow")
}

fn chains_with(config: &Config, server: &str) -> String {
    let uses = |chain: &&String| {
        planner::choose(config, "", Some(chain.as_str()))
            .is_ok_and(|route| planner::servers_of(config, &route).iter().any(|name| name == server))
    };
    config.agent_chains.keys().filter(uses).cloned().collect::<Vec<_>>().join(", ")
}
