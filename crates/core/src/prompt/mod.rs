//! The prompts of an agent: the templates in `prompts/*.md` with an alert inserted.
//!
//! Three sources are kept apart by their place: the operators' instructions are a section of the system message; a
//! question and an alert stand in fences of the user message. Only the instructions may allow a change. Text from
//! outside is inserted once and never expanded again, and it cannot close its fences.

mod approved;
mod options;
mod review;
mod sub_agent;

use std::borrow::Cow;

use self::options::Unseen;
use super::alert::Alert;
use super::code::fence_around;
use super::plan::{Strategy, ToolSpec};
use super::runbook::{FetchedRunbook, RunbookHost, is_listed};
use super::tool_descriptions;
use super::tool_names::shown;

pub use self::approved::approvals;
pub use self::options::{PromptOptions, ServerAbout};

pub use self::review::review;
pub use self::sub_agent::sub_agent;

const INVESTIGATE_SYSTEM: &str = include_str!("../prompts/investigate_system.md");
const ANALYSE_SYSTEM: &str = include_str!("../prompts/analyse_system.md");
const REACT_SYSTEM: &str = include_str!("../prompts/react_system.md");
const SYNTHESISE_SYSTEM: &str = include_str!("../prompts/synthesise_system.md");
const ANSWER_FORM: &str = include_str!("../prompts/answer_form.md");
const SOURCES_RESULTS: &str = include_str!("../prompts/sources_results.md");
const SOURCES_FINDINGS: &str = include_str!("../prompts/sources_findings.md");
const SOURCES_ALERT: &str = include_str!("../prompts/sources_alert.md");
const ANSWER_EXAMPLE: &str = include_str!("../prompts/answer_example.md");
const REACH_READ_ONLY: &str = include_str!("../prompts/reach_read_only.md");
const REACH_APPROVED: &str = include_str!("../prompts/reach_approved.md");
/// Follows the section about changes that no person approves.
const REACH_APPROVED_TOO: &str = "\n  Calls of some more tools wait for a person: see the section \"Calls that a person approves\".";
const REACH_CHANGES: &str = include_str!("../prompts/reach_changes.md");
const REACH_CHANGES_UNASKED: &str = include_str!("../prompts/reach_changes_unasked.md");
const INSTRUCTIONS: &str = include_str!("../prompts/instructions.md");
const INVESTIGATE_USER: &str = include_str!("../prompts/investigate_user.md");
const SYNTHESISE_USER: &str = include_str!("../prompts/synthesise_user.md");
const CONTEXT: &str = include_str!("../prompts/context.md");
/// The word in both marks of `prompts/context.md`, in lower case.
const MARK: &str = "stage_context";
const RUNBOOK: &str = include_str!("../prompts/runbook.md");
const RUNBOOK_PAGE: &str = include_str!("../prompts/runbook_page.md");
const RUNBOOK_FAILED: &str = include_str!("../prompts/runbook_failed.md");
const RUNBOOK_REFUSED: &str = include_str!("../prompts/runbook_refused.md");
const RUNBOOK_CLAIMED: &str = include_str!("../prompts/runbook_claimed.md");
const RUNBOOK_TO_NAME: &str = include_str!("../prompts/runbook_to_name.md");
const ALERT_UPDATE: &str = include_str!("../prompts/alert_update.md");
const CONCLUDE: &str = include_str!("../prompts/conclude.md");
const REACT_CONCLUDE: &str = include_str!("../prompts/react_conclude.md");

/// The agent that the prompts are for.
#[derive(Clone, Copy, Debug)]
pub struct Briefing<'a> {
    pub agent: &'a str,
    pub strategy: Strategy,
    /// The tools that it may call.
    pub tools: &'a [ToolSpec],
    /// The instructions of its configuration; may be empty.
    pub instructions: &'a str,
    /// Model calls before the conclusion is forced.
    pub max_iterations: u32,
    /// Hosts whose runbooks it is asked to read; a runbook of any other host is only a claim of the alert.
    pub runbooks: &'a [RunbookHost],
    /// The alert's runbook, if tarsy has fetched it or tried to.
    pub fetched: Option<&'a FetchedRunbook>,
    pub options: PromptOptions<'a>,
    /// The sections about its skills and its sub-agents; may be empty.
    pub skills: &'a str,
}

/// The texts that a plan freezes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompts {
    pub system: String,
    /// The first user message.
    pub user: String,
    /// The user message that forces a conclusion.
    pub conclusion: String,
}

/// The texts of a strategy.
struct Texts {
    system: &'static str,
    sources: &'static str,
    user: &'static str,
    runbook: &'static str,
    /// Whether a fetched runbook is a part of the first user message.
    has_runbook: bool,
    conclusion: &'static str,
}

fn texts(briefing: &Briefing<'_>) -> Texts {
    let analyse = Texts {
        system: ANALYSE_SYSTEM,
        sources: SOURCES_ALERT,
        user: INVESTIGATE_USER,
        runbook: RUNBOOK_TO_NAME,
        has_runbook: true,
        conclusion: CONCLUDE,
    };
    let investigate = Texts {
        system: INVESTIGATE_SYSTEM,
        sources: SOURCES_RESULTS,
        runbook: RUNBOOK,
        ..analyse
    };
    match briefing.strategy {
        Strategy::React => Texts {
            system: REACT_SYSTEM,
            conclusion: REACT_CONCLUDE,
            ..investigate
        },
        Strategy::NativeThinking if !briefing.tools.is_empty() => investigate,
        Strategy::NativeThinking | Strategy::SingleCall => analyse,
        Strategy::Synthesis | Strategy::SynthesisNativeThinking => Texts {
            system: SYNTHESISE_SYSTEM,
            sources: SOURCES_FINDINGS,
            user: SYNTHESISE_USER,
            has_runbook: false,
            ..analyse
        },
    }
}

/// The prompts of one agent for one alert.
pub fn prompts(briefing: &Briefing<'_>, alert: &Alert) -> Prompts {
    let texts = texts(briefing);
    Prompts {
        system: system(briefing),
        user: user(&texts, alert, briefing),
        conclusion: texts.conclusion.trim().to_owned(),
    }
}

/// The system message of one agent.
pub fn system(briefing: &Briefing<'_>) -> String {
    let texts = texts(briefing);
    let example = if briefing.options.has_example && texts.sources != SOURCES_ALERT {
        paragraph(ANSWER_EXAMPLE.trim())
    } else {
        String::new()
    };
    let values = [("sources", texts.sources.trim()), ("example", &example)];
    let form = render(ANSWER_FORM, &values);
    system_of(texts.system, &form, briefing)
}

/// The message about a change of the alert during the investigation.
pub fn alert_update(report: &str) -> String {
    let fence = fence_around(&[report]);
    render(ALERT_UPDATE, &[("fence", &fence), ("report", report)])
}

/// Adds the findings of the stage before to the first user message.
pub fn with_context(user: &str, context: &str) -> String {
    let context = render(CONTEXT, &[("context", &without_marks(context))]);
    format!("{}{}", without_marks(user), paragraph(&context))
}

/// The findings that [`with_context`] has added to a message.
pub fn context_in(user: &str) -> Option<&str> {
    let (before, after) = CONTEXT.trim().split_once("{{context}}")?;
    Some(user.split_once(before)?.1.split_once(after)?.0)
}

/// Escapes the marks of a stage's context.
fn without_marks(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;

    for (at, word) in lower.match_indices(MARK) {
        out.push_str(text.get(copied..at).unwrap_or_default());
        out.push_str("stage context");
        copied = at + word.len();
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

/// Renders a system message.
pub(super) fn system_of(template: &str, answer_form: &str, briefing: &Briefing<'_>) -> String {
    let text = briefing.instructions.trim();
    let instructions = if text.is_empty() {
        String::new()
    } else {
        paragraph(&render(INSTRUCTIONS, &[("text", text)]))
    };
    let approvals = approvals(briefing.tools, briefing.strategy);
    let instructions = instructions + briefing.skills + &approvals;
    let values = [
        ("agent", briefing.agent),
        ("max_iterations", &briefing.max_iterations.to_string()),
        ("instructions", &instructions),
        ("answer_form", answer_form.trim()),
        ("tools", &tool_descriptions::describe(briefing.tools)),
        ("reach", &reach(briefing, text)),
        ("calls", briefing.options.calls()),
        ("actions", briefing.options.actions()),
        (
            "servers",
            &options::servers(briefing, Unseen::in_form(answer_form)),
        ),
    ];
    render(template, &values)
}

/// The section about changes. Without instructions no call may change anything.
fn reach(briefing: &Briefing<'_>, instructions: &str) -> String {
    let changing: Vec<Cow<'_, str>> = briefing
        .tools
        .iter()
        .filter(|tool| !tool.read_only && tool.approval.is_none())
        .map(|tool| shown(&tool.name, briefing.strategy))
        .collect();
    let has_approvals = approved::has_approvals(briefing);
    if changing.is_empty() {
        let template = if has_approvals {
            REACH_APPROVED
        } else {
            REACH_READ_ONLY
        };
        return render(template, &[]);
    }
    let template = if instructions.is_empty() {
        REACH_CHANGES_UNASKED
    } else {
        REACH_CHANGES
    };
    let reach = render(template, &[("tools", &changing.join(", "))]);
    if has_approvals {
        reach + REACH_APPROVED_TOO
    } else {
        reach
    }
}

/// The section about the runbook of a listed host.
fn runbook(texts: &Texts, url: &str, fetched: Option<&FetchedRunbook>) -> String {
    let section = render(texts.runbook, &[("url", url)]);
    match fetched {
        Some(FetchedRunbook::Page(text)) if texts.has_runbook => {
            let fence = fence_around(&[text]);
            render(
                RUNBOOK_PAGE,
                &[("url", url), ("fence", &fence), ("text", text)],
            )
        }
        Some(FetchedRunbook::Failed(why)) => format!(
            "{section} {}",
            render(RUNBOOK_FAILED, &[("why", &line(why))])
        ),
        Some(FetchedRunbook::Page(_) | FetchedRunbook::Refused(_)) | None => section,
    }
}

fn user(texts: &Texts, alert: &Alert, briefing: &Briefing<'_>) -> String {
    let url = alert.runbook_url.as_deref().map(line).unwrap_or_default();
    let refused = match briefing.fetched {
        Some(FetchedRunbook::Refused(why)) => Some(render(RUNBOOK_REFUSED, &[("why", &line(why))])),
        Some(FetchedRunbook::Page(_) | FetchedRunbook::Failed(_)) | None => None,
    };
    let (runbook, claim) = match url.as_str() {
        "" => (String::new(), String::new()),
        url if refused.is_some() => (
            paragraph(refused.unwrap_or_default().trim()),
            format!("\nrunbook: {url}"),
        ),
        url if is_listed(briefing.runbooks, url) => (
            paragraph(&runbook(texts, url, briefing.fetched)),
            String::new(),
        ),
        url => (
            paragraph(RUNBOOK_CLAIMED.trim()),
            format!("\nrunbook: {url}"),
        ),
    };
    let severity = severity(alert);
    let values = [
        ("severity", severity.as_str()),
        ("status", alert.status.as_str()),
        ("source", &line(&alert.source)),
        ("runbook", &runbook),
        ("claim", &claim),
        (
            "fence",
            &fence_around(&[&alert.alert_type, &claim, &alert.text]),
        ),
        ("alert_type", &line(&alert.alert_type)),
        ("alert", &alert.text),
    ];
    render(texts.user, &values)
}

/// The severity, with the word of the alert for it if there is another one.
fn severity(alert: &Alert) -> String {
    let severity = alert.severity.as_str();
    match &alert.severity_word {
        Some(word) => format!("{severity} (the alert says \"{word}\")"),
        None => severity.to_owned(),
    }
}

/// A text as one line, so that it cannot begin a line of the prompt.
pub(super) fn line(text: &str) -> String {
    let words = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

pub(super) fn paragraph(text: &str) -> String {
    format!("\n\n{text}")
}

/// Replaces each `{{name}}` by its value. A name without a value stays.
pub(super) fn render(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template.trim();
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let found = after.split_once("}}").and_then(|(name, after)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((*value, after))
        });
        let (value, behind) = found.unwrap_or(("{{", after));
        out.push_str(value);
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
