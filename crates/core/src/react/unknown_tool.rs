//! The observation for a call of a tool that is not offered: suggests the closest name and lists the tools.

use crate::plan::ToolSpec;
use crate::tool_names::{self, Meant};

/// The prompt has the whole list; a long one is not repeated in full with every mistake.
const MAX_TOOLS: usize = 60;
const MAX_DESCRIPTION: usize = 160;
const MAX_NAME: usize = 120;

/// The called name, cut to [`MAX_NAME`].
pub(super) fn called(action: &str) -> String {
    cut(action, MAX_NAME)
}

/// The observation for a call of `action`. Without a list, only the form of the name is checked.
pub(super) fn unknown_tool(action: &str, tools: Option<&[ToolSpec]>) -> String {
    let mut text = format!("Observation: Error - Unknown tool '{}'.", called(action));
    if !action.contains('.') || tools.is_none() {
        text.push_str(" A tool is called by its full name, 'server.tool'.");
    }
    let tools = match tools {
        None => return text,
        Some([]) => {
            text.push_str(" No tools are available: give your Final Answer.");
            return text;
        }
        Some(tools) => tools,
    };
    if let Meant::Several(several) = tool_names::meant(action, tools) {
        let names: Vec<&str> = several.iter().map(|tool| tool.name.as_str()).collect();
        text.push_str(&format!(
            " Several servers have a tool of this name: {}. Call one of them by its whole name.",
            cut(&names.join(", "), MAX_DESCRIPTION)
        ));
    } else if let Some(meant) = meant(action, tools) {
        text.push_str(&format!(" Did you mean '{meant}'?"));
    }
    text.push_str(" Available tools:");
    for ToolSpec {
        name, description, ..
    } in tools.iter().take(MAX_TOOLS)
    {
        text.push_str("\n  - ");
        text.push_str(name);
        if let Some(first) = description.trim().lines().next() {
            text.push_str(": ");
            text.push_str(&cut(first.trim_end(), MAX_DESCRIPTION));
        }
    }
    if let Some(more @ 1..) = tools.len().checked_sub(MAX_TOOLS) {
        text.push_str(&format!(
            "\n  - and {more} more, as listed in your instructions"
        ));
    }
    text
}

pub(super) fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The tool that the model probably meant: the same name in another spelling, the only tool with this name on any
/// server, or the closest name by edit distance.
fn meant<'a>(action: &str, tools: &'a [ToolSpec]) -> Option<&'a str> {
    if action.chars().nth(MAX_NAME).is_some() {
        return None;
    }
    let wanted = normal(action);
    let named: Vec<(String, &str)> = tools
        .iter()
        .map(|tool| (normal(&tool.name), tool.name.as_str()))
        .collect();
    let only = |is_it: &dyn Fn(&str) -> bool| {
        let mut those = named
            .iter()
            .filter(|(name, _)| is_it(name))
            .map(|(_, name)| *name);
        let first = those.next();
        if those.next().is_none() { first } else { None }
    };
    // `df`, `other.df` and `df on db-3` for `host.df`.
    let word = wanted.split_whitespace().next().unwrap_or_default();
    let last = |name: &str| {
        name.split_once('.')
            .map_or(name, |(_, tool)| tool)
            .to_owned()
    };
    only(&|name| name == wanted)
        .or_else(|| only(&|name| name == word))
        .or_else(|| only(&|name| !word.is_empty() && last(name) == last(word)))
        .or_else(|| {
            let near = named
                .iter()
                .map(|(name, tool)| (strsim::levenshtein(word, name), name.chars().count(), *tool));
            near.filter(|(slips, length, _)| *slips <= length.div_ceil(5))
                .min()
                .map(|(_, _, tool)| tool)
        })
}

/// The name in lower case, with a dot between server and tool, and `_` for `-`.
fn normal(name: &str) -> String {
    let name = name
        .trim()
        .to_lowercase()
        .replace(tool_names::SEPARATOR, ".")
        .replace([':', '/'], ".")
        .replace('-', "_");
    let name = name.split_once('(').map_or(name.as_str(), |(name, _)| name);
    name.trim_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ToolSpec {
        ToolSpec {
            original_name: None,
            name: name.to_owned(),
            description: description.to_owned(),
            parameters_schema: "{}".to_owned(),
            read_only: true,
            approval: None,
        }
    }

    #[test]
    fn the_most_similar_tool_is_suggested() {
        let tools = [
            "host.df",
            "host.disk_usage",
            "db.top.tables",
            "web.status",
            "db.status",
        ]
        .map(|name| tool(name, ""));
        let table = [
            ("HOST.DF", Some("host.df")),
            ("host__df", Some("host.df")),
            ("host/disk-usage", Some("host.disk_usage")),
            ("df", Some("host.df")),
            ("shell.df", Some("host.df")),
            ("df on db-3", Some("host.df")),
            ("host.df(path=/)", Some("host.df")),
            (".df", Some("host.df")),
            ("host.disk_usge", Some("host.disk_usage")),
            ("db.top.table", Some("db.top.tables")),
            ("web.statsu", Some("web.status")),
            ("status", None),
            ("restart everything", None),
            ("host.", None),
            ("", None),
        ];
        for (action, expected) in table {
            assert_eq!(meant(action, &tools), expected, "{action}");
        }
        assert_eq!(meant(&"a.".repeat(1_000_000), &tools), None);
    }

    #[test]
    fn a_long_list_is_cut() {
        let tools: Vec<ToolSpec> = (0..500)
            .map(|n| tool(&format!("host.tool_{n:03}"), &"very useful ".repeat(100)))
            .collect();
        let text = unknown_tool(&"x".repeat(1_000_000), Some(&tools));
        assert!(text.len() < 16_000, "{}", text.len());
        assert!(
            text.ends_with("\n  - and 440 more, as listed in your instructions"),
            "{text}"
        );
        assert_eq!(text.matches('\n').count(), 61);
    }
}
