//! The corpus of provider errors: real messages with their expected classification.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;

const CORPUS: &str = include_str!("corpus.txt");

/// A line of the corpus.
struct Case {
    provider: &'static str,
    status: Option<u16>,
    code: &'static str,
    is_transient: bool,
    delay: Option<Duration>,
    body: &'static str,
}

fn cases() -> Vec<Case> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut parts = line.splitn(4, " | ");
            let mut part = || parts.next().unwrap_or_else(|| panic!("{line}"));
            let provider = part();
            let status = part();
            let meaning = part();
            let body = part();
            let mut words = meaning.split(' ');
            let code = words.next().unwrap();
            let again = words.next();
            let delay = words.next();
            let delay = delay.map(|seconds| Duration::from_secs_f64(seconds.parse().unwrap()));
            Case {
                provider,
                status: status.parse().ok(),
                code,
                is_transient: again == Some("again"),
                delay,
                body,
            }
        })
        .collect()
}

#[test]
fn every_text_of_the_corpus_has_its_code() {
    let mut wrong = Vec::new();
    for case in cases() {
        let words = Words::of_body(case.body, None);
        let found = verdict(case.status, &words);
        let delay_fits = case.delay.is_none_or(|delay| words.delay() == Some(delay));
        if (found.code.as_str(), found.is_transient) != (case.code, case.is_transient)
            || !delay_fits
        {
            wrong.push(format!(
                "{found:?} {:?} instead of {}: {}",
                words.delay(),
                case.code,
                case.body
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_corpus_has_120_texts_of_15_providers() {
    let texts: BTreeSet<_> = cases().iter().map(|case| case.body).collect();
    let providers: BTreeSet<_> = cases().iter().map(|case| case.provider).collect();
    assert!(
        texts.len() >= 120 && providers.len() >= 15,
        "{} of {}",
        texts.len(),
        providers.len()
    );
}

/// Gateways put the words of a provider into words of their own.
#[test]
fn a_wrapped_text_keeps_its_meaning() {
    for case in cases()
        .iter()
        .filter(|case| case.status.is_some() && case.body.starts_with('{'))
    {
        let value: Value = serde_json::from_str(case.body).unwrap();
        let raw =
            json!({"error":{"message":"Provider returned error","metadata":{"raw":case.body}}});
        let listed = json!([value]);
        let text = json!({"error":{"message":case.body}});
        for body in [raw, listed, text] {
            let found = verdict(case.status, &Words::from_body(&body, None));
            assert_eq!(
                (found.code.as_str(), found.is_transient),
                (case.code, case.is_transient),
                "{body}"
            );
        }
    }
}

#[test]
fn a_failure_that_passes_beats_one_that_does_not() {
    let types = [
        "invalid_request_error",
        "bad_request_error",
        "authentication_error",
        "not_found_error",
    ];
    let codes = [
        ("request_timeout", "unavailable"),
        ("overloaded", "unavailable"),
        ("rate_limit_exceeded", "rate_limited"),
    ];
    for lasting in types {
        for (passing, code) in codes {
            for status in [None, Some(400), Some(500)] {
                let body = json!({"error":{"code":passing,"type":lasting,"message":"x"}});
                let found = verdict(status, &Words::from_body(&body, None));
                assert_eq!(
                    (found.code.as_str(), found.is_transient),
                    (code, true),
                    "{status:?} {body}"
                );
            }
        }
    }
}

#[test]
fn unknown_words_leave_the_decision_to_the_status() {
    let body = json!({"error":{"code":"new_tomorrow","message":"Something that no row knows."}});
    let words = Words::from_body(&body, None);
    for (status, code, is_transient) in [
        (Some(400), "invalid_request", false),
        (Some(401), "credentials", false),
        (Some(404), "model_not_found", false),
        (Some(409), "unavailable", true),
        (Some(413), "context_window_exceeded", false),
        (Some(422), "invalid_request", false),
        (Some(429), "rate_limited", true),
        (Some(500), "unavailable", true),
        (Some(302), "provider_error", false),
        (None, "unavailable", true),
    ] {
        let found = verdict(status, &words);
        assert_eq!(
            (found.code.as_str(), found.is_transient),
            (code, is_transient),
            "{status:?}"
        );
    }
}

#[test]
fn every_row_is_in_the_spelling_that_it_is_compared_with() {
    for rule in &RULES {
        for word in rule.words.split_whitespace() {
            assert_eq!(letters(word), word);
        }
        for phrase in rule.phrases.lines() {
            assert_eq!(plain(phrase), phrase);
        }
    }
}
