//! Selects the steps of a long session that its page shows: the first, the newest and every cited one. The others are
//! ranges that are loaded when they are opened.

use std::collections::BTreeSet;

use super::{Bodies, Step};

/// A session with more steps is long.
const MAX_STEPS: usize = 400;
/// A session with more bytes of text has them behind links.
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
    let is_whole = |step: &Step<'_>| bytes <= MAX_BYTES && !step.has_any_of(cut);
    let bodies = |step: &Step<'_>| {
        if step.is_cited || is_whole(step) {
            Bodies::InPage
        } else {
            Bodies::Linked
        }
    };
    if steps.len() <= MAX_STEPS {
        return steps
            .iter()
            .map(|step| Part::Step(step, bodies(step)))
            .collect();
    }
    let newest = steps.len() - NEWEST;
    let is_shown =
        |index: usize, step: &Step<'_>| index < FIRST || index >= newest || step.is_cited;
    let mut parts = Vec::new();
    let mut hidden: Vec<&Step<'_>> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let is_shown = is_shown(index, step);
        if is_shown || hidden.len() == RANGE {
            parts.extend(range(&hidden).map(Part::Folded));
            hidden.clear();
        }
        if is_shown {
            // A long session has all other texts behind links.
            parts.push(Part::Step(
                step,
                if step.is_cited {
                    Bodies::InPage
                } else {
                    Bodies::Linked
                },
            ));
        } else {
            hidden.push(step);
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
