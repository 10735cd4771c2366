//! The prompts of a follow-up question.

use super::bounds::{MAX_ALERT_BYTES, MAX_REPORT_BYTES, asked, calls, cut};
use super::{MAX_QUESTION_BYTES, Thread};
use crate::code::fence_around;
use crate::plan::Strategy;
use crate::prompt::{Briefing, Prompts, line, paragraph, render, system_of};
use crate::read_result;
use crate::tool_names::shown;

const SYSTEM: &str = include_str!("../../prompts/followup_system.md");
const REACT_SYSTEM: &str = include_str!("../../prompts/followup_react_system.md");
const ANALYSE_SYSTEM: &str = include_str!("../../prompts/followup_analyse_system.md");
const FORM: &str = include_str!("../../prompts/followup_form.md");
const USER: &str = include_str!("../../prompts/followup_user.md");
const CALLS: &str = include_str!("../../prompts/followup_calls.md");
const ASKED: &str = include_str!("../../prompts/followup_asked.md");
const CONCLUDE: &str = include_str!("../../prompts/followup_conclude.md");
const REACT_CONCLUDE: &str = include_str!("../../prompts/followup_react_conclude.md");

/// The prompts of the agent that answers `question` about the investigation of `thread`.
pub fn prompts(briefing: &Briefing<'_>, thread: &Thread, question: &str) -> Prompts {
    let (system, conclusion) = match briefing.strategy {
        Strategy::React => (REACT_SYSTEM, REACT_CONCLUDE),
        Strategy::NativeThinking if !briefing.tools.is_empty() => (SYSTEM, CONCLUDE),
        Strategy::NativeThinking
        | Strategy::SingleCall
        | Strategy::Synthesis
        | Strategy::SynthesisNativeThinking => (ANALYSE_SYSTEM, CONCLUDE),
    };
    Prompts {
        system: system_of(system, &form(briefing), briefing),
        user: user(thread, question, briefing),
        conclusion: conclusion.trim().to_owned(),
    }
}

/// The strategy in which the agent calls tools: without tools, it calls none.
fn calling(briefing: &Briefing<'_>) -> Strategy {
    if briefing.tools.is_empty() {
        Strategy::SingleCall
    } else {
        briefing.strategy
    }
}

/// The form of the answer, with the name of a tool as the agent calls it.
fn form(briefing: &Briefing<'_>) -> String {
    let tool = shown("k8s.describe_pod", calling(briefing));
    render(FORM, &[("tool", &tool)])
}

/// Tells the agent how it gets the results of the investigation.
fn results(briefing: &Briefing<'_>) -> String {
    let can_read = briefing
        .tools
        .iter()
        .any(|tool| tool.name == read_result::TOOL);
    if can_read {
        let reader = shown(read_result::TOOL, calling(briefing));
        format!("{reader} shows one; its tool shows the present state")
    } else {
        "call a tool again if you need one".to_owned()
    }
}

fn user(thread: &Thread, question: &str, briefing: &Briefing<'_>) -> String {
    let alert = cut(&thread.alert.text, MAX_ALERT_BYTES);
    let report = cut(&report(thread), MAX_REPORT_BYTES);
    let calls = calls(&thread.calls, calling(briefing));
    let results = results(briefing);
    let asked = asked(thread);

    let question = cut(question, MAX_QUESTION_BYTES);
    let fence = fence_around(&[
        &thread.alert.alert_type,
        &alert,
        &report,
        &calls,
        &asked,
        &question,
    ]);
    let part = |template, name, text: &str| {
        if text.is_empty() {
            String::new()
        } else {
            paragraph(&render(
                template,
                &[("fence", &fence), ("results", &results), (name, text)],
            ))
        }
    };
    let values = [
        ("severity", thread.alert.severity.as_str()),
        ("outcome", &thread.status.as_str().replace('_', " ")),
        ("alert_type", &line(&thread.alert.alert_type)),
        ("alert", &alert),
        ("report", &report),
        ("calls", &part(CALLS, "calls", &calls)),
        ("asked", &part(ASKED, "asked", &asked)),
        ("question", &question),
        ("fence", &fence),
    ];
    render(USER, &values)
}

/// The analysis of the investigation, or why there is none.
fn report(thread: &Thread) -> String {
    match (
        thread
            .analysis
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty()),
        &thread.error,
    ) {
        (Some(analysis), _) => analysis.to_owned(),
        (None, Some(error)) => format!("There is no analysis: {error}"),
        (None, None) => "There is no analysis.".to_owned(),
    }
}

#[cfg(test)]
mod tests;
