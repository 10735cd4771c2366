//! Names of tools: the full name `server.tool`, its spelling for a model, and the tool that a called name means.
//!
//! Providers accept no dots in the names of functions. A tool that a request declares is therefore `server__tool` for
//! its model, and every text that this model gets has this spelling. A model that writes its calls as text has the full
//! name in both places. The LLM service converts names with the functions of this module.

use std::borrow::Cow;

use super::plan::{AgentPlan, Strategy, ToolNames, ToolSpec};

/// The separator of server and tool in the name of a function; no part of a name contains it.
pub const SEPARATOR: &str = "__";

/// Prefixes that models put before the name of a function, as in their training data.
const PREFIXES: [&str; 2] = ["functions.", "default_api."];

/// The name of the function that a request declares for the tool of this full name.
pub fn function(name: &str) -> String {
    name.replace('.', SEPARATOR)
}

/// The full name of the tool of a function.
pub fn full(function: &str) -> String {
    function.replace(SEPARATOR, ".")
}

/// The name by which a model of this strategy can call the tool of this full name.
pub fn shown(name: &str, strategy: Strategy) -> Cow<'_, str> {
    if strategy.binds_tools() {
        Cow::Owned(function(name))
    } else {
        Cow::Borrowed(name)
    }
}

impl AgentPlan {
    /// The name of a tool in texts for the model.
    pub fn shown<'a>(&self, tool: &'a str) -> Cow<'a, str> {
        match self.tool_names {
            ToolNames::Full => Cow::Borrowed(tool),
            ToolNames::AsCalled => shown(tool, self.strategy),
        }
    }
}

/// The tools that a called name may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant<'a> {
    One(&'a ToolSpec),
    /// The name is that of a tool of several servers.
    Several(Vec<&'a ToolSpec>),
    None,
}

/// The tool that a called name means: the one of this full name, in either spelling and without the prefixes of some
/// models; otherwise the only one with this name at any server.
pub fn meant<'a>(called: &str, tools: &'a [ToolSpec]) -> Meant<'a> {
    if let Some(tool) = tools.iter().find(|tool| tool.name == called) {
        return Meant::One(tool);
    }
    let called = full(called.trim());
    let name = PREFIXES
        .iter()
        .find_map(|prefix| called.strip_prefix(prefix))
        .unwrap_or(&called);
    for full in [called.as_str(), name] {
        if let Some(tool) = tools.iter().find(|tool| tool.name == full) {
            return Meant::One(tool);
        }
    }
    let those: Vec<&ToolSpec> = tools
        .iter()
        .filter(|tool| has_own_name(tool, name))
        .collect();
    match those.as_slice() {
        [] => Meant::None,
        [only] => Meant::One(only),
        _ => Meant::Several(those),
    }
}

/// Whether a tool has this name at its server, as it is offered or as the server has it.
fn has_own_name(tool: &ToolSpec, name: &str) -> bool {
    let offered = tool.name.split_once('.').map(|(_, own)| own);
    offered == Some(name) || tool.original_name.as_deref() == Some(name)
}

/// The only tool that a called name means.
pub fn only<'a>(called: &str, tools: &'a [ToolSpec]) -> Option<&'a ToolSpec> {
    match meant(called, tools) {
        Meant::One(tool) => Some(tool),
        Meant::Several(_) | Meant::None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read_only_tool;

    fn called(name: &str) -> Vec<String> {
        let renamed = ToolSpec {
            original_name: Some("files/read".to_owned()),
            ..read_only_tool("b.files_read_12345678")
        };
        let tools = [
            read_only_tool("a.get"),
            read_only_tool("a.functions.x"),
            read_only_tool("b.get"),
            read_only_tool("b.logs"),
            read_only_tool("functions.top"),
            renamed,
        ];
        let names = |tools: &[&ToolSpec]| tools.iter().map(|tool| tool.name.clone()).collect();
        match meant(name, &tools) {
            Meant::One(tool) => names(&[tool]),
            Meant::Several(several) => names(&several),
            Meant::None => Vec::new(),
        }
    }

    #[test]
    fn a_called_name_means_one_tool_or_several_or_none() {
        for (name, expected) in [
            ("a.get", vec!["a.get"]),
            ("a__get", vec!["a.get"]),
            (" a__get ", vec!["a.get"]),
            ("functions.a.get", vec!["a.get"]),
            ("functions__a__get", vec!["a.get"]),
            ("default_api.a__get", vec!["a.get"]),
            ("default_api.logs", vec!["b.logs"]),
            ("functions.top", vec!["functions.top"]),
            ("functions__top", vec!["functions.top"]),
            ("logs", vec!["b.logs"]),
            ("files/read", vec!["b.files_read_12345678"]),
            ("files_read_12345678", vec!["b.files_read_12345678"]),
            ("get", vec!["a.get", "b.get"]),
            ("functions.get", vec!["a.get", "b.get"]),
            ("c.logs", vec![]),
            ("LOGS", vec![]),
            ("log", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(called(name), expected, "{name}");
        }
    }

    #[test]
    fn a_name_is_shown_as_its_strategy_calls_it() {
        let shown = |strategy| shown("k8s.get", strategy).into_owned();
        assert_eq!(shown(Strategy::NativeThinking), "k8s__get");
        assert_eq!(shown(Strategy::React), "k8s.get");
        assert_eq!(full(&function("a.b.c")), "a.b.c");
    }
}
