//! Searches all reachable states twice. The checker of stateright checks the invariants. A second search checks them
//! again, returns the shortest trace to each broken one, and checks what stateright cannot: that a good end stays
//! reachable.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use stateright::{Checker as _, HasDiscoveries, Model as _, Property};

use super::model::{Action, Protocol};
use super::properties::{GOOD_END_AHEAD, always, good_end};
use super::state::State;

/// The result of stateright.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) states: usize,
    pub(super) broken: BTreeSet<&'static str>,
}

/// Runs stateright's checker until every state is seen, or one that breaks `until`.
pub(super) fn check(model: &Protocol, until: Option<&'static str>) -> Checked {
    let finish = until.map_or(HasDiscoveries::All, |property| {
        HasDiscoveries::AnyOf(BTreeSet::from([property]))
    });
    let checker = model.checker().finish_when(finish).spawn_bfs().join();
    Checked {
        states: checker.unique_state_count(),
        broken: checker.discoveries().into_keys().collect(),
    }
}

/// The result of the walk.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) states: usize,
    pub(super) actions: usize,
    /// Properties that do not hold, each with the fewest actions that show it.
    pub(super) broken: Vec<(&'static str, Vec<Action>)>,
}

/// Walks until every state is visited, or one that breaks `until`. States that cannot reach a good end are known only
/// when all states are visited: the search then goes back from the good ends, along every action that is no fault.
pub(super) fn walk(model: &Protocol, until: Option<&'static str>) -> Walk {
    let (properties, mut broken, mut actions, mut steps) = (always(), Vec::new(), Vec::new(), 0);
    let mut graph = Graph::default();
    for state in model.init_states() {
        graph.number(state, None);
    }
    while let Some((number, state)) = graph.queue.pop_front() {
        for Property {
            condition, name, ..
        } in &properties
        {
            if !condition(model, &state) && broken.iter().all(|(known, _)| known != name) {
                broken.push((*name, graph.trace(number)));
            }
        }
        if until.is_some_and(|until| broken.iter().any(|(known, _)| *known == until)) {
            return Walk {
                states: graph.reached.len(),
                actions: steps,
                broken,
            };
        }
        graph.good.push(good_end(model, &state));
        model.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let Some(next) = model.next_state(&state, action) else {
                continue;
            };
            steps += 1;
            let to = graph.number(next, Some((number, action)));
            if !action.is_fault() {
                graph.back.push((to, number));
            }
        }
    }
    let stuck = (0..)
        .zip(graph.can_end_well())
        .find(|(_, can_end_well)| !can_end_well);
    broken.extend(stuck.map(|(number, _)| (GOOD_END_AHEAD, graph.trace(number))));
    Walk {
        states: graph.reached.len(),
        actions: steps,
        broken,
    }
}

/// Reachable states by their number.
#[derive(Default)]
struct Graph {
    numbers: HashMap<u64, u32>,
    /// The state and the action by which each was first reached.
    reached: Vec<Option<(u32, Action)>>,
    /// `(to, from)` of every action that is no fault.
    back: Vec<(u32, u32)>,
    good: Vec<bool>,
    /// States whose actions are not explored yet.
    queue: VecDeque<(u32, State)>,
}

impl Graph {
    fn number(&mut self, state: State, reached: Option<(u32, Action)>) -> u32 {
        let fresh = u32::try_from(self.reached.len()).expect("fewer than 2^32 states");
        match self
            .numbers
            .entry(BuildHasherDefault::<DefaultHasher>::default().hash_one(&state))
        {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                unknown.insert(fresh);
                self.reached.push(reached);
                self.queue.push_back((fresh, state));
                fresh
            }
        }
    }

    fn trace(&self, mut number: u32) -> Vec<Action> {
        let mut trace = Vec::new();
        while let Some((from, action)) = self.reached[number as usize] {
            trace.push(action);
            number = from;
        }
        trace.reverse();
        trace
    }

    /// Whether each state can reach a good end.
    fn can_end_well(&mut self) -> Vec<bool> {
        self.back.sort_unstable();
        let mut can_end_well = self.good.clone();
        let mut stack: Vec<u32> = (0..)
            .zip(&self.good)
            .filter(|(_, good)| **good)
            .map(|(number, _)| number)
            .collect();
        while let Some(to) = stack.pop() {
            let first = self.back.partition_point(|edge| edge.0 < to);
            for (_, from) in self.back[first..].iter().take_while(|edge| edge.0 == to) {
                if !std::mem::replace(&mut can_end_well[*from as usize], true) {
                    stack.push(*from);
                }
            }
        }
        can_end_well
    }
}

/// The actions of a trace, each with the steps of the workers after it.
pub(super) fn describe(model: &Protocol, trace: &[Action]) -> String {
    let mut text = String::new();
    let Some(mut state) = model.init_states().pop() else {
        return text;
    };
    if trace.is_empty() {
        text.push_str("\n    from the start");
    }
    for action in trace {
        let Some(next) = model.next_state(&state, *action) else {
            break;
        };
        write!(text, "\n    {action:?}").expect("a string");
        for (number, (before, after)) in state.workers.iter().zip(&next.workers).enumerate() {
            if before.step != after.step {
                write!(text, "  →  worker {number}: {:?}", after.step).expect("a string");
            }
            if let (None, Some(sending)) = (before.sending, after.sending) {
                write!(text, "  →  number {}, {:?}", sending.number, sending.event)
                    .expect("a string");
            }
        }
        state = next;
    }
    text
}
