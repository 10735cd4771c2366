//! The list of `tarsy models`: a block of facts for each provider.

use super::table::fact;
use crate::admin::models::{KeyState, ModelReport, ProbeAnswer, Problem, State, StrategyReport};
use crate::cli::render::style::{Paint, Style};
use crate::cli::render::{format, text};
use tarsy_config::Price;
use tarsy_core::plan::{Strategy, Thinking};

/// Columns of the answer's text.
const ANSWER_COLUMNS: usize = 40;

/// Every provider, and a last line with the counts.
pub fn list(reports: &[ModelReport], style: &Style) -> Vec<String> {
    let mut lines: Vec<String> = reports
        .iter()
        .flat_map(|report| block(report, style))
        .collect();
    lines.push(sum(reports));
    lines
}

fn block(report: &ModelReport, style: &Style) -> Vec<String> {
    let (word, paint) = match report.state {
        State::Ready => ("ok", Paint::Green),
        State::Unknown => ("?", Paint::Yellow),
        State::Unusable => ("FAIL", Paint::Red),
    };
    let clean = |text: &str| text::one_line(text, style.charset);
    let name = Paint::Bold.over(&clean(&report.name), style);
    let model = clean(&report.model);
    let provider = clean(&report.provider);

    let front = format!("{}{}", paint.over(word, style), " ".repeat(6 - word.len()));
    let mut lines = vec![format!(
        "{front}{name}  {model} ({provider}, backend {})",
        report.backend
    )];
    let used = if report.used.is_empty() {
        "nowhere".to_owned()
    } else {
        report.used.join("; ")
    };
    lines.extend(fact("used by", &used, style));
    lines.extend(fact("key", &key(report), style));
    lines.extend(fact("credentials", &report.credentials, style));
    lines.extend(fact("address", &report.address, style));
    lines.extend(fact("settings", &settings(report), style));
    if let Some(found) = report.price {
        lines.extend(fact("price", &price(found), style));
    }
    if let Some(found) = &report.answer {
        lines.extend(fact("answer", &answer(found, style), style));
    }
    if let Some(found) = &report.probe {
        lines.extend(fact("strategy", &strategy(found), style));
        lines.extend(
            found
                .notes
                .iter()
                .flat_map(|note| fact("seen", note, style)),
        );
    }
    if let Some(found) = &report.problem {
        lines.extend(fact("problem", &problem(found), style));
        lines.extend(fact("fix", found.fix.as_deref().unwrap_or_default(), style));
    }
    lines
}

/// The variable of the key and its state; empty if the LLM service did not say.
fn key(report: &ModelReport) -> String {
    let name = if report.key_env.is_empty() {
        "no variable"
    } else {
        &report.key_env
    };
    match report.key {
        KeyState::Set => format!("{name} is set"),
        KeyState::NotSet if report.key_env.is_empty() => "no variable is named".to_owned(),
        KeyState::NotSet => format!("{name} is not set"),
        KeyState::NotPermitted => format!("{name} is not permitted as a key"),
        KeyState::Unreadable => format!("the file of {name} cannot be read"),
        KeyState::NotNeeded => "not needed".to_owned(),
        KeyState::Unknown if report.key_env.is_empty() => String::new(),
        KeyState::Unknown => format!("{name}, if the LLM service has it"),
    }
}

fn settings(report: &ModelReport) -> String {
    let thinking = report.thinking.map(|thinking| match thinking {
        Thinking::Level(level) => format!("thinking {}", level.as_str()),
        Thinking::Budget(tokens) => format!("thinking {tokens} tokens"),
    });
    let mut parts = vec![
        report
            .context_window
            .map(|tokens| format!("context window {}", format::tokens(tokens))),
        report
            .max_output_tokens
            .map(|tokens| format!("at most {} out", format::tokens(tokens))),
        thinking,
    ];
    parts.extend(
        report
            .native_tools
            .iter()
            .map(|tool| Some(tool.as_str().to_owned())),
    );
    text::join(parts, ", ")
}

fn price(price: Price) -> String {
    let Price {
        input,
        cached_input,
        output,
    } = price;
    format!("${input} in, ${cached_input} cached, ${output} out, for a million tokens")
}

fn answer(answer: &ProbeAnswer, style: &Style) -> String {
    let seconds = |ms: u64| format!("{}.{:02} s", ms / 1000, ms % 1000 / 10);
    let line = text::one_line(&answer.text, style.charset);
    let line = text::cut(&line, ANSWER_COLUMNS, style.charset);
    let quoted = (!line.is_empty()).then(|| format!("\"{line}\""));
    let thinking = (answer.thinking_tokens > 0)
        .then(|| format!("{} thinking", format::tokens(answer.thinking_tokens)));
    let tokens = format!(
        "tokens: {} in, {} out",
        format::tokens(answer.input_tokens),
        format::tokens(answer.output_tokens)
    );
    let parts = [
        quoted,
        Some(format!("ended by {}", answer.finish)),
        answer
            .first_chunk_ms
            .map(|ms| format!("first chunk after {}", seconds(ms))),
        Some(format!("whole after {}", seconds(answer.took_ms))),
        Some(text::join([Some(tokens), thinking], ", ")),
    ];
    text::join(parts, "; ")
}

/// The strategy that fits.
fn strategy(found: &StrategyReport) -> String {
    match (found.strategy, &found.native) {
        (Some(strategy), _) if strategy == Strategy::React.as_str() => {
            "react fits: set iteration_strategy: react for the agents of this provider".to_owned()
        }
        (Some(strategy), _) => format!("{strategy} fits"),
        (None, Some(_)) => "none fits".to_owned(),
        (None, None) => "not asked".to_owned(),
    }
}

fn problem(problem: &Problem) -> String {
    let Problem {
        code,
        provider_status: status,
        message,
        ..
    } = problem;
    if status.is_empty() || message.contains(status) {
        format!("{code}: {message}")
    } else {
        format!("{code} ({status}): {message}")
    }
}

/// The number of providers that can be called.
fn sum(reports: &[ModelReport]) -> String {
    let count = |state| {
        reports
            .iter()
            .filter(|report| report.state == state)
            .count()
    };
    let all = format::count(reports.len(), "provider");
    match (count(State::Unusable), count(State::Unknown)) {
        // Whether a key is set says nothing about whether it is accepted.
        (0, 0) if reports.iter().all(|report| report.answer.is_none()) => {
            format!("{all}, no problem found without a call; --probe asks each model")
        }
        (0, 0) => format!("{all}, no problem"),
        (0, unknown) => format!("{all}, {unknown} unknown"),
        (unusable, _) => format!("{unusable} of {all} cannot be used"),
    }
}
