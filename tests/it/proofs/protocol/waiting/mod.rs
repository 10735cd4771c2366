//! A model of a session that waits for a person: votes, parks, claims and expiries in every order, with deaths of
//! workers and of the recorder of votes between them.
//!
//! | in the model | in tarsy |
//! |---|---|
//! | `Action::Record` | `crates/store/src/sql/vote.sql` |
//! | `Phase::Read`, `Park` | `outcomes.sql`, `park.sql` |
//! | `Phase::Start`, `End`, `Deny` | `checkpoint.sql`, which closes a request |
//! | `Action::Claim` | `claim.sql` |
//! | `Action::Sweep`, `Requeue` | the sweeper; the task that records votes |
//!
//! One session with one request, one vote of each kind and one resolution of its alert. The model of delivery has what
//! is left out here.

mod model;

use std::collections::{BTreeSet, HashMap, VecDeque};

use self::model::{Action, BROKEN, Rule, State, Waiting};

/// A person's answer, an expiry or the sweeper has to lead to the end.
const END_AHEAD: &str = "the end can be reached from every state without another fault";
/// A parked session needs neither a slot nor a message.
const QUIET_AHEAD: &str = "a session that waits comes to hold no message and no worker";

/// Searches all states; returns their number, and each broken property with the actions that lead to it.
fn search(model: Waiting) -> (usize, Vec<(&'static str, Vec<Action>)>) {
    let start = State::new(model.faults);
    let mut numbers = HashMap::from([(start, 0_usize)]);
    let mut states = vec![start];
    let mut reached: Vec<Option<(usize, Action)>> = vec![None];
    let mut edges = Vec::new();
    let mut queue = VecDeque::from([0]);
    while let Some(from) = queue.pop_front() {
        for action in model.actions(&states[from]) {
            let next = model.after(&states[from], action);
            let fresh = states.len();
            let to = *numbers.entry(next).or_insert(fresh);
            if to == fresh {
                states.push(next);
                reached.push(Some((from, action)));
                queue.push_back(to);
            }
            edges.push((from, action, to));
        }
    }
    let trace = |mut to: usize| {
        let mut actions = Vec::new();
        while let Some((from, action)) = reached[to] {
            actions.push(action);
            to = from;
        }
        actions.reverse();
        actions
    };
    let mut broken = Vec::new();
    for (name, is_broken) in BROKEN {
        let first = states.iter().position(is_broken);
        broken.extend(first.map(|state| (name, trace(state))));
    }
    let mut stuck = |name, goal: fn(&State) -> bool, may: fn(Action) -> bool| {
        let ahead = reaching(&states, &edges, goal, may);
        let first = ahead.iter().position(|is_ahead| !is_ahead);
        broken.extend(first.map(|state| (name, trace(state))));
    };
    stuck(
        END_AHEAD,
        |state| state.has_ended,
        |action| !action.is_fault(),
    );
    stuck(QUIET_AHEAD, State::is_quiet, Action::is_machine);
    (states.len(), broken)
}

/// The states from which one with the goal can be reached by these actions.
fn reaching(
    states: &[State],
    edges: &[(usize, Action, usize)],
    goal: fn(&State) -> bool,
    may: fn(Action) -> bool,
) -> Vec<bool> {
    let mut ahead: Vec<bool> = states.iter().map(goal).collect();
    loop {
        let mut has_grown = false;
        for (from, action, to) in edges.iter().rev() {
            if ahead[*to] && !ahead[*from] && may(*action) {
                ahead[*from] = true;
                has_grown = true;
            }
        }
        if !has_grown {
            return ahead;
        }
    }
}

#[test]
fn with_every_rule_no_decision_is_lost_and_no_call_is_sent_twice() {
    let (states, broken) = search(Waiting::with(None));
    println!("{states} states");
    assert_eq!(broken, []);
}

#[test]
fn each_rule_of_waiting_that_is_switched_off_breaks_its_property() {
    for rule in Rule::ALL {
        let (states, broken) = search(Waiting::with(Some(rule)));
        let names: BTreeSet<&str> = broken.iter().map(|(name, _)| *name).collect();
        println!("without {rule:?} ({states} states): {broken:?}");
        assert!(
            names.contains(rule.property()),
            "without {rule:?}: {names:?}"
        );
    }
}
