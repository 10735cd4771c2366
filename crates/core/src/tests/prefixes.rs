//! Tests of the requests of an execution, one after the other, over random investigations: a provider caches what two
//! requests have in common at their beginning.

use chrono::TimeDelta;
use proptest::prelude::*;

use super::survival::{simulation, stored};
use crate::execution::decide::Purpose;
use crate::execution::entry::Entry;
use crate::execution::event_refs::RecordedEntry;
use crate::plan::Strategy;
use crate::testing::{Simulation, Turn, Written};

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
    fn a_conclusion_declares_the_tools_of_the_requests_before_it_and_may_call_none(
        simulation in simulation(),
    ) {
        let written = simulation.run(Vec::new());
        let steps: Vec<_> = written
            .iter()
            .flat_map(|written| &written.sent)
            .filter(|sent| sent.call.purpose != Purpose::Summary)
            .collect();
        for sent in steps {
            let offered = if simulation.strategy.binds_tools() { simulation.plan().tools.clone() } else { Vec::new() };
            let body = &sent.body;
            match sent.call.purpose {
                Purpose::Conclusion if simulation.keeps_tools => {
                    prop_assert_eq!((body.tools.len(), &body.declared_tools), (0, &offered));
                }
                Purpose::Conclusion => prop_assert_eq!((body.tools.len(), body.declared_tools.len()), (0, 0)),
                Purpose::Iteration | Purpose::Synthesis | Purpose::Summary => {
                    prop_assert_eq!((&body.tools, body.declared_tools.len()), (&offered, 0));
                }
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

#[test]
fn a_conclusion_with_declared_tools_runs_no_call_of_its_answer() {
    let looks = Turn::says("Cause: x", "", &["k8s.get"]);
    let asked = |keeps_tools| {
        let simulation = Simulation {
            keeps_tools,
            ..Simulation::new(
                Strategy::NativeThinking,
                1,
                vec![looks.clone(), looks.clone()],
            )
        };
        let written = simulation.run(Vec::new());
        let sent: Vec<_> = written
            .iter()
            .flat_map(|written| written.sent.clone())
            .collect();
        let results = written
            .iter()
            .flat_map(|written| &written.entries)
            .filter(|entry| matches!(entry, Entry::ToolResult(_)))
            .count();
        let declared: Vec<usize> = sent
            .iter()
            .map(|sent| sent.body.declared_tools.len())
            .collect();
        (declared, results)
    };
    assert_eq!(asked(true), (vec![0, 4], 1));
    assert_eq!(asked(false), (vec![0, 0], 1));
}
