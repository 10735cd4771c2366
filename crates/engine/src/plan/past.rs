//! The plan of earlier investigations: which of them an agent may know, and which ones are read before a session opens.
//! Pure.

use super::route::Route;
use super::stage_agents::{all_agents, strategy};
use tarsy_config::{Config, Settings};
use tarsy_core::past::{By, PastQuery, tool};
use tarsy_core::plan::{PastPlan, PastScope, ToolSpec};

/// The earlier investigations that an agent with these settings may know; `None` for none.
pub(super) fn plan(settings: &Settings) -> Option<PastPlan> {
    if strategy(settings).synthesises() {
        return None;
    }
    let plan = of_layers(settings);
    (plan.given > 0 || has_tool(settings)).then_some(plan)
}

fn of_layers(settings: &Settings) -> PastPlan {
    let past = settings.past;
    PastPlan {
        given: past.given.unwrap_or_default(),
        days: past.days.unwrap_or_default(),
        scope: past.scope.unwrap_or_default(),
    }
}

/// The tool that searches in earlier investigations, if the settings allow it.
pub(super) fn tool(settings: &Settings) -> Option<ToolSpec> {
    has_tool(settings).then(tool::spec)
}

fn has_tool(settings: &Settings) -> bool {
    settings.past.tool.unwrap_or_default()
}

/// The earlier investigations of an alert that the agents of this chain are given: as many, and as old, as any of them
/// may know. `None` if no agent is given any.
pub(super) fn given_to(config: &Config, route: &Route<'_>) -> Option<PastQuery> {
    let plans: Vec<PastPlan> = all_agents(config, route.chain)
        .iter()
        .filter_map(|agent| plan(&agent.settings))
        .filter(|plan| plan.given > 0)
        .collect();
    Some(PastQuery {
        by: By::SameAlert,
        days: plans.iter().map(|plan| plan.days).max()?,
        limit: plans.iter().map(|plan| plan.given).max()?,
        scope: PastScope::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::route::choose;

    const CONFIG: &str = "
agents:
  sre: {past: {given: 2, days: 60, scope: all}}
  dba: {past: {given: 5, tool: false}}
  quiet: {past: {given: 0}}
  blind: {past: {given: 0, tool: false}}
  writer: {iteration_strategy: synthesis}
agent_chains:
  all: {stages: [{agents: [{name: sre}, {name: dba}, {name: quiet}, {name: blind}]}, {agents: [{name: writer}]}]}
  none: {stages: [{agents: [{name: quiet}, {name: blind}]}, {agents: [{name: writer}]}]}
";

    #[test]
    fn each_layer_decides_and_the_widest_agent_decides_what_is_read() {
        let text = format!("{CONFIG}defaults: {{chain: all, past: {{days: 14}}}}\n");
        let config = Config::parse("f", &text, &|_| None).unwrap();
        let of_agent = |name: &str| {
            let settings = config.agents[name].settings.over(&config.defaults.settings);
            (plan(&settings), tool(&settings).is_some())
        };
        let expected = |given, days, scope| Some(PastPlan { given, days, scope });
        assert_eq!(of_agent("sre"), (expected(2, 60, PastScope::All), true));
        assert_eq!(of_agent("dba"), (expected(5, 14, PastScope::Chain), false));
        assert_eq!(of_agent("quiet"), (expected(0, 14, PastScope::Chain), true));
        assert_eq!(of_agent("blind"), (None, false));
        assert_eq!(of_agent("writer").0, None);
        let read = |chain| given_to(&config, &choose(&config, "t", Some(chain)).unwrap());
        let query = read("all").unwrap();
        assert_eq!((query.by, query.days, query.limit), (By::SameAlert, 60, 5));
        assert_eq!(read("none"), None);
    }
}
