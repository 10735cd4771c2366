//! The branch of a sub-agent: its steps below the event that began it, as a list of links. It needs no script.

use std::collections::HashMap;

use maud::{Markup, html};

use super::Step;
use super::row::words;
use crate::shell::words::brief;
use tarsy_core::readable::text::Charset;
use tarsy_core::timeline::EventType;

/// Steps of one branch: of more, the first ones.
const MAX_STEPS: usize = 200;
/// Characters of one step.
const MAX_WORDS: usize = 120;

/// The steps of a sub-agent, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branch {
    steps: Vec<BranchStep>,
    left_out: usize,
}

#[derive(Clone, Debug)]
struct BranchStep {
    number: u32,
    glyph: &'static str,
    name: String,
    words: String,
}

/// Gives each event that begins a sub-agent the steps of it.
pub(super) fn grow(steps: &mut [Step<'_>]) {
    let mut branches: HashMap<u32, Branch> = HashMap::new();
    for step in steps.iter() {
        let Some(begun) = step.row.branch else {
            continue;
        };
        let branch = branches.entry(begun).or_default();
        if branch.steps.len() >= MAX_STEPS {
            branch.left_out += 1;
            continue;
        }
        let row = step.first_row();
        branch.steps.push(BranchStep {
            number: step.event.session_seq,
            glyph: row.kind.glyph(Charset::Unicode),
            name: brief(&row.name, MAX_WORDS),
            words: brief(&words(row), MAX_WORDS),
        });
    }
    for step in steps.iter_mut() {
        if step.event.event_type == EventType::AgentDispatched {
            let branch = branches.remove(&step.event.session_seq);
            step.branch = branch.unwrap_or_default();
        }
    }
}

/// The steps as a list; empty without any.
pub(super) fn list(branch: &Branch) -> Markup {
    html! {
        @if !branch.steps.is_empty() {
            ul.branch { @for step in &branch.steps {
                li {
                    a.n href={ "#" (step.number) } { (step.number) }
                    " " (step.glyph) " " b { (step.name) } " " (step.words)
                }
            } }
            @if branch.left_out > 0 { p.muted { "And " (branch.left_out) " further steps." } }
        }
    }
}
