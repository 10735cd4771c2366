//! The parts of a prompt that the operators choose: what can be reached, an example, several actions in one answer.

use std::collections::BTreeMap;

use super::{Briefing, line, paragraph, render};
use crate::plan::NativeTool;
use crate::read_result;

const SERVERS: &str = include_str!("../prompts/reach_servers.md");

/// The choices of the operators for the prompts of an agent; by default none.
#[derive(Clone, Copy, Debug, Default)]
pub struct PromptOptions<'a> {
    /// The words about servers. Without any, the prompt has no list of them.
    pub abouts: &'a [ServerAbout],
    /// The tools of its provider that the agent may use.
    pub native_tools: &'a [NativeTool],
    /// Whether the form of the answer has an example, for a weak model.
    pub has_example: bool,
    /// Whether an answer in the text format may have several read-only actions.
    pub has_several_actions: bool,
}

/// The operators' words about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAbout {
    pub server: String,
    /// One line.
    pub about: String,
}

impl PromptOptions<'_> {
    /// The sentence about the number of calls in an answer, where tools are bound.
    pub(super) fn calls(self) -> &'static str {
        if self.has_example {
            "One call at a time is enough."
        } else {
            "Ask for several things at once when they do not depend on each other."
        }
    }

    /// The sentences about the number of actions in an answer, in the text format.
    pub(super) fn actions(self) -> &'static str {
        if self.has_several_actions {
            "Actions that only read may stand together in one answer: repeat \"Action:\" and \"Action Input:\" for each. Their\n\
             results come in the same order, each as an observation of its own. An action that may change something stands\n\
             alone in its answer."
        } else {
            "One action for each answer."
        }
    }
}

/// The place in an answer for what could not be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// A line of the form.
    Line,
    /// Any sentence.
    Sentence,
}

impl Unseen {
    pub(super) fn in_form(answer_form: &str) -> Self {
        if answer_form.contains("\nNot seen:") {
            Self::Line
        } else {
            Self::Sentence
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Line => "What you would have to look at there belongs in the line \"Not seen\".",
            Self::Sentence => "Say in your answer what you would have to look at there.",
        }
    }
}

/// The section about what can be reached: each server that offers a tool, and the provider's own tools. Empty if the
/// operators have described no such server.
pub(super) fn servers(briefing: &Briefing<'_>, unseen: Unseen) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in briefing.tools {
        if !read_result::is_own(&tool.name) {
            *counts.entry(tool.server()).or_default() += 1;
        }
    }
    let abouts = briefing.options.abouts;
    let about = |server: &str| abouts.iter().find(|about| about.server == server);
    if !counts.keys().any(|server| about(server).is_some()) {
        return String::new();
    }
    let mut lines = Vec::new();
    for (server, count) in counts {
        let tools = if count == 1 { "tool" } else { "tools" };
        let about =
            about(server).map_or_else(String::new, |about| format!(": {}", line(&about.about)));
        lines.push(format!("- {server}{about} ({count} {tools})"));
    }
    if !briefing.options.native_tools.is_empty() {
        let names: Vec<&str> = briefing
            .options
            .native_tools
            .iter()
            .map(|tool| tool.as_str())
            .collect();
        lines.push(format!("- tools of your provider: {}", names.join(", ")));
    }
    let values = [
        ("servers", lines.join("\n")),
        ("unseen", unseen.words().to_owned()),
    ];
    let values: Vec<(&str, &str)> = values
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    paragraph(&render(SERVERS, &values))
}
