//! What a model is told that missed the format.

use crate::investigation::plan::ToolSpec;

const REMINDER: &str = include_str!("../prompts/react_reminder.md");

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// In a few words, for people.
    pub(super) summary: String,
    /// For the model.
    told: String,
}

/// What is wrong with an answer that has these sections and is neither a call nor a final answer.
pub(super) fn problem(found: &[&str]) -> Problem {
    let has = |section: &str| found.contains(&section);
    let (summary, told) = match (has("action"), has("action_input"), has("thought"), has("final_answer")) {
        (true, false, _, false) => (
            "an action without its input".to_owned(),
            "Your response has an \"Action:\" but no \"Action Input:\". Every action needs its input, also when it is \
             empty."
                .to_owned(),
        ),
        (false, true, _, false) => (
            "an action input without its action".to_owned(),
            "Your response has an \"Action Input:\" but no \"Action:\". Name the tool on a line of its own before it."
                .to_owned(),
        ),
        (false, false, true, false) => (
            "a thought and nothing after it".to_owned(),
            "Your response has a \"Thought:\" and nothing after it. Go on with an \"Action:\" and its \"Action \
             Input:\", or with your \"Final Answer:\"."
                .to_owned(),
        ),
        (false, false, false, false) => {
            ("none of the sections".to_owned(), "Your response has none of the sections that are needed.".to_owned())
        }
        (true, true, ..) | (.., true) => incomplete(found),
    };
    Problem { summary, told }
}

fn incomplete(found: &[&str]) -> (String, String) {
    const NAMES: [(&str, &str); 4] = [
        ("thought", "Thought:"),
        ("action", "Action:"),
        ("action_input", "Action Input:"),
        ("final_answer", "Final Answer:"),
    ];
    let list = |wanted: bool| -> String {
        let names = NAMES.iter().filter(|(key, _)| found.contains(key) == wanted).map(|(_, name)| *name);
        names.collect::<Vec<_>>().join(", ")
    };
    let (found, missing) = (list(true), list(false));
    (
        format!("a section without its text, of {found}"),
        format!(
            "Incomplete ReAct format.\nFound: {found}\nMissing: {missing}\nA section that is there but empty counts as missing."
        ),
    )
}

/// The message for an answer with this problem.
pub(super) fn malformed(problem: &Problem) -> String {
    format!("{}\n\n{}", problem.told, REMINDER.trim())
}

/// The observation for a call of something that is not offered.
pub(super) fn unknown_tool(action: &str, tools: &[ToolSpec]) -> String {
    let form = if action.contains('.') { "" } else { " Tools must be in 'server.tool' format." };
    let mut text = format!("Observation: Error - Unknown tool '{action}'.{form}");
    if tools.is_empty() {
        text.push_str(" No tools are available: give your Final Answer.");
    } else {
        text.push_str(" Available tools:");
    }
    for ToolSpec { name, description, .. } in tools {
        text.push_str("\n  - ");
        text.push_str(name);
        if let Some(first) = description.lines().next().filter(|line| !line.is_empty()) {
            text.push_str(": ");
            text.push_str(first);
        }
    }
    text
}
