//! Tests of random investigations: a final answer is asked for once more at most, and a conclusion never.

use proptest::prelude::*;

use super::survival::{simulation, stored};
use crate::execution::entry::{About, Entry};
use crate::plan::AnswerCheck;
use crate::testing::Simulation;

fn asks_again(entry: &Entry) -> bool {
    matches!(
        entry,
        Entry::Feedback {
            about: Some(About::Answer(_)),
            ..
        }
    )
}

/// The journal of an investigation that was cut after so many checkpoints and went on elsewhere.
fn resumed(simulation: &Simulation, checkpoints: usize) -> Vec<Entry> {
    let whole = simulation.run(Vec::new());
    let before = stored(&whole[..checkpoints]);
    let events = whole[..checkpoints]
        .iter()
        .map(|written| written.events.len())
        .sum();
    let after = simulation.go_on(before.clone(), events);
    let known = before.into_iter().map(|recorded| recorded.entry);
    let added = after.into_iter().flat_map(|written| written.entries);
    known.chain(added).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_final_answer_is_asked_for_once_more_at_most_at_any_kill(simulation in simulation()) {
        let simulation = Simulation { answer_check: AnswerCheck::Once, ..simulation };
        let checkpoints = simulation.run(Vec::new()).len();
        for cut in 0..=checkpoints {
            let journal = resumed(&simulation, cut);
            prop_assert!(journal.iter().filter(|entry| asks_again(entry)).count() <= 1, "{:?}", journal);
        }
    }

    #[test]
    fn a_conclusion_is_never_asked_for_again(simulation in simulation()) {
        let simulation = Simulation { answer_check: AnswerCheck::Once, ..simulation };
        let journal = resumed(&simulation, 0);
        let concluding = journal.iter().position(|entry| matches!(entry, Entry::Concluding { .. }));
        let after = journal.iter().skip(concluding.unwrap_or(journal.len()));
        prop_assert_eq!(after.filter(|entry| asks_again(entry)).count(), 0);
    }
}
