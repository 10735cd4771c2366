use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::execution::absorb::absorb;
use crate::execution::decide::{Decision, decide};
use crate::execution::entry::{Answer, Outcome, Spent, StopReason, ToolResult, Usage};
use crate::execution::event_refs::RecordedEntry;
use crate::execution::results::{ToolOutput, answered};
use crate::plan::{Limits, Strategy, SubAgent};
use crate::sub_agents;
use crate::testing::{agent_plan, changing_tool, read_only_tool};

const LEAD: ExecutionId = ExecutionId(Uuid::from_u128(7));

fn agent(name: &str) -> SubAgent {
    let tools = vec![read_only_tool("k8s.get"), changing_tool("k8s.restart")];
    SubAgent {
        name: name.to_owned(),
        description: "Looks".to_owned(),
        plan: Arc::new(agent_plan(Strategy::NativeThinking, tools)),
    }
}

fn plan(max_agents: u32) -> AgentPlan {
    let agents = vec![agent("logs"), agent("db")];
    let tools = vec![
        read_only_tool("k8s.get"),
        changing_tool("k8s.restart"),
        sub_agents::spec(&agents),
    ];
    AgentPlan {
        sub_agents: agents,
        limits: Limits {
            max_agents,
            ..Limits::default()
        },
        ..agent_plan(Strategy::NativeThinking, tools)
    }
}

fn state(plan: AgentPlan) -> State {
    let mut state = State::replay(Arc::new(plan), None, Vec::<Entry>::new()).of_execution(LEAD);
    let Decision::Append(opening) = decide(&state) else {
        panic!("no opening")
    };
    opening.into_iter().for_each(|entry| state.apply(entry));
    state
}

/// A call by its word: an agent, `get` or `restart`, or a bad dispatch.
fn call(word: &str) -> ToolCall {
    let called = match word {
        "get" => ("k8s.get", json!({})),
        "restart" => ("k8s.restart", json!({})),
        agent => (TOOL, json!({"agent": agent, "task": "Look."})),
    };
    ToolCall {
        id: String::new(),
        tool: called.0.to_owned(),
        arguments: called.1.to_string(),
        read_only: false,
    }
}

fn asks(state: &mut State, words: &[&str]) {
    let answer = Answer {
        text: "look".to_owned(),
        calls: words.iter().map(|word| call(word)).collect(),
        ..Answer::default()
    };
    for entry in absorb(state, answer) {
        state.apply(entry);
    }
}

const SPENT: Spent = Spent {
    usage: Usage {
        input_tokens: 100,
        cached_tokens: 0,
        output_tokens: 10,
        thinking_tokens: 0,
    },
    iterations: 3,
    tool_calls: 2,
    has_looked: true,
    has_answer: true,
    sourceless: Vec::new(),
};

/// The result of a sub-agent, as the engine makes it.
fn result(state: &State, call: &ToolCall, content: &str) -> Entry {
    let output = ToolOutput {
        content: content.to_owned(),
        ..ToolOutput::default()
    };
    let mut entry = answered(state.plan().strategy, call, output);
    if let Entry::ToolResult(result) = &mut entry {
        result.spent = Some(SPENT);
    }
    entry
}

/// The results of the present group, as the engine appends them.
fn results(state: &State) -> Vec<Entry> {
    group(state)
        .into_iter()
        .filter_map(|member| match member {
            GroupCall::Begun(call, dispatched) => Some(result(state, call, &dispatched.agent)),
            GroupCall::Refused(entry) => Some(entry),
            GroupCall::Due(..) => None,
        })
        .collect()
}

/// Decides until no call is open; every decision in one word.
fn settle(state: &mut State) -> Vec<String> {
    let mut words = Vec::new();
    while !state.open_calls().is_empty() {
        let entries = match decide(state) {
            Decision::Append(entries) => {
                let kinds: Vec<&str> = entries.iter().map(Entry::kind).collect();
                words.push(kinds.join(" "));
                entries
            }
            Decision::Await(ids) => {
                words.push(format!("await {}", ids.len()));
                results(state)
            }
            Decision::RunTools(calls) => {
                words.push(format!("run {}", calls.len()));
                calls
                    .iter()
                    .map(|call| answered(state.plan().strategy, call, ToolOutput::default()))
                    .collect()
            }
            other @ (Decision::CallModel(_)
            | Decision::Wait(_)
            | Decision::Summarise(_)
            | Decision::Done(_)) => {
                panic!("{other:?}")
            }
        };
        entries.into_iter().for_each(|entry| state.apply(entry));
    }
    words
}

fn order(state: &State) -> Vec<String> {
    let results = state.entries().iter().filter_map(Entry::result);
    results.map(|result| result.call_id.clone()).collect()
}

#[test]
fn calls_before_a_dispatch_have_run_and_those_beside_it_begin_in_one_checkpoint() {
    for (words, expected) in [
        (
            &["logs", "db"][..],
            &["dispatched dispatched", "await 2"][..],
        ),
        (
            &["get", "logs", "web", "db", "get"],
            &["run 1", "dispatched dispatched", "await 2", "run 1"],
        ),
        (
            &["logs", "get", "db"],
            &["dispatched", "await 1", "run 1", "dispatched", "await 1"],
        ),
        (&["web", "web"], &["tool_result tool_result"]),
        (
            &["logs", "db", "logs", "db"],
            &["dispatched dispatched dispatched", "await 3"],
        ),
    ] {
        let mut state = state(plan(3));
        asks(&mut state, words);
        assert_eq!(settle(&mut state), expected, "{words:?}");
        let count = words.len();
        assert_eq!(
            order(&state),
            (1..=count)
                .map(|n| format!("call-1-{n}"))
                .collect::<Vec<_>>(),
            "{words:?}"
        );
    }
}

#[test]
fn two_calls_never_have_one_sub_agent_whatever_ids_a_provider_makes_up() {
    let state = state(plan(8));
    let call = |id: &str| ToolCall {
        id: id.to_owned(),
        tool: TOOL.to_owned(),
        arguments: json!({"agent": "logs", "task": "Look."}).to_string(),
        read_only: true,
    };
    let answer = Answer {
        calls: ["call-1-2", "call-1-2", "", "call-1-3"].map(call).into(),
        ..Answer::default()
    };
    let entries = absorb(&state, answer);
    let calls = entries.iter().filter_map(Entry::answer);
    let ids: Vec<&str> = calls
        .flat_map(|answer| &answer.calls)
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!(ids, ["call-1-2", "call-1-2x", "call-1-3", "call-1-4"]);
}

#[test]
fn a_call_has_the_same_sub_agent_in_every_replay() {
    let mut state = state(plan(8));
    asks(&mut state, &["logs"]);
    let first = decide(&state);
    let replayed = State::replay(Arc::new(plan(8)), None, state.entries().to_vec());
    assert_eq!(decide(&replayed.of_execution(LEAD)), first);
    let Decision::Append(entries) = first else {
        panic!("{first:?}")
    };
    let dispatched = entries[0].dispatched().unwrap();
    assert_eq!(dispatched.execution_id, LEAD.of_sub_agent("call-1-1"));
    assert_eq!(
        (dispatched.agent.as_str(), dispatched.task.as_str()),
        ("logs", "Look.")
    );
}

#[test]
fn the_number_of_sub_agents_counts_over_all_answers() {
    let mut state = state(plan(2));
    asks(&mut state, &["logs"]);
    settle(&mut state);
    asks(&mut state, &["db", "logs"]);
    settle(&mut state);
    let last = state.entries().iter().filter_map(Entry::result).next_back();
    let last: &ToolResult = last.unwrap();
    assert_eq!(last.not_sent, Some(NotSent::TooMany));
    assert_eq!(last.content, "Error: not run: at most 2 agents in all");
}

#[test]
fn a_stop_waits_for_the_sub_agents_that_have_begun_and_begins_no_other() {
    for (reason, end) in [
        (StopReason::Cancelled, Outcome::Cancelled),
        (StopReason::Deadline, Outcome::TimedOut),
    ] {
        let mut begun = state(plan(8));
        asks(&mut begun, &["logs"]);
        let Decision::Append(entries) = decide(&begun) else {
            panic!("no dispatch")
        };
        entries.into_iter().for_each(|entry| begun.apply(entry));
        begun.apply(Entry::Stopped { reason });
        let awaited = vec![LEAD.of_sub_agent("call-1-1")];
        assert_eq!(decide(&begun), Decision::Await(awaited));
        let ended = results(&begun);
        ended.into_iter().for_each(|entry| begun.apply(entry));
        let expected = Decision::Append(vec![Entry::Ended { outcome: end }]);
        assert_eq!(decide(&begun), expected);

        let mut unbegun = state(plan(8));
        asks(&mut unbegun, &["logs"]);
        unbegun.apply(Entry::Stopped { reason });
        assert_eq!(decide(&unbegun), expected);
    }
    let mut late = state(plan(8));
    asks(&mut late, &["logs"]);
    late.apply(Entry::Stopped {
        reason: StopReason::TimeBudget,
    });
    settle(&mut late);
    let refused = late.entries().last().and_then(Entry::result).unwrap();
    assert_eq!(refused.not_sent, Some(NotSent::NoTime));
}

#[test]
fn what_a_sub_agent_has_used_counts_once_and_for_the_budget() {
    let mut limited = plan(8);
    limited.limits.max_tokens = 200;
    let mut state = state(limited);
    asks(&mut state, &["logs", "db"]);
    let Decision::Append(begin) = decide(&state) else {
        panic!("no dispatch")
    };
    begin.into_iter().for_each(|entry| state.apply(entry));
    assert_eq!(tokens_of_each(&state, 0), 100);
    assert_eq!(tokens_of_each(&state, 60), 60);
    settle(&mut state);
    assert_eq!(state.usage(), SPENT.usage.plus(SPENT.usage));
    assert_eq!(*state.spent(), SPENT.plus(&SPENT));
    assert_eq!(
        decide(&state),
        Decision::Append(vec![
            Entry::Concluding {
                reason: StopReason::Budget
            },
            Entry::feedback("conclude"),
        ])
    );
}

/// The state after the answer of a sub-agent with this cost, as event 20.
fn answered_with(spent: Spent, content: &str) -> State {
    let mut state = state(plan(8));
    asks(&mut state, &["logs"]);
    let Decision::Append(begin) = decide(&state) else {
        panic!("no dispatch")
    };
    begin.into_iter().for_each(|entry| state.apply(entry));
    let call = state.open_calls()[0].call.clone();
    let mut entry = result(&state, &call, content);
    if let Entry::ToolResult(result) = &mut entry {
        result.spent = Some(spent);
    }
    state.apply(RecordedEntry {
        entry,
        event: Some(20),
        at: None,
    });
    state
}

#[test]
fn a_sub_agent_whose_calls_show_nothing_proves_nothing() {
    let failed = Spent {
        has_answer: false,
        ..SPENT
    };
    let state = answered_with(failed, "Not found: all calls failed [12]");
    assert!(state.has_looked && !state.has_answer_of_tool());
    let only_skills = Spent {
        has_looked: false,
        has_answer: false,
        ..SPENT
    };
    let state = answered_with(only_skills, "Found: nothing [12]");
    assert!(!state.has_looked && !state.has_answer_of_tool());
}

#[test]
fn an_earlier_investigation_proves_nothing_through_a_sub_agent() {
    let spent = Spent {
        sourceless: vec![9],
        ..SPENT
    };
    let state = answered_with(spent, "Found: full [12]\nFound: full yesterday, too [9]");
    let sourceless: Vec<u64> = state.sourceless_events().into_iter().collect();
    assert_eq!(sourceless, [9, 20]);
    let citable: Vec<u64> = state.citable().unwrap().into_iter().collect();
    assert_eq!(citable, [9, 12, 20]);
}

#[test]
fn the_events_that_a_sub_agent_cites_may_be_cited() {
    let state = answered_with(SPENT, "Found: full [12], not [9?]");
    let citable: Vec<u64> = state.citable().unwrap().into_iter().collect();
    assert_eq!(citable, [12, 20]);
    assert_eq!(
        state.sourceless_events().into_iter().collect::<Vec<_>>(),
        [20]
    );
    assert!(state.has_looked && state.has_answer_of_tool());
}

#[test]
fn a_sub_agent_has_no_tools_that_change_something_and_no_sub_agents() {
    let mut parent = plan(8);
    let mut nested = AgentPlan::clone(&parent.sub_agents[0].plan);
    nested.sub_agents = vec![agent("db")];
    nested.tools.push(sub_agents::spec(&nested.sub_agents));
    parent.sub_agents[0].plan = nested.into();
    let child = plan_of(&parent, "logs", "Look at it.").unwrap();
    let tools: Vec<&str> = child.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["k8s.get"]);
    assert!(child.sub_agents.is_empty());
    assert_eq!(child.name, "logs");
    assert!(child.user_prompt.starts_with("user") && child.user_prompt.contains("    Look at it."));
    assert_eq!(plan_of(&parent, "web", "x"), None);
}

proptest! {
    #[test]
    fn every_call_gets_one_result_in_order_and_every_sub_agent_one_dispatch(
        answers in prop::collection::vec(
            prop::collection::vec(
                prop::sample::select(vec!["logs", "db", "web", "get", "restart"]), 1..8),
            1..4),
        max_agents in 0_u32..6,
    ) {
        let mut state = state(plan(max_agents));
        for (n, words) in (1..).zip(&answers) {
            asks(&mut state, words);
            let before = order(&state).len();
            settle(&mut state);
            let new: Vec<String> = order(&state).split_off(before);
            let expected: Vec<String> = (1..=words.len()).map(|at| format!("call-{n}-{at}")).collect();
            prop_assert_eq!(new, expected);
        }
        let begun: Vec<&str> = state.entries().iter().filter_map(Entry::dispatched)
            .map(|dispatched| dispatched.call_id.as_str()).collect();
        let spent: Vec<&str> = state.entries().iter().filter_map(Entry::result)
            .filter(|result| result.spent.is_some()).map(|result| result.call_id.as_str()).collect();
        prop_assert_eq!(&begun, &spent);
        prop_assert!(begun.len() <= usize::try_from(max_agents).unwrap());
        let total = u64::try_from(begun.len()).unwrap() * SPENT.usage.total();
        prop_assert_eq!(state.usage().total(), total);
    }
}
