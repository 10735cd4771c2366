//! Whatever a model says, and wherever a worker dies: the replay goes on to the same journal.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use super::absorb::{absorb, failed};
use super::decide::{Decision, decide};
use super::entry::{Answer, Entry, FailureSource, StopReason, ToolCall};
use super::plan::{AgentPlan, Limits, ProviderPlan, Strategy, ToolSpec};
use super::results::{answered, lost, unanswered};
use super::state::State;

/// What the model does in one iteration.
#[derive(Clone, Debug)]
enum Turn {
    Says { text: String, thinking: String, tools: Vec<&'static str> },
    Fails { timeout: bool },
}

/// Everything outside of the core, as a function of the journal.
#[derive(Clone, Debug)]
struct World {
    strategy: Strategy,
    limits: Limits,
    turns: Vec<Turn>,
    /// After so many entries something wants the execution to stop.
    stop: Option<(usize, StopReason)>,
}

const TOOLS: [(&str, bool); 4] =
    [("k8s.get", true), ("k8s.silent", true), ("k8s.restart", false), ("k8s.patch_silent", false)];

impl World {
    fn plan(&self) -> Arc<AgentPlan> {
        let tool = |(name, read_only): (&str, bool)| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters_schema: "{}".to_owned(),
            read_only,
        };
        let provider = ProviderPlan {
            name: "p".to_owned(),
            provider: "scripted".to_owned(),
            backend: "scripted".to_owned(),
            model: "m".to_owned(),
            api_key_env: String::new(),
            base_url: String::new(),
            transcript: String::new(),
            context_window: 0,
            keep_search_widget: false,
        };
        Arc::new(AgentPlan {
            name: "sre".to_owned(),
            strategy: self.strategy,
            limits: self.limits,
            providers: vec![provider],
            tools: TOOLS.map(tool).to_vec(),
            system_prompt: "system".to_owned(),
            user_prompt: "user".to_owned(),
            conclusion_prompt: "conclude".to_owned(),
        })
    }

    /// Goes on from a journal to its end; what each checkpoint writes.
    fn run(&self, journal: Vec<Entry>) -> Vec<Vec<Entry>> {
        let mut state = State::replay(self.plan(), Some("found before".to_owned()), journal);
        let mut checkpoints = Vec::new();
        let mut write = |state: &mut State, entries: Vec<Entry>| {
            for entry in &entries {
                state.apply(entry.clone());
            }
            checkpoints.push(entries);
        };
        loop {
            if let Some((after, reason)) = self.stop
                && state.stopped().is_none()
                && state.ended().is_none()
                // A stop that comes while a call is out is seen after its result, or not at all.
                && state.open_calls().iter().all(|open| !open.started)
                && told(state.entries()).len() >= after
            {
                write(&mut state, vec![Entry::Stopped { reason }]);
            }
            match decide(&state) {
                Decision::Done(_) => return checkpoints,
                Decision::Append(entries) => write(&mut state, entries),
                Decision::CallModel(call) => {
                    assert!(call.with_tools <= (self.strategy == Strategy::NativeThinking));
                    let entries = self.answer(&state);
                    write(&mut state, entries);
                }
                Decision::RunTools(calls) => {
                    if let [ToolCall { id, read_only: false, .. }] = calls.as_slice() {
                        write(&mut state, vec![Entry::Started { call_id: id.clone() }]);
                    }
                    write(&mut state, calls.iter().flat_map(|call| self.result(call)).collect());
                }
            }
        }
    }

    fn answer(&self, state: &State) -> Vec<Entry> {
        let said = Turn::Says { text: "Final Answer: Cause: x".to_owned(), thinking: String::new(), tools: vec![] };
        let turn = usize::try_from(state.iteration()).ok().and_then(|at| self.turns.get(at)).cloned().unwrap_or(said);
        match turn {
            Turn::Fails { timeout } => failed(self.strategy, "max_retries", "broke", timeout),
            Turn::Says { text, thinking, tools } => {
                let call = |tool: &str| ToolCall {
                    id: "same".to_owned(),
                    tool: tool.to_owned(),
                    arguments: "{}".to_owned(),
                    read_only: true,
                };
                let calls = tools.into_iter().map(call).collect();
                absorb(state, Answer { text, thinking, calls, ..Answer::default() })
            }
        }
    }

    fn result(&self, call: &ToolCall) -> Vec<Entry> {
        match (call.tool.ends_with("silent"), call.read_only) {
            (false, _) => vec![answered(self.strategy, call, "so it is".to_owned(), false)],
            (true, false) => lost(self.strategy, call),
            (true, true) => vec![
                unanswered(self.strategy, call, "no answer within 3 s"),
                Entry::Failed {
                    error: "silent".to_owned(),
                    timeout: true,
                    source: FailureSource::Tool,
                    code: String::new(),
                },
            ],
        }
    }
}

/// A journal in which it does not matter whether a call that may have changed something was lost.
fn told(journal: &[Entry]) -> Vec<Entry> {
    let side_effect = |tool: &str| TOOLS.contains(&(tool, false));
    let kept = journal.iter().filter(|entry| !matches!(entry, Entry::Lost { .. }));
    kept.cloned()
        .map(|mut entry| {
            if let Entry::ToolResult { tool, content, is_error, .. }
            | Entry::Observation { tool, content, is_error, .. } = &mut entry
                && side_effect(tool)
            {
                (*content, *is_error) = (String::new(), true);
            }
            entry
        })
        .collect()
}

/// What the store does to an entry.
fn stored(entry: &Entry) -> Entry {
    serde_json::from_value(serde_json::to_value(entry).unwrap()).unwrap()
}

fn turn() -> impl proptest::strategy::Strategy<Value = Turn> {
    let text = prop_oneof![
        Just(""),
        Just("Thought: look\nAction: k8s.get\nAction Input: {\"a\": 1.0}"),
        Just("Thought: look\nAction: k8s.silent\nAction Input: a: b\n- left out"),
        Just("Thought: do\nAction: k8s.restart\nAction Input:"),
        Just("Action: k8s.patch_silent\nAction Input: {}"),
        Just("Action: no.such\nAction Input: {}"),
        Just("Thought: and now"),
        Just("I do not know."),
        Just("Thought: enough\nFinal Answer: Cause: y"),
    ];
    let tools = prop::collection::vec(
        prop_oneof![
            Just("k8s.get"),
            Just("k8s.silent"),
            Just("k8s.restart"),
            Just("k8s.patch_silent"),
            Just("no.such")
        ],
        0..4,
    );
    let says = (text, prop_oneof![Just(""), Just("hm")], tools).prop_map(|(text, thinking, tools)| Turn::Says {
        text: text.to_owned(),
        thinking: thinking.to_owned(),
        tools,
    });
    prop_oneof![5 => says, 1 => any::<bool>().prop_map(|timeout| Turn::Fails { timeout })]
}

prop_compose! {
    fn world()(
        strategy in prop::sample::select(Strategy::ALL.to_vec()),
        max_iterations in 1_u32..5,
        turns in prop::collection::vec(turn(), 0..6),
        stop in prop::option::of((2_usize..12, prop::sample::select(vec![StopReason::Cancelled, StopReason::Deadline, StopReason::Budget]))),
    ) -> World {
        World { strategy, limits: Limits { max_iterations, ..Limits::default() }, turns, stop }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn cut_at_any_checkpoint_every_strategy_goes_on_to_the_same_journal(world in world()) {
        let whole = world.run(Vec::new());
        let journal: Vec<Entry> = whole.concat();
        prop_assert!(matches!(journal.last(), Some(Entry::Ended { .. })), "{:?}", journal);
        for written in 0..whole.len() {
            let before: Vec<Entry> = whole.iter().take(written).flatten().map(stored).collect();
            let after = world.run(before.clone());
            let resumed: Vec<Entry> = before.into_iter().chain(after.concat()).collect();
            prop_assert_eq!(told(&resumed), told(&journal), "after {} checkpoints", written);
        }
    }
}
