//! An investigation without a world: model and tools are functions of the journal.

use std::sync::Arc;

use super::execution::absorb::{absorb, failed};
use super::execution::conversation::Message;
use super::execution::decide::{Decision, Purpose, decide};
use super::execution::entry::{Answer, Entry, StopReason, ToolCall, ToolResult, Usage};
use super::execution::event_refs::{RecordedEntry, event_of_each_entry};
use super::execution::results::{CallError, ToolOutput, answered, lost, unanswered};
use super::execution::state::State;
use super::execution::window::{EXCEEDED, ToolBinding};
use super::plan::{AgentPlan, Limits, ProviderPlan, ResultForm, Strategy, ToolSpec};
use super::timeline::EventDraft;
use super::timeline::projection::{Measured, narrate};

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
    pub(super) room: Room,
}

/// How much fits, and how much the tools say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Tokens of the window as the plan tells them; 0 when nobody knows.
    pub(super) told: u64,
    /// Bytes of messages that the model really takes.
    pub(super) takes_bytes: usize,
    /// Bytes of each result.
    pub(super) result_bytes: usize,
}

impl Room {
    pub(super) const ENOUGH: Self = Self { told: 0, takes_bytes: usize::MAX, result_bytes: 8 };

    pub(super) fn is_little(self) -> bool {
        self.told > 0 || self.takes_bytes < usize::MAX
    }
}

/// What one checkpoint writes, and what for it asked the model.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) entries: Vec<Entry>,
    pub(super) events: Vec<EventDraft>,
    pub(super) asked: Option<Purpose>,
    /// For each entry the number of its event, as a store draws them.
    pub(super) numbers: Vec<Option<u32>>,
    /// What the model was shown.
    pub(super) shown: Vec<Message>,
}

impl Written {
    /// As the store keeps it.
    pub(super) fn recorded(&self) -> impl Iterator<Item = RecordedEntry> {
        RecordedEntry::all(self.entries.clone(), self.numbers.clone())
    }
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
        result_form: ResultForm::Indented,
        citable: None,
    }
}

impl World {
    pub(super) fn new(strategy: Strategy, max_iterations: u32, turns: Vec<Turn>) -> Self {
        let limits = Limits { max_iterations, ..Limits::default() };
        Self { strategy, limits, turns, context: Some("found before".to_owned()), stop: None, room: Room::ENOUGH }
    }

    fn plan(&self) -> Arc<AgentPlan> {
        let mut plan = agent_plan(self.strategy, TOOLS.map(|(name, read_only)| tool(name, read_only)).to_vec());
        plan.providers.iter_mut().for_each(|provider| provider.context_window = self.room.told);
        Arc::new(AgentPlan { limits: self.limits, ..plan })
    }

    /// The state that a journal leads to.
    pub(super) fn replay(&self, journal: impl IntoIterator<Item = impl Into<RecordedEntry>>) -> State {
        State::replay(self.plan(), self.context.clone(), journal)
    }

    /// Goes on from a journal to its end.
    pub(super) fn run(&self, journal: Vec<Entry>) -> Vec<Written> {
        self.go_on(journal, 0)
    }

    /// The same behind so many events.
    pub(super) fn go_on(&self, journal: Vec<impl Into<RecordedEntry>>, events: usize) -> Vec<Written> {
        let mut state = self.replay(journal);
        let mut checkpoints: Vec<Written> = Vec::new();
        let mut last_event = u32::try_from(events).unwrap();
        let mut write = |state: &mut State, entries: Vec<Entry>, asked: Option<Purpose>| {
            let shown = asked.map(|_| state.messages()).unwrap_or_default();
            let events = narrate(state, &entries, &Measured::default());
            let numbers =
                event_of_each_entry(&entries, &events).into_iter().map(|told| Some(told? + last_event)).collect();
            last_event += u32::try_from(events.len()).unwrap();
            let written = Written { entries, events, asked, numbers, shown };
            written.recorded().for_each(|recorded| state.apply(recorded));
            checkpoints.push(written);
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
                    assert!(call.tools == ToolBinding::Unbound || self.strategy == Strategy::NativeThinking);
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
        if state.messages().iter().map(|message| message.content.len()).sum::<usize>() > self.room.takes_bytes {
            return failed(state, EXCEEDED, CallError { message: "the prompt is too long", timeout: false });
        }
        let turn = usize::try_from(state.iteration()).ok().and_then(|at| self.turns.get(at)).cloned();
        match turn.unwrap_or_else(|| Turn::says("Final Answer: Cause: x", "", &[])) {
            Turn::Fails { code, timeout } => failed(state, code, CallError { message: "broke", timeout }),
            Turn::Says(answer) => absorb(state, *answer),
        }
    }

    fn said(&self) -> String {
        "so it is".chars().cycle().take(self.room.result_bytes).collect()
    }

    fn result(&self, call: &ToolCall) -> Vec<Entry> {
        match (call.tool.ends_with("silent"), call.read_only) {
            (false, _) => vec![answered(self.strategy, call, ToolOutput { content: self.said(), is_error: false })],
            (true, false) => lost(self.strategy, call),
            (true, true) => {
                unanswered(self.strategy, call, CallError { message: "no answer within 3 s", timeout: true })
            }
        }
    }
}

/// A journal in which it does not matter whether a call that may have changed something was lost.
pub(super) fn told(journal: &[Entry]) -> Vec<Entry> {
    let side_effect = |tool: &str| TOOLS.contains(&(tool, false));
    let kept = journal.iter().filter(|entry| !matches!(entry, Entry::Lost { .. }));
    kept.cloned()
        .map(|mut entry| {
            if let Entry::ToolResult(ToolResult { tool, content, is_error, .. })
            | Entry::Observation(ToolResult { tool, content, is_error, .. }) = &mut entry
                && side_effect(tool)
            {
                (*content, *is_error) = (String::new(), true);
            }
            entry
        })
        .collect()
}
