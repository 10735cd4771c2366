//! Selects the steps of a long session that its page shows: the first, the newest and every cited one. The others are
//! ranges that are loaded when they are opened.

use std::collections::BTreeSet;

use super::{Bodies, Step};

/// A session with more steps is long.
const MAX_STEPS: usize = 400;
/// A page has links to the texts of its steps if they have more bytes than this in total.
const MAX_BYTES: usize = 256 * 1024;
const FIRST: usize = 100;
const NEWEST: usize = 300;
/// Steps of one range at most.
const RANGE: usize = 200;

/// A step, or several that are folded.
#[derive(Debug)]
pub(crate) enum Part<'a, 'e> {
    Step(&'a Step<'e>, Bodies),
    Folded(Range),
}

/// Steps that are not in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The first and the last number of their events.
    pub from: u32,
    pub to: u32,
    pub calls: usize,
    pub steps: usize,
}

/// The parts of a page, in order. The events with the numbers `cut` have not all of their content.
pub(crate) fn fold<'a, 'e>(steps: &'a [Step<'e>], cut: &BTreeSet<u32>) -> Vec<Part<'a, 'e>> {
    let bytes: usize = steps.iter().map(Step::bytes).sum();
    let is_long = steps.len() > MAX_STEPS;
    let are_linked = is_long || bytes > MAX_BYTES;
    let newest = steps.len().saturating_sub(NEWEST);
    let mut parts = Vec::new();
    let mut hidden: Vec<&Step<'_>> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let is_shown = !is_long || index < FIRST || index >= newest || step.is_cited;
        if is_shown || hidden.len() == RANGE {
            parts.extend(range(&hidden).map(Part::Folded));
            hidden.clear();
        }
        if !is_shown {
            hidden.push(step);
        } else if step.is_cited || !are_linked && !step.has_any_of(cut) {
            parts.push(Part::Step(step, Bodies::InPage));
        } else {
            parts.push(Part::Step(step, Bodies::Linked));
        }
    }
    parts
}

fn range(hidden: &[&Step<'_>]) -> Option<Range> {
    let (first, last) = hidden.first().zip(hidden.last())?;
    let calls = hidden.iter().filter(|step| step.is_call()).count();
    Some(Range {
        from: first.first(),
        to: last.event.session_seq.max(last.first()),
        calls,
        steps: hidden.len(),
    })
}
