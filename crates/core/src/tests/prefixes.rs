//! Tests of the requests of an execution, one after the other, over random investigations: a provider caches what two
//! requests have in common at their beginning.

use chrono::TimeDelta;
use proptest::prelude::*;

use super::survival::{simulation, stored};
use crate::execution::decide::Purpose;
use crate::execution::entry::Entry;
use crate::execution::event_refs::RecordedEntry;
use crate::testing::{Simulation, Written};

/// Whether these entries change what is before them: results are blanked, or another provider gets its own form.
fn rewrites(written: &Written) -> bool {
    written
        .entries
        .iter()
        .any(|entry| matches!(entry, Entry::Elided { .. } | Entry::Switched { .. }))
}

/// The journal as a worker would have written it whose clock is ahead from this entry on.
fn with_later_clock(simulation: &Simulation, from: usize) -> Vec<RecordedEntry> {
    let mut journal = stored(&simulation.run(Vec::new()));
    for recorded in journal.iter_mut().skip(from) {
        recorded.at = recorded.at.map(|at| at + TimeDelta::minutes(90));
    }
    journal
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_request_is_a_prefix_of_the_next_one_but_for_blanked_results_and_switches(
        simulation in simulation(),
    ) {
        let written = simulation.run(Vec::new());
        let mut before: Option<&[_]> = None;
        for written in &written {
            let sent = written.sent.iter().find(|sent| sent.call.purpose != Purpose::Summary);
            if let Some(sent) = sent {
                let messages = sent.body.messages.as_slice();
                if let Some(before) = before {
                    prop_assert!(messages.starts_with(before), "{:?}\n{:?}", before, messages);
                }
                before = Some(messages);
            }
            if rewrites(written) {
                before = None;
            }
        }
    }

    #[test]
    fn two_workers_with_other_clocks_write_the_same_bytes(
        simulation in simulation(), cut in any::<prop::sample::Index>(),
    ) {
        let journal = stored(&simulation.run(Vec::new()));
        let cut = cut.index(journal.len() + 1);
        let other = with_later_clock(&simulation, cut);
        let one = simulation.replay(journal.iter().take(cut).cloned());
        let two = simulation.replay(other.iter().take(cut).cloned());
        prop_assert_eq!(one.messages(), two.messages());

        // What the second worker adds with its own clock changes nothing before it.
        let is_summarised = other.iter().skip(cut).any(|recorded| matches!(recorded.entry, Entry::Summarised(_)));
        let whole = simulation.replay(other);
        if whole.window().blanked() == one.window().blanked() && !is_summarised {
            let known = one.messages();
            prop_assert_eq!(whole.messages().into_iter().take(known.len()).collect::<Vec<_>>(), known);
        }
    }
}
