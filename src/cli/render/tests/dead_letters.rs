//! Tests of the output of `dead-letters`.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{fits, narrow};
use crate::cli::render::tables::dead_letters::{self, Remedy};
use tarsy_bus::StoredDeadLetter;
use tarsy_core::ids::SessionId;

fn letter(reason: &str, headers: Value, body: &[u8]) -> StoredDeadLetter {
    StoredDeadLetter {
        alert_id: SessionId::parse("0198b2c4-5d6e-7f80-9a1b-2c3d0d4be6c1").unwrap(),
        reason: reason.to_owned(),
        detail:
            "header Tarsy-Chain names \"k8s-prod\"; defined: kubernetes, database, default\u{1b}[2J"
                .to_owned(),
        subject: "tarsy.alerts.high.ci".to_owned(),
        alert_sequence: 19,
        deliveries: 1,
        stored_at: "2026-11-21T21:04:11Z".parse::<DateTime<Utc>>().unwrap(),
        sequence: 7,
        headers,
        body: body.to_vec(),
    }
}

fn all() -> Vec<StoredDeadLetter> {
    vec![
        letter(
            "unknown_chain",
            json!({"Tarsy-Chain": "k8s-prod"}),
            br#"{"alertname":"NodeNotReady","labels":{"node":"n-3"}}"#,
        ),
        letter(
            "undecodable",
            json!({"Tarsy-Title": "Disk full on db-3"}),
            b"\xff\x00\x1b]0;owned\x07text",
        ),
        letter("too_large", json!({}), b""),
    ]
}

#[test]
fn dead_letters_are_listed_with_their_reasons() {
    insta::assert_snapshot!(
        "letters_80",
        fits(&dead_letters::letters(&all(), &narrow()), 80)
    );
}

#[test]
fn a_dead_letter_has_its_reason_and_the_commands_that_help() {
    let chains = vec!["default".to_owned(), "kubernetes".to_owned()];
    let remedies = [Remedy::Retry(chains), Remedy::Nothing, Remedy::SubmitAgain];
    let letters = all();
    let shown = letters.iter().zip(&remedies);
    let shown: Vec<String> = shown
        .map(|(letter, remedy)| fits(&dead_letters::letter(letter, remedy, &narrow()), 80))
        .collect();
    insta::assert_snapshot!("letter_80", shown.join("\n\n"));
    let body = dead_letters::body_text(&all()[1], &narrow());
    assert!(
        body.ends_with("text") && !body.contains('\u{1b}') && !body.contains("owned"),
        "{body:?}"
    );
    assert_eq!(
        dead_letters::named(&all()[1]),
        "alert 0d4be6c1 (undecodable, from tarsy.alerts.high.ci, Disk full on db-3, 16 B)"
    );
}
