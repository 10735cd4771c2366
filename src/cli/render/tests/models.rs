//! Tests of the output of `models`.

use super::narrow;
use crate::admin::models::{KeyState, ModelReport, ProbeAnswer, Problem, State};
use crate::cli::render::tables::models;
use tarsy_config::Price;
use tarsy_core::plan::{NativeTool, Thinking, ThinkingLevel};

fn report(name: &str, state: State, key: KeyState) -> ModelReport {
    ModelReport {
        name: name.to_owned(),
        provider: "google".to_owned(),
        backend: "google-native",
        model: "gemini-2.5-flash".to_owned(),
        used: vec!["default".to_owned(), "agent sre".to_owned()],
        context_window: Some(1_000_000),
        max_output_tokens: Some(8_000),
        native_tools: vec![NativeTool::GoogleSearch],
        thinking: Some(Thinking::Level(ThinkingLevel::High)),
        price: Some(Price {
            input: 0.3,
            cached_input: 0.075,
            output: 2.5,
        }),
        state,
        key_env: "GEMINI_API_KEY".to_owned(),
        key,
        address: "https://generativelanguage.googleapis.com".to_owned(),
        credentials: String::new(),
        problem: None,
        answer: None,
        probe: None,
    }
}

/// A provider without optional settings.
fn plain(name: &str, state: State, key: KeyState) -> ModelReport {
    ModelReport {
        used: vec![],
        context_window: None,
        max_output_tokens: None,
        native_tools: vec![],
        thinking: None,
        price: None,
        address: String::new(),
        ..report(name, state, key)
    }
}

fn problem(code: &str, status: &str, message: &str, fix: Option<&str>) -> Option<Problem> {
    let fix = fix.map(str::to_owned);
    Some(Problem {
        code: code.to_owned(),
        provider_status: status.to_owned(),
        message: message.to_owned(),
        fix,
    })
}

#[test]
fn a_list_of_models_shows_use_key_settings_and_what_to_do() {
    let answer = ProbeAnswer {
        first_chunk_ms: Some(612),
        took_ms: 1_734,
        input_tokens: 18,
        output_tokens: 1,
        thinking_tokens: 40,
        finish: "stop".to_owned(),
        text: "ready\u{1b}[2J".to_owned(),
    };
    let unset = "Environment variable 'GEMINI_API_KEY' is not set";
    let fix = Some(
        "set GEMINI_API_KEY (or GEMINI_API_KEY_FILE) where the LLM service runs, and start it again",
    );
    let busy = problem(
        "rate_limited",
        "429 RESOURCE_EXHAUSTED",
        "Quota exceeded.",
        Some("wait 7 s"),
    );
    let reports = [
        ModelReport {
            answer: Some(answer),
            ..report("gemini", State::Ready, KeyState::Set)
        },
        ModelReport {
            problem: problem("credentials", "", unset, fix),
            ..plain("no-key", State::Unusable, KeyState::NotSet)
        },
        ModelReport {
            problem: busy,
            ..plain("busy", State::Unusable, KeyState::Set)
        },
        ModelReport {
            problem: problem("unknown", "", "this LLM service cannot tell", None),
            ..plain("other", State::Unknown, KeyState::Unknown)
        },
        ModelReport {
            key_env: String::new(),
            ..plain("local", State::Ready, KeyState::NotNeeded)
        },
    ];
    let lines = models::list(&reports, &narrow());
    for line in &lines {
        assert!(
            line.chars().count() <= 80 && !line.contains('\u{1b}'),
            "{line}"
        );
    }
    insta::assert_snapshot!("models_80", lines.join("\n"));
    let not_asked = "1 provider, no problem found without a call; --probe asks each model";
    assert_eq!(
        models::list(&reports[4..], &narrow()).last().unwrap(),
        not_asked
    );
    assert_eq!(
        models::list(&reports[3..4], &narrow()).last().unwrap(),
        "1 provider, 1 unknown"
    );
}
