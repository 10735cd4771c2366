//! Tests of the context window: the estimate, and when results are blanked.

use std::sync::Arc;

use proptest::prelude::*;

use crate::execution::absorb::{absorb, failed};
use crate::execution::decide::{Decision, decide};
use crate::execution::entry::{Answer, Outcome, Role, StopReason, ToolCall, Usage};
use crate::execution::event_refs::RecordedEntry;
use crate::execution::results::{CallError, ToolOutput, answered};
use crate::execution::state::State;
use crate::execution::window::*;
use crate::plan::{Strategy, ToolSpec};
use crate::testing::agent_plan;

const TOOLS_BYTES: u64 = 21;

fn plan(strategy: Strategy, context_window: u64, max_iterations: u32) -> Arc<AgentPlan> {
    let tool = ToolSpec {
        original_name: None,
        name: "log.page".to_owned(),
        description: "Reads a page.".to_owned(),
        parameters_schema: String::new(),
        read_only: true,
        approval: None,
    };
    let mut plan = agent_plan(strategy, vec![tool]);
    plan.limits.max_iterations = max_iterations;
    plan.providers[0].context_window = context_window;
    Arc::new(plan)
}

/// A model with a context window, as a function of the conversation.
#[derive(Debug)]
struct WindowedModel {
    plan: Arc<AgentPlan>,
    /// The largest request that the provider accepts, in bytes; it counts a token for each three of them.
    takes_bytes: u64,
    /// Sizes of the results of each turn; the turn after the last one is the final answer.
    turns: Vec<Vec<usize>>,
}

/// The journal of a run, and the size of each request that the provider accepted.
#[derive(Default)]
struct Ran {
    journal: Vec<RecordedEntry>,
    taken: Vec<u64>,
    refused: u32,
}

impl WindowedModel {
    fn run(&self, before: Vec<RecordedEntry>) -> Ran {
        let mut ran = Ran {
            journal: before,
            ..Ran::default()
        };
        let mut state = State::replay(Arc::clone(&self.plan), None, ran.journal.clone());
        loop {
            let entries = match decide(&state) {
                Decision::Done(_) => return ran,
                Decision::Append(entries) => entries,
                Decision::CallModel(call) => self.ask(&state, call.tools, &mut ran),
                Decision::RunTools(calls) => {
                    calls.iter().map(|call| self.result(&state, call)).collect()
                }
                Decision::Summarise(_) => panic!("no summaries"),
                Decision::Await(_) | Decision::Wait(_) => panic!("no sub-agents"),
            };
            for entry in entries {
                let is_result = matches!(entry, Entry::ToolResult(_) | Entry::Observation(_));
                let event = is_result.then(|| u32::try_from(ran.journal.len()).unwrap() + 10);
                let recorded = RecordedEntry {
                    entry,
                    event,
                    at: None,
                };
                state.apply(recorded.clone());
                ran.journal.push(recorded);
            }
        }
    }

    fn ask(&self, state: &State, tools: ToolBinding, ran: &mut Ran) -> Vec<Entry> {
        let request = sent(state)
            + if tools == ToolBinding::Bound {
                TOOLS_BYTES
            } else {
                0
            };
        let strategy = self.plan.strategy;
        if request > self.takes_bytes {
            ran.refused += 1;
            assert!(ran.refused < 200, "it goes on for ever");
            return failed(
                state,
                ErrorCode::ContextWindowExceeded.as_str(),
                CallError {
                    message: "prompt is too long",
                    timeout: false,
                },
            );
        }
        ran.taken.push(request);
        let usage = Usage {
            input_tokens: request.div_ceil(3),
            ..Usage::default()
        };
        let answers = state
            .entries()
            .iter()
            .filter(|entry| matches!(entry, Entry::Answer(_)))
            .count();
        let Some(turn) = self.turns.get(answers) else {
            return absorb(
                state,
                Answer {
                    text: "Final Answer: Cause: x".to_owned(),
                    usage,
                    ..Answer::default()
                },
            );
        };
        let calls: Vec<_> = (0..turn.len())
            .map(|n: usize| ToolCall {
                id: format!("c{answers}-{n}"),
                tool: "log.page".to_owned(),
                arguments: format!("{{\"page\": {answers}, \"part\": {n}}}"),
                read_only: true,
            })
            .collect();
        let text = if strategy == Strategy::React {
            format!("Thought: on\nAction: log.page\nAction Input: {{\"page\": {answers}}}")
        } else {
            "on".to_owned()
        };
        absorb(
            state,
            Answer {
                text,
                calls,
                usage,
                ..Answer::default()
            },
        )
    }

    fn result(&self, state: &State, call: &ToolCall) -> Entry {
        let answers = state
            .entries()
            .iter()
            .filter(|entry| matches!(entry, Entry::Answer(_)))
            .count();
        let part = call
            .id
            .rsplit('-')
            .next()
            .and_then(|part| part.parse::<usize>().ok())
            .unwrap_or_default();
        let turn = answers.checked_sub(1).and_then(|turn| self.turns.get(turn));
        let bytes = turn
            .and_then(|turn| turn.get(part).or_else(|| turn.first()))
            .copied()
            .unwrap_or_default();
        answered(
            self.plan.strategy,
            call,
            ToolOutput {
                content: "x".repeat(bytes),
                is_error: false,
                whole_bytes: 0,
                facts: None,
            },
        )
    }
}

/// Bytes of the conversation, counted from its messages.
fn sent(state: &State) -> u64 {
    state
        .messages()
        .iter()
        .map(|message: &conversation::Message| {
            let calls: usize = message
                .tool_calls
                .iter()
                .map(|c| c.id.len() + c.tool.len() + c.arguments.len())
                .sum();
            let names = message.tool_call_id.as_ref().map_or(0, String::len)
                + message.tool_name.as_ref().map_or(0, String::len);
            u64::try_from(message.content.len() + calls + names + 16).unwrap()
        })
        .sum()
}

fn kinds(journal: &[RecordedEntry]) -> Vec<&'static str> {
    journal
        .iter()
        .map(|recorded| recorded.entry.kind())
        .collect()
}

fn outcome(ran: &Ran) -> &Outcome {
    match ran.journal.last().map(|recorded| &recorded.entry) {
        Some(Entry::Ended { outcome }) => outcome,
        other => panic!("not ended: {other:?}"),
    }
}

fn completed_because(ran: &Ran) -> StopReason {
    let Outcome::Completed { reason, .. } = outcome(ran) else {
        panic!("{:?}", outcome(ran))
    };
    *reason
}

#[test]
fn an_estimate_that_passes_the_budget_blanks_the_oldest_results_in_one_large_step() {
    let world = WindowedModel {
        plan: plan(Strategy::NativeThinking, 6000, 50),
        takes_bytes: 18_000,
        turns: vec![vec![1500]; 40],
    };
    let ran = world.run(Vec::new());
    assert_eq!(
        (completed_because(&ran), ran.refused),
        (StopReason::FinalAnswer, 0)
    );
    let steps = kinds(&ran.journal)
        .iter()
        .filter(|kind| **kind == "elided")
        .count();
    assert!((2..=12).contains(&steps), "{steps} steps for 40 results");
    assert!(
        ran.taken.iter().all(|bytes| *bytes <= 18_000),
        "{:?}",
        ran.taken
    );
}

#[test]
fn without_older_results_the_conclusion_is_forced() {
    let plan = plan(Strategy::NativeThinking, 1000, 20);
    let world = WindowedModel {
        plan,
        takes_bytes: 3000,
        turns: vec![vec![40], vec![1500, 1400]],
    };
    let ran = world.run(Vec::new());
    assert_eq!(
        (completed_because(&ran), ran.refused),
        (StopReason::ContextWindow, 0)
    );
    let expected = [
        "tool_result",
        "answer",
        "tool_result",
        "tool_result",
        "concluding",
        "feedback",
        "elided",
        "answer",
    ];
    assert_eq!(
        kinds(&ran.journal)[3..11],
        expected,
        "there is nothing to gain by the first result"
    );
}

#[test]
fn a_refused_request_blanks_once_and_tells_the_model_nothing_of_it() {
    // The window is much smaller than what is configured.
    let plan = plan(Strategy::NativeThinking, 100_000, 20);
    let world = WindowedModel {
        plan,
        takes_bytes: 1200,
        turns: vec![vec![300]; 4],
    };
    let ran = world.run(Vec::new());
    assert_eq!(completed_because(&ran), StopReason::FinalAnswer);
    assert_eq!(ran.refused, 1, "the budget is known from then on");
    let kinds = kinds(&ran.journal);
    let at = kinds.iter().position(|kind| *kind == "failed").unwrap();
    assert_eq!(kinds[at..at + 3], ["failed", "elided", "answer"]);
}

#[test]
fn a_second_refusal_forces_the_conclusion() {
    let plan = plan(Strategy::React, 100_000, 20);
    let mut state = State::replay(Arc::clone(&plan), None, Vec::<Entry>::new());
    let call = |n: u32| ToolCall {
        id: format!("c{n}"),
        tool: "log.page".into(),
        arguments: "{}".into(),
        read_only: true,
    };
    let write = |state: &mut State, entries: Vec<Entry>| {
        entries.into_iter().for_each(|entry| state.apply(entry))
    };
    let Decision::Append(opening) = decide(&state) else {
        panic!()
    };
    write(&mut state, opening);
    for n in 1..=2 {
        let asked = Entry::Answer(Answer {
            calls: vec![call(n)],
            ..Answer::default()
        });
        write(
            &mut state,
            vec![
                asked,
                answered(
                    Strategy::React,
                    &call(n),
                    ToolOutput {
                        content: "x".repeat(500),
                        is_error: false,
                        whole_bytes: 0,
                        facts: None,
                    },
                ),
            ],
        );
    }
    let refused = |state: &State| {
        failed(
            state,
            ErrorCode::ContextWindowExceeded.as_str(),
            CallError {
                message: "prompt is too long",
                timeout: false,
            },
        )
    };
    let entries = refused(&state);
    write(&mut state, entries);
    assert_eq!(decide(&state), Decision::Append(vec![Entry::elided(4)]));
    write(&mut state, vec![Entry::elided(4)]);
    assert!(
        matches!(decide(&state), Decision::CallModel(call) if call.tools == ToolBinding::Unbound)
    );
    let entries = refused(&state);
    write(&mut state, entries);
    let conclusion = vec![
        Entry::Concluding {
            reason: StopReason::ContextWindow,
        },
        Entry::Feedback {
            content: "conclude".to_owned(),
            about: None,
        },
    ];
    assert_eq!(decide(&state), Decision::Append(conclusion.clone()));
    write(&mut state, conclusion);
    assert_eq!(
        decide(&state),
        Decision::Append(vec![Entry::elided(6)]),
        "the last answer's may go now"
    );
    write(&mut state, vec![Entry::elided(6)]);
    let entries = refused(&state);
    write(&mut state, entries);
    let Decision::Append(end) = decide(&state) else {
        panic!()
    };
    assert!(
        matches!(&end[..], [Entry::Ended { outcome: Outcome::Failed { error, .. } }] if error.contains("too long"))
    );
}

/// An execution that has read so many pages of 500 bytes each.
fn reader(pages: u32) -> State {
    let mut state = State::replay(
        plan(Strategy::React, 100_000, 50),
        None,
        Vec::<Entry>::new(),
    );
    let Decision::Append(opening) = decide(&state) else {
        panic!()
    };
    opening.into_iter().for_each(|entry| state.apply(entry));
    (0..pages).for_each(|page| read_page(&mut state, page));
    state
}

fn read_page(state: &mut State, page: u32) {
    let call = ToolCall {
        id: format!("c{page}"),
        tool: "log.page".into(),
        arguments: format!("{{\"page\": {page}}}"),
        read_only: true,
    };
    call_with_result(state, call, "x");
}

fn call_with_result(state: &mut State, call: ToolCall, letter: &str) {
    state.apply(Entry::Answer(Answer {
        calls: vec![call.clone()],
        ..Answer::default()
    }));
    state.apply(answered(
        Strategy::React,
        &call,
        ToolOutput {
            content: letter.repeat(500),
            is_error: false,
            whole_bytes: 0,
            facts: None,
        },
    ));
}

/// The model refuses the next request; what is written then.
fn refuse(state: &mut State) -> Vec<Entry> {
    assert!(matches!(decide(state), Decision::CallModel(_)));
    failed(
        state,
        ErrorCode::ContextWindowExceeded.as_str(),
        CallError {
            message: "prompt is too long",
            timeout: false,
        },
    )
    .into_iter()
    .for_each(|entry| state.apply(entry));
    let Decision::Append(entries) = decide(state) else {
        panic!("no room is made")
    };
    entries.iter().for_each(|entry| state.apply(entry.clone()));
    entries
}

fn blanked_up_to(entries: &[Entry]) -> u32 {
    let [Entry::Elided { up_to, .. }] = entries else {
        panic!("{entries:?}")
    };
    *up_to
}

#[test]
fn a_second_refusal_in_a_row_forces_the_conclusion() {
    let mut state = reader(12);
    let last_old = 24;
    let last = 26;

    assert!(blanked_up_to(&refuse(&mut state)) < last_old);
    let entries = refuse(&mut state);
    assert!(matches!(
        &entries[..],
        [
            Entry::Concluding {
                reason: StopReason::ContextWindow
            },
            Entry::Feedback { .. }
        ]
    ));
    let Decision::Append(entries) = decide(&state) else {
        panic!("it does not fit yet")
    };
    assert!(blanked_up_to(&entries) < last, "only what has to go");
    entries.into_iter().for_each(|entry| state.apply(entry));
    assert_eq!(
        blanked_up_to(&refuse(&mut state)),
        last,
        "now there is nothing left to be careful with"
    );
}

#[test]
fn texts_of_skills_are_blanked_last() {
    let mut state = reader(0);
    let call = ToolCall {
        id: "skill".into(),
        tool: "tarsy.load_skill".into(),
        arguments: "{}".into(),
        read_only: true,
    };
    call_with_result(&mut state, call, "s");
    (0..12).for_each(|page| read_page(&mut state, page));
    let shows = |state: &State, letter: &str| {
        let text = letter.repeat(500);
        let messages = state.messages();
        messages.iter().any(|sent| sent.content.contains(&text))
    };
    let entries = refuse(&mut state);
    assert!(matches!(
        entries.as_slice(),
        [Entry::Elided {
            skills: LoadedSkills::Kept,
            ..
        }]
    ));
    assert!(shows(&state, "s"));
    refuse(&mut state);
    if let Decision::Append(entries) = decide(&state) {
        entries.into_iter().for_each(|entry| state.apply(entry));
    }
    assert!(shows(&state, "s"), "the others are enough");
    let entries = refuse(&mut state);
    assert!(!shows(&state, "s") && !shows(&state, "x"), "{entries:?}");
}

#[test]
fn a_refusal_after_an_answer_is_the_first_one_again() {
    let mut state = reader(12);
    let first = blanked_up_to(&refuse(&mut state));
    read_page(&mut state, 12);
    assert!(blanked_up_to(&refuse(&mut state)) > first);
}

#[test]
fn a_refusal_with_nothing_to_blank_is_forgiven_to_the_conclusion() {
    let mut state = reader(0);
    let entries = refuse(&mut state);
    assert!(matches!(
        &entries[..],
        [
            Entry::Concluding {
                reason: StopReason::ContextWindow
            },
            Entry::Feedback { .. }
        ]
    ));
    assert!(
        matches!(decide(&state), Decision::CallModel(call) if call.tools == ToolBinding::Unbound)
    );
}

#[test]
fn a_strategy_without_tools_has_nothing_to_give_up() {
    for strategy in [Strategy::SingleCall, Strategy::Synthesis] {
        let world = WindowedModel {
            plan: plan(strategy, 10, 1),
            takes_bytes: 5,
            turns: vec![],
        };
        let ran = world.run(Vec::new());
        assert_eq!(kinds(&ran.journal), ["prompt", "prompt", "failed", "ended"]);
        assert!(matches!(
            outcome(&ran),
            Outcome::Failed {
                reason: StopReason::Error,
                ..
            }
        ));
    }
}

#[test]
fn a_window_of_unknown_size_counts_only_after_a_refusal() {
    let mut state = State::replay(
        plan(Strategy::NativeThinking, 0, 20),
        None,
        Vec::<Entry>::new(),
    );
    state.apply(Entry::Prompt {
        role: Role::User,
        content: "x".repeat(600_000),
    });
    assert!(state.window().estimate(ToolBinding::Bound) > state.window().budget(0));
    assert!(matches!(decide(&state), Decision::CallModel(_)));
    let windowed = plan(Strategy::NativeThinking, 128_000, 20);
    let state = State::replay(windowed, None, state.entries().to_vec());
    assert!(
        matches!(decide(&state), Decision::Append(entries) if entries[0].kind() == "concluding")
    );
}

#[test]
fn what_the_provider_counts_is_believed_within_reason() {
    let mut state = State::replay(
        plan(Strategy::NativeThinking, 0, 20),
        None,
        Vec::<Entry>::new(),
    );
    state.apply(Entry::Prompt {
        role: Role::User,
        content: "x".repeat(984),
    });
    assert_eq!(
        state.window().estimate(ToolBinding::Unbound),
        304,
        "at 3.3 bytes a token"
    );
    let mut answered = |input_tokens| {
        let usage = Usage {
            input_tokens,
            ..Usage::default()
        };
        state.apply(Entry::Answer(Answer {
            usage,
            ..Answer::default()
        }));
        (state.window().rate.tokens, state.window().rate.bytes)
    };
    assert_eq!(answered(400), (400, 1000 + TOOLS_BYTES));
    assert_eq!(
        answered(0),
        (400, 1000 + TOOLS_BYTES),
        "a usage of 0 is unknown"
    );
    assert_eq!(answered(1_000_000), (1, 1));
    assert_eq!(answered(1), (1, 8));
}

/// The remaining checks of every run: the journal continues from any of its checkpoints, and no call loses its result.
fn holds_together(world: &WindowedModel, ran: &Ran) -> Result<(), TestCaseError> {
    let mut state = State::replay(Arc::clone(&world.plan), None, Vec::<Entry>::new());
    for recorded in &ran.journal {
        let before = state.window().estimate(ToolBinding::Bound);
        state.apply(recorded.clone());
        prop_assert_eq!(
            state.window().request_bytes(ToolBinding::Unbound),
            sent(&state),
            "the fold counts what is sent"
        );
        if matches!(
            recorded.entry,
            Entry::ToolResult(_) | Entry::Feedback { .. } | Entry::Observation(_)
        ) {
            prop_assert!(state.window().estimate(ToolBinding::Bound) > before);
        }
        if matches!(recorded.entry, Entry::Elided { .. }) {
            prop_assert!(state.window().estimate(ToolBinding::Bound) <= before);
        }
        let messages = state.messages();
        let asked = messages
            .iter()
            .flat_map(|message| &message.tool_calls)
            .count();
        let results = messages
            .iter()
            .filter(|message| message.tool_call_id.is_some())
            .count();
        prop_assert_eq!(
            asked,
            results
                + if asked == 0 {
                    0
                } else {
                    state.open_calls().len()
                }
        );
    }
    Ok(())
}

prop_compose! {
    fn world()(
        react in any::<bool>(),
        context_window in prop_oneof![Just(0_u64), 200_u64..3000],
        takes in prop_oneof![1 => 100_u64..3000, 3 => Just(9000_u64)],
        max_iterations in 1_u32..12,
        turns in prop::collection::vec(prop::collection::vec(0_usize..1200, 1..4), 0..12),
    ) -> WindowedModel {
        let strategy = if react { Strategy::React } else { Strategy::NativeThinking };
        WindowedModel { plan: plan(strategy, context_window, max_iterations), takes_bytes: takes, turns }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cut_anywhere_the_same_room_is_made_and_no_result_is_torn_from_its_call(world in world()) {
        let whole = world.run(Vec::new());
        outcome(&whole);
        holds_together(&world, &whole)?;
        for (cut, recorded) in whole.journal.iter().enumerate() {
            // Between two checkpoints: entries that belong together are never cut apart.
            if !matches!(recorded.entry, Entry::Elided { .. } | Entry::Failed { .. } | Entry::Concluding { .. }) {
                continue;
            }
            let resumed = world.run(whole.journal.iter().take(cut).cloned().collect());
            prop_assert_eq!(&resumed.journal, &whole.journal, "cut before entry {}", cut + 1);
        }
    }
}

#[test]
fn five_hundred_iterations_with_large_results_need_few_steps() {
    let world = WindowedModel {
        plan: plan(Strategy::NativeThinking, 64_000, 500),
        takes_bytes: 192_000,
        turns: vec![vec![8000]; 499],
    };
    let ran = world.run(Vec::new());
    assert_eq!(
        (completed_because(&ran), ran.refused, ran.taken.len()),
        (StopReason::FinalAnswer, 0, 500)
    );
    let steps = kinds(&ran.journal)
        .iter()
        .filter(|kind| **kind == "elided")
        .count();
    assert!(steps < 60, "{steps} steps: each costs the provider's cache");
}
