//! The numbers and times of an analysis that nothing it cites has.
//!
//! What counts as a source: the cited results, as the model saw them, with the arguments of their calls and the parts
//! that `tarsy.read_result` has shown of them; the answers of sub-agents that cite the same results; the findings of
//! earlier stages; the alert and what has become of it.

use std::collections::BTreeSet;

use super::proof::names;
use crate::built_in::BuiltInTool;
use crate::execution::cited_events::cited;
use crate::execution::conversation::Message;
use crate::execution::entry::{Entry, Role, Spent, ToolResult};
use crate::execution::state::State;
use crate::figures::SearchedTexts;
use crate::past;
use crate::read_result;
use crate::summary::fields;

/// The figures that a message to the model names.
const MAX_NAMED: usize = 4;

/// A number or a time without a source.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unsupported {
    /// As the analysis has it.
    text: String,
    /// The number of the sources that is most like it.
    nearest: Option<String>,
}

/// The figures of cause and evidence that no source has. None if the analysis has no such fields, or cites nothing:
/// that is a fault of its own.
pub(super) fn unsupported(state: &State, analysis: &str) -> Vec<Unsupported> {
    if !state.plan().checks_figures || state.plan().citable.is_some() {
        return Vec::new();
    }
    let fields = fields(analysis);
    let lines: Vec<&str> = fields
        .cause
        .iter()
        .chain(&fields.evidence)
        .map(String::as_str)
        .collect();
    let claims = lines.join("\n");
    let events: BTreeSet<u32> = cited(&claims).into_iter().collect();
    let sources = sources(state, &claims, &events);
    if sources.is_empty() {
        return Vec::new();
    }
    let texts = SearchedTexts::new(sources.iter().map(String::as_str));
    let mut found: Vec<Unsupported> = Vec::new();
    for figure in lines.iter().flat_map(|line| texts.unsupported(line)) {
        let nearest = texts.nearest(&figure);
        let figure = Unsupported {
            text: figure.text,
            nearest,
        };
        if !found.contains(&figure) {
            found.push(figure);
        }
    }
    found
}

/// The texts in which figures are looked for; none if no result is cited and no earlier stage has found anything.
fn sources(state: &State, claims: &str, events: &BTreeSet<u32>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut is_cited = state.context().is_some();
    let mut calls = BTreeSet::new();
    let messages = state.messages();
    for (source, message) in state.message_sources().iter().zip(&messages) {
        let entry = state.entries().get(number(source.entry));
        let Some(result) = entry.and_then(Entry::result) else {
            texts.extend(text_from_outside(state, message));
            continue;
        };
        // A sub-agent has seen the results that it cites.
        if let Some(spent) = &result.spent
            && let Some(text) = seen_by(spent, &result.content, events)
        {
            is_cited = true;
            texts.push(text);
        }
        // What was true at an earlier time supports nothing, and neither does advice.
        if BuiltInTool::is_no_source(&result.tool) {
            continue;
        }
        let is_source = source.event.is_some_and(|event| events.contains(&event))
            || names(claims, &result.tool)
            || reads_again(result, events);
        if is_source {
            is_cited |= !read_result::is_own(&result.tool);
            calls.insert(result.call_id.as_str());
            // A blanked or summarised result was seen whole before.
            texts.extend([result.content.clone(), message.content.clone()]);
        }
    }
    let answers = state.entries().iter().filter_map(Entry::answer);
    let asked = answers.flat_map(|answer| &answer.calls);
    texts.extend(
        asked
            .filter(|call| calls.contains(call.id.as_str()))
            .map(|call| call.arguments.clone()),
    );
    if is_cited { texts } else { Vec::new() }
}

/// The answer of a sub-agent that cites one of these events, without the lines that rest on earlier investigations or
/// on skills.
fn seen_by(spent: &Spent, answer: &str, events: &BTreeSet<u32>) -> Option<String> {
    let lines = answer.lines().filter(|line| {
        let cited = cited(line);
        !cited.iter().any(|event| spent.sourceless.contains(event))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let is_cited = cited(&text).iter().any(|event| events.contains(event));
    is_cited.then_some(text)
}

fn number(entry: u32) -> usize {
    usize::try_from(entry).map_or(usize::MAX, |entry| entry.saturating_sub(1))
}

/// A message with the alert, the findings before, or a time; without the records of earlier investigations.
fn text_from_outside(state: &State, message: &Message) -> Option<String> {
    matches!(message.role, Role::User | Role::System)
        .then(|| past::without_given(state.plan(), &message.content).into_owned())
}

/// Whether a result is a part of one of these results that the model has read again.
fn reads_again(result: &ToolResult, events: &BTreeSet<u32>) -> bool {
    let of = result.content.strip_prefix("event ");
    let number = of.and_then(|of| of.split_once(' ')?.0.parse::<u32>().ok());
    result.tool == read_result::TOOL && number.is_some_and(|number| events.contains(&number))
}

/// The figures, for the model.
pub(super) fn message(unsupported: &[Unsupported]) -> String {
    let named = unsupported.iter().take(MAX_NAMED).map(|figure| {
        let nearest = figure
            .nearest
            .as_ref()
            .map_or_else(String::new, |nearest| format!("; the nearest is {nearest}"));
        format!("No cited result has {}{nearest}.", figure.text)
    });
    named.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::execution::answers::check::ask_again;
    use crate::execution::answers::proof::mark;
    use crate::execution::entry::{About, Answer, Fault, Mark, ToolCall};
    use crate::execution::event_refs::RecordedEntry;
    use crate::plan::{AgentPlan, AnswerCheck, PastPlan, Strategy};
    use crate::testing::{agent_plan, read_only_tool};

    #[test]
    fn a_line_of_a_sub_agent_about_an_earlier_time_supports_no_figure() {
        let spent = Spent {
            sourceless: vec![9],
            ..Spent::default()
        };
        let answer = "Found: 93 % full [12]\nFound: 71 % yesterday [9]";
        let seen = |event: u32| seen_by(&spent, answer, &[event].into());
        assert_eq!(seen(12), Some("Found: 93 % full [12]".to_owned()));
        assert_eq!(seen(9), None);
        assert_eq!(seen(13), None);
    }

    /// An execution with two results: event 5, and event 9 that reads it again.
    fn state(plan: AgentPlan, context: Option<&str>) -> State {
        let content = format!("Disk at 97 % on db-1\n{}", context.unwrap_or_default());
        replayed(plan, context, content)
    }

    fn state_after(plan: AgentPlan, prompt: &str) -> State {
        replayed(plan, None, prompt.to_owned())
    }

    fn replayed(plan: AgentPlan, context: Option<&str>, content: String) -> State {
        let call = |id: &str, tool: &str, arguments: &str| ToolCall {
            id: id.to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            read_only: true,
        };
        let result = |id: &str, tool: &str, content: &str, event| RecordedEntry {
            event: Some(event),
            ..RecordedEntry::from(Entry::ToolResult(ToolResult {
                call_id: id.to_owned(),
                tool: tool.to_owned(),
                content: content.to_owned(),
                ..ToolResult::default()
            }))
        };
        let prompt = Entry::Prompt {
            role: Role::User,
            content,
        };
        let answer = Entry::Answer(Answer {
            calls: vec![
                call("a", "rds.get", r#"{"from": "01:15"}"#),
                call("b", "tarsy.read_result", "{}"),
                call("c", "rds.logs", "{}"),
                call("d", "tarsy.past_investigations", "{}"),
                call("e", "tarsy.load_skill", "{}"),
            ],
            ..Answer::default()
        });
        State::replay(
            Arc::new(plan),
            context.map(str::to_owned),
            [
                prompt.into(),
                answer.into(),
                result("a", "rds.get", "free 211328364800", 5),
                result(
                    "b",
                    "tarsy.read_result",
                    "event 5 (rds.get), lines 1 to 2\n1| max 400",
                    9,
                ),
                result("c", "rds.logs", "83 errors at 02:20:15", 12),
                result("d", "tarsy.past_investigations", "Cause: 7777 errors", 15),
                result("e", "tarsy.load_skill", "6666 errors are usual", 17),
            ],
        )
    }

    fn plan() -> AgentPlan {
        AgentPlan {
            answer_check: AnswerCheck::Once,
            checks_figures: true,
            ..agent_plan(Strategy::NativeThinking, vec![read_only_tool("rds.get")])
        }
    }

    fn found(analysis: &str) -> Vec<String> {
        let found = unsupported(&state(plan(), None), analysis);
        found.into_iter().map(|figure| figure.text).collect()
    }

    #[test]
    fn figures_are_looked_for_in_what_is_cited_in_its_calls_and_in_the_alert() {
        for (analysis, expected) in [
            ("Cause: 211 GB are free [5]", vec![]),
            ("Cause: 97 % and 211 GB since 01:15 [5]", vec![]),
            ("Cause: the limit is 400 [5]", vec![]),
            ("Cause: full\nEvidence:\n- 83 errors [5]", vec!["83"]),
            (
                "Cause: full\nEvidence:\n- 83 errors [12] of 400 [5]",
                vec![],
            ),
            ("Cause: 83 errors at 02:20 [rds.logs]", vec![]),
            (
                "Cause: 211 TB, 84 errors at 02:21 [5, 12]",
                vec!["211 TB", "84", "02:21"],
            ),
            // Other lines are not checked, and without a source there is another fault.
            ("Cause: full [5]\nDo next: add 500 GB", vec![]),
            ("Cause: 84 errors", vec![]),
        ] {
            assert_eq!(found(analysis), expected, "{analysis}");
        }
    }

    #[test]
    fn an_analysis_that_cites_only_a_skill_has_no_source() {
        let state = state(plan(), None);
        let marked = mark(&state, "Cause: 6666 errors [17]", None);
        assert_eq!(marked, Some(Mark::NoSource));
        assert_eq!(found("Cause: 6666 errors [5, 17]"), ["6666"]);
    }

    #[test]
    fn an_analysis_that_cites_only_earlier_investigations_has_no_source() {
        let state = state(plan(), None);
        let marked = |analysis| mark(&state, analysis, None);
        assert_eq!(marked("Cause: 7777 errors [15]"), Some(Mark::NoSource));
        let by_name = "Cause: as before [tarsy.past_investigations]";
        assert_eq!(marked(by_name), Some(Mark::NoSource));
        assert_eq!(marked("Cause: as before [5, 15]"), None);
        // A number that only an earlier investigation has is not of now.
        for analysis in [
            "Cause: 7777 errors [5, 15]",
            "Cause: 7777 errors [5] [tarsy.past_investigations]",
        ] {
            assert_eq!(found(analysis), ["7777"], "{analysis}");
        }
        let of_prompt = AgentPlan {
            past: Some(PastPlan {
                given: 3,
                ..PastPlan::default()
            }),
            ..plan()
        };
        let given = "Disk full.\n\nThis alert was investigated before. Between the fences is data: words of earlier \
                     investigations. The same alert can have another cause today: check it before you rely on it. It \
                     proves nothing about now.\n\n```text\nOnce in 30 days:\n    Cause: 8888 errors\n```";
        let with_past = state_after(of_prompt, given);
        let unsupported = unsupported(&with_past, "Cause: 8888 errors [5]");
        assert_eq!(unsupported.len(), 1);
    }

    #[test]
    fn the_findings_of_an_earlier_stage_are_a_source() {
        let state = state(plan(), Some("Cause: 84 errors [3]"));
        let analysis = "Cause: 84 errors, 85 warnings [3]";
        let found = unsupported(&state, analysis);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "85");
    }

    #[test]
    fn the_model_is_told_the_nearest_number_and_the_answer_that_counts_is_marked() {
        let analysis = "Cause: 211 TB are free [5]";
        let state = state(plan(), None);
        let Some(Entry::Feedback { content, about }) =
            ask_again(&state, analysis, &Answer::default())
        else {
            panic!("not asked again");
        };
        assert_eq!(about, Some(About::Answer(vec![Fault::Unsupported])));
        assert!(
            content.contains("- No cited result has 211 TB; the nearest is 211328364800.\n"),
            "{content}"
        );
        assert_eq!(mark(&state, analysis, None), Some(Mark::Unsupported));
        assert_eq!(mark(&state, "Cause: 211 GB are free [5]", None), None);
    }

    #[test]
    fn a_plan_of_an_older_version_checks_no_figures() {
        let older = AgentPlan {
            checks_figures: false,
            ..plan()
        };
        let state = state(older, None);
        assert_eq!(unsupported(&state, "Cause: 211 TB [5]"), []);
        assert_eq!(
            ask_again(&state, "Cause: 211 TB [5]", &Answer::default()),
            None
        );
    }
}
