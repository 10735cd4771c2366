//! Tools that a skill names in code spans, compared with those that the servers offer.

use std::collections::{BTreeMap, BTreeSet};

use super::library::SourcedSkill;

/// The full names of the tools that a skill names and its server does not offer. `offered` has the tools of each server
/// whose list is known; a name with any other word before its point is no tool.
pub fn missing_tools(
    known: &SourcedSkill,
    offered: &BTreeMap<String, BTreeSet<String>>,
) -> BTreeSet<String> {
    let skill = &known.skill;
    let texts = std::iter::once(&skill.body).chain(skill.files.values());
    texts
        .flat_map(|text| code_spans(&text.text))
        .filter_map(|span| missing(span, offered))
        .collect()
}

/// The texts between single backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The name at the beginning of a code span, as `server.tool` or `server__tool`, if the server has no such tool.
fn missing(span: &str, offered: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let end = span.find(|letter: char| !is_part_of_name(letter));
    let name = end.map_or(span, |end| span.get(..end).unwrap_or_default());
    let (server, tool) = name.split_once("__").or_else(|| name.split_once('.'))?;
    let tools = offered.get(server)?;
    let full = format!("{server}.{tool}");
    (!tool.is_empty() && !tools.contains(&full)).then_some(full)
}

fn is_part_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}
