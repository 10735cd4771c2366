//! Judges the investigation of a real model with the rubric of its drill, and prints outcome, reasons and cost.

use anyhow::Context as _;
use serde_json::json;

use crate::admin::drill::{RealModel, SERVER};
use crate::cli::commands::output::{print, print_json};
use crate::cli::exit::Exit;
use crate::cli::render::format;
use tarsy_config::Price;
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_drill::Drill;
use tarsy_drill::evidence::NOT_RECORDED;
use tarsy_drill::judging::grade::{Check, Grade, Outcome, Trial};
use tarsy_reports::words;
use tarsy_store::{ModelReport, SessionReport};

/// Tokens for which a price is given.
const PRICED_TOKENS: f64 = 1_000_000.0;

/// An investigation that is over.
pub(super) struct Investigation<'i> {
    pub(super) drill: &'i Drill,
    pub(super) model: &'i RealModel,
    /// The whole timeline, each event once.
    pub(super) events: &'i [TimelineEvent],
    /// The stored session with its model calls.
    pub(super) session: &'i SessionReport,
}

/// The effort of an investigation: time, turns, calls and cost.
struct Effort {
    seconds: f64,
    /// Answers of the model.
    turns: i64,
    /// Tool calls.
    calls: usize,
    /// Calls that were not recorded.
    misses: usize,
    /// US dollars; `None` without a configured price.
    cost: Option<f64>,
}

impl Investigation<'_> {
    /// Judges and prints: lines for people, or one JSON object with `json`.
    ///
    /// # Errors
    /// When a file of the drill is invalid or the output is closed.
    pub(super) fn print(&self, format: Format) -> anyhow::Result<Exit> {
        let evidence = self.drill.evidence()?;
        let trial = Trial {
            events: self.events,
            alert: self.drill.alert,
            evidence: &evidence,
            server: SERVER,
        };
        let rubric = self.drill.rubric(SERVER)?;
        let grade = rubric.grade(&trial);
        let effort = self.effort();
        match format {
            Format::Json => print_json(&self.object(&grade, &effort))?,
            Format::Text => print(&self.lines(&grade, &effort, &rubric.reference))?,
        }
        Ok(match grade.outcome {
            Outcome::Solved => Exit::Done,
            Outcome::Void => Exit::Failed,
            Outcome::Unsafe | Outcome::Abstained | Outcome::Wrong | Outcome::Unproven => {
                Exit::NotSolved
            }
        })
    }

    fn effort(&self) -> Effort {
        let events_of = |event_type| {
            self.events
                .iter()
                .filter(move |event| event.event_type == event_type)
        };
        let finished = self.session.finished_at.unwrap_or(self.session.created_at);
        let took = (finished - self.session.created_at)
            .to_std()
            .unwrap_or_default();
        Effort {
            seconds: took.as_secs_f64(),
            turns: self
                .session
                .models
                .iter()
                .map(|model| model.calls - model.failed)
                .sum(),
            calls: events_of(EventType::LlmToolCall).count(),
            misses: events_of(EventType::ToolResult)
                .filter(|result| result.content.trim() == NOT_RECORDED)
                .count(),
            cost: self
                .model
                .provider
                .price
                .map(|price| cost(price, &self.session.models)),
        }
    }

    fn lines(&self, grade: &Grade, effort: &Effort, reference: &str) -> Vec<String> {
        let outcome = grade.outcome.as_str();
        let provider = &self.model.provider;
        let mut lines = vec![
            String::new(),
            format!(
                "Drill {}, {} {}: {outcome}",
                self.drill.name, provider.provider, provider.model
            ),
        ];
        let width = grade.checks.iter().map(|check| check.id.len()).max();
        let width = width.unwrap_or_default();
        for Check { id, ok, seen } in &grade.checks {
            let word = if *ok { "ok" } else { "no" };
            lines.push(format!("  {word}  {id:<width$}  {seen}"));
        }
        if grade.outcome != Outcome::Solved {
            lines.push(format!("  The cause is: {reference}"));
        }
        lines.push(format!(
            "  Further facts named: {} of {}",
            grade.detail.found, grade.detail.of
        ));
        let not_recorded = match effort.misses {
            0 => String::new(),
            misses => format!(", {misses} of them not recorded"),
        };
        let took = format::span(std::time::Duration::from_secs_f64(effort.seconds));
        let turns = format::count(effort.turns, "turn");
        let calls = format::count(effort.calls, "tool call");

        lines.push(format!("  {took}, {turns}, {calls}{not_recorded}"));
        for model in &self.session.models {
            lines.push(format!("  {}", words::model(model)));
        }
        lines.push(match effort.cost {
            Some(cost) => format!("  Cost: ${cost:.4}"),
            None => "  Cost: unknown, the provider has no price in tarsy.yaml".to_owned(),
        });
        lines
    }

    fn object(&self, grade: &Grade, effort: &Effort) -> serde_json::Value {
        let provider = &self.model.provider;
        json!({
            "drill": self.drill.name,
            "provider": {"name": self.model.name, "provider": provider.provider, "model": provider.model},
            "outcome": grade.outcome,
            "checks": grade.checks,
            "detail": grade.detail,
            "report": self.session.final_analysis,
            "seconds": effort.seconds,
            "turns": effort.turns,
            "calls": effort.calls,
            "misses": effort.misses,
            "models": self.session.models,
            "cost_usd": effort.cost,
        })
    }
}

/// The output format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
}

/// The price of all calls in US dollars.
fn cost(price: Price, models: &[ModelReport]) -> f64 {
    let dollars = |tokens: i64, price: f64| {
        f64::from(u32::try_from(tokens.max(0)).unwrap_or(u32::MAX)) * price / PRICED_TOKENS
    };
    let costs = models.iter().map(|ModelReport { usage, .. }| {
        dollars(usage.input - usage.cached, price.input)
            + dollars(usage.cached, price.cached_input)
            + dollars(usage.output + usage.thinking, price.output)
    });
    costs.sum()
}

/// The session of a report that the store has.
///
/// # Errors
/// When the store has none.
pub(super) fn session(report: Option<tarsy_store::AlertReport>) -> anyhow::Result<SessionReport> {
    report
        .and_then(|report| report.session)
        .context("the database has no such session")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_store::Tokens;

    #[test]
    fn cached_input_and_thinking_have_their_own_prices() {
        let usage = Tokens {
            input: 1_500_000,
            cached: 500_000,
            output: 100_000,
            thinking: 100_000,
        };
        let model = ModelReport {
            provider: "gemini".into(),
            backend: "google-native".into(),
            model: "m".into(),
            calls: 1,
            failed: 0,
            usage,
        };
        let price = Price {
            input: 2.0,
            cached_input: 0.5,
            output: 10.0,
        };
        let total = cost(price, &[model.clone(), model]);
        assert!((total - 2.0 * (2.0 + 0.25 + 2.0)).abs() < 1e-9, "{total}");
    }
}
