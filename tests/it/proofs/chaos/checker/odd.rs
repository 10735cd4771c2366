//! Guarantee 11: models and tool servers that misbehave.

use super::{Violation, add};
use crate::proofs::chaos::facts::Facts;
use crate::proofs::chaos::odd::{GUESSED, OddCall, RESTART, WHOLE};

pub(super) fn nothing_is_guessed(facts: &Facts, violations: &mut Vec<Violation>) {
    for (call, count) in &facts.odd.performed {
        let OddCall { tool, by, step } = call;
        if !facts.odd.written.contains(call) {
            let what = format!(
                "{tool} ran for {by} (step {step}), and no model has written this call whole"
            );
            violations.push(Violation {
                guarantee: 11,
                session: None,
                what,
            });
        }
        if tool == RESTART && *count > 1 {
            let what = format!("{tool} ran {count} times for {by} (step {step})");
            violations.push(Violation {
                guarantee: 4,
                session: None,
                what,
            });
        }
    }
    let odd = facts.sessions.iter().filter(|(id, _)| facts.is_odd(**id));
    for (id, session) in
        odd.filter(|(_, session)| session.status == "completed" && session.mark.is_none())
    {
        let analysis = session.final_analysis.as_deref().unwrap_or_default();
        if !analysis.contains(WHOLE) || analysis.contains(GUESSED) {
            add(
                violations,
                11,
                *id,
                format!("it is completed without a mark, with the analysis {analysis:?}"),
            );
        }
    }
}
