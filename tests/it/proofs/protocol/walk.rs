//! Searches all reachable states, twice: stateright's checker asks what always holds; a walk of our own asks that
//! again, tells the shortest story of what does not, and asks what stateright cannot: whether a good end stays within
//! reach.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use stateright::{Checker as _, HasDiscoveries, Model as _, Property};

use super::model::{Action, Protocol};
use super::properties::{GOOD_END_AHEAD, always, good_end};
use super::state::State;

/// What stateright found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) states: usize,
    pub(super) broken: BTreeSet<&'static str>,
}

/// Runs stateright's checker until every state is seen, or one that breaks `until`.
pub(super) fn check(model: &Protocol, until: Option<&'static str>) -> Checked {
    let finish = until.map_or(HasDiscoveries::All, |property| HasDiscoveries::AnyOf(BTreeSet::from([property])));
    let checker = model.checker().finish_when(finish).spawn_bfs().join();
    Checked { states: checker.unique_state_count(), broken: checker.discoveries().into_keys().collect() }
}

/// What the walk found.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) states: usize,
    pub(super) actions: usize,
    /// Properties that do not hold, each with the fewest actions that show it.
    pub(super) broken: Vec<(&'static str, Vec<Action>)>,
}

/// Walks until every state is seen, or one that breaks `until`. A state from which no good end can be reached is known
/// only when all are seen: then back from the good ends, along everything that is no fault.
pub(super) fn walk(model: &Protocol, until: Option<&'static str>) -> Walk {
    let (properties, mut broken, mut actions, mut steps) = (always(), Vec::new(), Vec::new(), 0);
    let mut graph = Graph::default();
    for state in model.init_states() {
        graph.number(state, None);
    }
    while let Some((number, state)) = graph.queue.pop_front() {
        for Property { condition, name, .. } in &properties {
            if !condition(model, &state) && broken.iter().all(|(known, _)| known != name) {
                broken.push((*name, graph.story(number)));
            }
        }
        if until.is_some_and(|until| broken.iter().any(|(known, _)| *known == until)) {
            return Walk { states: graph.reached.len(), actions: steps, broken };
        }
        graph.good.push(good_end(model, &state));
        model.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let Some(next) = model.next_state(&state, action) else { continue };
            steps += 1;
            let to = graph.number(next, Some((number, action)));
            if !action.is_fault() {
                graph.back.push((to, number));
            }
        }
    }
    let stuck = (0..).zip(graph.hopeful()).find(|(_, hopeful)| !hopeful);
    broken.extend(stuck.map(|(number, _)| (GOOD_END_AHEAD, graph.story(number))));
    Walk { states: graph.reached.len(), actions: steps, broken }
}

/// Reachable states by their number.
#[derive(Default)]
struct Graph {
    numbers: HashMap<u64, u32>,
    /// From where, and how, each was reached first.
    reached: Vec<Option<(u32, Action)>>,
    /// `(to, from)` of all that is no fault.
    back: Vec<(u32, u32)>,
    good: Vec<bool>,
    /// Seen, but not looked into.
    queue: VecDeque<(u32, State)>,
}

impl Graph {
    fn number(&mut self, state: State, reached: Option<(u32, Action)>) -> u32 {
        let fresh = u32::try_from(self.reached.len()).expect("fewer than 2^32 states");
        match self.numbers.entry(BuildHasherDefault::<DefaultHasher>::default().hash_one(&state)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                unknown.insert(fresh);
                self.reached.push(reached);
                self.queue.push_back((fresh, state));
                fresh
            }
        }
    }

    fn story(&self, mut number: u32) -> Vec<Action> {
        let mut story = Vec::new();
        while let Some((from, action)) = self.reached[number as usize] {
            story.push(action);
            number = from;
        }
        story.reverse();
        story
    }

    /// Which states have a good end ahead.
    fn hopeful(&mut self) -> Vec<bool> {
        self.back.sort_unstable();
        let mut hopeful = self.good.clone();
        let mut stack: Vec<u32> = (0..).zip(&self.good).filter(|(_, good)| **good).map(|(number, _)| number).collect();
        while let Some(to) = stack.pop() {
            let first = self.back.partition_point(|edge| edge.0 < to);
            for (_, from) in self.back[first..].iter().take_while(|edge| edge.0 == to) {
                if !std::mem::replace(&mut hopeful[*from as usize], true) {
                    stack.push(*from);
                }
            }
        }
        hopeful
    }
}

/// The actions, each with what the workers do then.
pub(super) fn tell(model: &Protocol, story: &[Action]) -> String {
    let mut text = String::new();
    let Some(mut state) = model.init_states().pop() else { return text };
    if story.is_empty() {
        text.push_str("\n    from the start");
    }
    for action in story {
        let Some(next) = model.next_state(&state, *action) else { break };
        write!(text, "\n    {action:?}").expect("a string");
        for (number, (before, after)) in state.workers.iter().zip(&next.workers).enumerate() {
            if before.step != after.step {
                write!(text, "  →  worker {number}: {:?}", after.step).expect("a string");
            }
            if let (None, Some(sending)) = (before.sending, after.sending) {
                write!(text, "  →  number {}, {:?}", sending.number, sending.event).expect("a string");
            }
        }
        state = next;
    }
    text
}
