//! An investigation without a world: model and tools are functions of the journal.

use std::sync::Arc;

use super::absorb::{absorb, failed};
use super::decide::{Decision, Purpose, decide};
use super::entry::{Answer, Entry, StopReason, ToolCall, Usage};
use super::narrate::{Measured, narrate};
use super::plan::{AgentPlan, Limits, ProviderPlan, Strategy, ToolSpec};
use super::results::{answered, lost, unanswered};
use super::state::State;
use super::timeline::EventDraft;

/// What the model does in one iteration.
#[derive(Clone, Debug)]
pub(super) enum Turn {
    Says(Box<Answer>),
    Fails { code: &'static str, timeout: bool },
}

impl Turn {
    /// Text, reasoning and calls; the calls all have the same id and no arguments.
    pub(super) fn says(text: &str, thinking: &str, tools: &[&str]) -> Self {
        let call = |tool: &&str| ToolCall {
            id: "same".to_owned(),
            tool: (*tool).to_owned(),
            arguments: "{}".to_owned(),
            read_only: true,
        };
        let usage = Usage { input_tokens: 7, cached_tokens: 2, output_tokens: 2, thinking_tokens: 1 };
        let calls = tools.iter().map(call).collect();
        let answer = Answer { text: text.to_owned(), thinking: thinking.to_owned(), calls, usage, ..Answer::default() };
        Self::Says(Box::new(answer))
    }

    pub(super) fn fails() -> Self {
        Self::Fails { code: "max_retries", timeout: false }
    }

    pub(super) fn times_out() -> Self {
        Self::Fails { code: "deadline_exceeded", timeout: true }
    }
}

/// Everything outside of the core, as a function of the journal.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) strategy: Strategy,
    pub(super) limits: Limits,
    /// By iteration; behind their end the model gives a final answer.
    pub(super) turns: Vec<Turn>,
    /// What the stage before has found.
    pub(super) context: Option<String>,
    /// After so many entries something wants the execution to stop.
    pub(super) stop: Option<(usize, StopReason)>,
}

/// What one checkpoint writes, and what for it asked the model.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) entries: Vec<Entry>,
    pub(super) events: Vec<EventDraft>,
    pub(super) asked: Option<Purpose>,
}

/// With whether they are read-only. One that is `silent` never answers.
pub(super) const TOOLS: [(&str, bool); 4] =
    [("k8s.get", true), ("k8s.silent", true), ("k8s.restart", false), ("k8s.patch_silent", false)];

/// A tool that says nothing of itself.
pub(super) fn tool(name: &str, read_only: bool) -> ToolSpec {
    let parameters_schema = "{}".to_owned();
    ToolSpec { name: name.to_owned(), description: String::new(), parameters_schema, read_only }
}

/// An agent with one provider and every limit's default.
pub(super) fn agent_plan(strategy: Strategy, tools: Vec<ToolSpec>) -> AgentPlan {
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
    AgentPlan {
        name: "sre".to_owned(),
        strategy,
        limits: Limits::default(),
        providers: vec![provider],
        tools,
        system_prompt: "system".to_owned(),
        user_prompt: "user".to_owned(),
        conclusion_prompt: "conclude".to_owned(),
    }
}

impl World {
    pub(super) fn new(strategy: Strategy, max_iterations: u32, turns: Vec<Turn>) -> Self {
        let limits = Limits { max_iterations, ..Limits::default() };
        Self { strategy, limits, turns, context: Some("found before".to_owned()), stop: None }
    }

    fn plan(&self) -> Arc<AgentPlan> {
        let plan = agent_plan(self.strategy, TOOLS.map(|(name, read_only)| tool(name, read_only)).to_vec());
        Arc::new(AgentPlan { limits: self.limits, ..plan })
    }

    /// The state that a journal leads to.
    pub(super) fn replay(&self, journal: Vec<Entry>) -> State {
        State::replay(self.plan(), self.context.clone(), journal)
    }

    /// Goes on from a journal to its end.
    pub(super) fn run(&self, journal: Vec<Entry>) -> Vec<Written> {
        let mut state = self.replay(journal);
        let mut checkpoints = Vec::new();
        let mut write = |state: &mut State, entries: Vec<Entry>, asked| {
            let events = narrate(state, &entries, &Measured::default());
            for entry in &entries {
                state.apply(entry.clone());
            }
            checkpoints.push(Written { entries, events, asked });
        };
        loop {
            if let Some((after, reason)) = self.stop
                && state.stopped().is_none()
                && state.ended().is_none()
                // A stop that comes while a call is out is seen after its result, or not at all.
                && state.open_calls().iter().all(|open| !open.started)
                && told(state.entries()).len() >= after
            {
                write(&mut state, vec![Entry::Stopped { reason }], None);
            }
            match decide(&state) {
                Decision::Done(_) => return checkpoints,
                Decision::Append(entries) => write(&mut state, entries, None),
                Decision::CallModel(call) => {
                    assert!(call.with_tools <= (self.strategy == Strategy::NativeThinking));
                    let entries = self.answer(&state);
                    write(&mut state, entries, Some(call.purpose));
                }
                Decision::RunTools(calls) => {
                    if let [ToolCall { id, read_only: false, .. }] = calls.as_slice() {
                        write(&mut state, vec![Entry::Started { call_id: id.clone() }], None);
                    }
                    write(&mut state, calls.iter().flat_map(|call| self.result(call)).collect(), None);
                }
            }
        }
    }

    fn answer(&self, state: &State) -> Vec<Entry> {
        let turn = usize::try_from(state.iteration()).ok().and_then(|at| self.turns.get(at)).cloned();
        match turn.unwrap_or_else(|| Turn::says("Final Answer: Cause: x", "", &[])) {
            Turn::Fails { code, timeout } => failed(state, code, "broke", timeout),
            Turn::Says(answer) => absorb(state, *answer),
        }
    }

    fn result(&self, call: &ToolCall) -> Vec<Entry> {
        match (call.tool.ends_with("silent"), call.read_only) {
            (false, _) => vec![answered(self.strategy, call, "so it is".to_owned(), false)],
            (true, false) => lost(self.strategy, call),
            (true, true) => unanswered(self.strategy, call, "no answer within 3 s", true),
        }
    }
}

/// A journal in which it does not matter whether a call that may have changed something was lost.
pub(super) fn told(journal: &[Entry]) -> Vec<Entry> {
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
