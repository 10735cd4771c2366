//! Builders for tests, and an investigation without ports: model and tools are functions of the journal.

mod thread;

use std::sync::Arc;

pub use self::thread::thread;
use super::alert::refs::Refs;
use super::alert::{Alert, AlertStatus, Severity};
use super::approvals::Channel;
use super::clock::ClockPlan;
use super::execution::absorb::{absorb, failed};
use super::execution::conversation::Message;
use super::execution::decide::{Decision, Purpose, decide};
use super::execution::entry::{Answer, Entry, StopReason, Summary, ToolCall, ToolResult, Usage};
use super::execution::event_refs::{RecordedEntry, event_of_each_entry};
use super::execution::fallback::or_switched;
use super::execution::request::rebuilt::StoredCall;
use super::execution::request::{self, RequestBody};
use super::execution::results::{CallError, ToolOutput, answered, lost, unanswered};
use super::execution::state::State;
use super::execution::summaries::{LongResult, NotAsked, made, missing, not_asked};
use super::execution::window::ToolBinding;
use super::plan::{
    AgentPlan, AnswerCheck, ApprovalRule, Limits, OnTimeout, ProviderPlan, ResultForm, Strategy,
    SummaryPlan, ToolNames, ToolSpec, WhenResolved,
};
use super::projection::{Measured, project};
use super::timeline::EventDraft;
use super::vocabulary::ErrorCode;
use chrono::{DateTime, TimeDelta, Utc};

/// The model's part of one iteration.
#[derive(Clone, Debug)]
pub(super) enum Turn {
    Says(Box<Answer>),
    Fails { code: &'static str, timeout: bool },
}

impl Turn {
    /// Text, reasoning and calls; all calls have the same id and no arguments.
    pub(super) fn says(text: &str, thinking: &str, tools: &[&str]) -> Self {
        let usage = Usage {
            input_tokens: 7,
            cached_tokens: 2,
            output_tokens: 2,
            thinking_tokens: 1,
        };
        let calls = tools
            .iter()
            .map(|tool: &&str| ToolCall {
                id: "same".to_owned(),
                tool: (*tool).to_owned(),
                arguments: "{}".to_owned(),
                read_only: true,
            })
            .collect();
        let answer = Answer {
            text: text.to_owned(),
            thinking: thinking.to_owned(),
            calls,
            usage,
            ..Answer::default()
        };
        Self::Says(Box::new(answer))
    }

    pub(super) fn fails() -> Self {
        Self::Fails {
            code: "max_retries",
            timeout: false,
        }
    }

    pub(super) fn times_out() -> Self {
        Self::Fails {
            code: "deadline_exceeded",
            timeout: true,
        }
    }
}

/// The ports of an execution, as functions of the journal.
#[derive(Clone, Debug)]
pub(super) struct Simulation {
    pub(super) strategy: Strategy,
    pub(super) limits: Limits,
    /// The turns of the model, one per iteration; after the last one the model gives a final answer.
    pub(super) turns: Vec<Turn>,
    /// The number of fallback providers.
    pub(super) fallbacks: u32,
    /// The findings of the stage before.
    pub(super) context: Option<String>,
    /// The number of entries after which the execution is stopped, and the reason.
    pub(super) stop: Option<(usize, StopReason)>,
    pub(super) room: Room,
    /// Every result of more than two tokens is summarised.
    pub(super) summarises: bool,
    pub(super) answer_check: AnswerCheck,
    /// Some model calls come long after the message before them.
    pub(super) has_pauses: bool,
    /// A conclusion declares the tools.
    pub(super) keeps_tools: bool,
}

/// The size of the context window and of the results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Tokens of the window in the plan; 0 when they are unknown.
    pub(super) context_window: u64,
    /// Bytes of messages that the model accepts in fact.
    pub(super) takes_bytes: usize,
    pub(super) result_bytes: usize,
}

impl Room {
    pub(super) const ENOUGH: Self = Self {
        context_window: 0,
        takes_bytes: usize::MAX,
        result_bytes: 8,
    };

    pub(super) fn is_little(self) -> bool {
        self.context_window > 0 || self.takes_bytes < usize::MAX
    }
}

/// A checkpoint with the purpose of its model call.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) entries: Vec<Entry>,
    pub(super) events: Vec<EventDraft>,
    pub(super) asked: Option<Purpose>,
    /// The number of each entry's event, as a store assigns it.
    pub(super) numbers: Vec<Option<u32>>,
    pub(super) at: DateTime<Utc>,
    /// The model calls that are committed with it, with their requests.
    pub(super) sent: Vec<Sent>,
}

/// A model call as the store names it, and its request.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) call: StoredCall,
    pub(super) body: RequestBody,
}

impl Written {
    /// The entries as the store returns them.
    pub(super) fn recorded(&self) -> impl Iterator<Item = RecordedEntry> {
        RecordedEntry::all(self.entries.clone(), self.numbers.clone(), Some(self.at))
    }

    /// The messages of the model call.
    pub(super) fn shown(&self) -> &[Message] {
        self.sent
            .first()
            .map(|sent| sent.body.messages.as_slice())
            .unwrap_or_default()
    }
}

/// The tools of every agent here. A tool whose name has `silent` never answers.
fn tools() -> Vec<ToolSpec> {
    let read_only = ["k8s.get", "k8s.silent"].map(read_only_tool);
    read_only
        .into_iter()
        .chain(["k8s.restart", "k8s.patch_silent"].map(changing_tool))
        .collect()
}

/// A tool that changes nothing, without description and arguments.
pub fn read_only_tool(name: &str) -> ToolSpec {
    let parameters_schema = "{}".to_owned();
    ToolSpec {
        name: name.to_owned(),
        original_name: None,
        description: String::new(),
        parameters_schema,
        read_only: true,
        approval: None,
    }
}

/// A tool that may change something.
pub fn changing_tool(name: &str) -> ToolSpec {
    ToolSpec {
        read_only: false,
        ..read_only_tool(name)
    }
}

/// A tool whose calls wait for one person, for at most four hours.
pub fn approved_tool(name: &str) -> ToolSpec {
    let rule = ApprovalRule {
        policy: "default".to_owned(),
        quorum: 1,
        timeout_ms: 4 * 3_600_000,
        valid_for_ms: 15 * 60_000,
        on_timeout: OnTimeout::Deny,
        on_resolved: WhenResolved::Withdraw,
        channels: vec![Channel::Web, Channel::Slack, Channel::Cli],
        other_person: false,
    };
    ToolSpec {
        approval: Some(rule),
        ..changing_tool(name)
    }
}

/// A firing alert of this type.
pub fn alert(alert_type: &str) -> Alert {
    Alert {
        source: "text".to_owned(),
        alert_type: alert_type.to_owned(),
        title: "t".to_owned(),
        severity: Severity::Normal,
        severity_word: None,
        status: AlertStatus::Firing,
        ignored_because: None,
        at: None,
        fingerprint: "f".to_owned(),
        members: Vec::new(),
        reports: Vec::new(),
        runbook_url: None,
        refs: Refs::default(),
        text: "5xx".to_owned(),
    }
}

/// An agent with one provider and every limit's default.
pub fn agent_plan(strategy: Strategy, tools: Vec<ToolSpec>) -> AgentPlan {
    let provider = ProviderPlan {
        name: "p".to_owned(),
        provider: "scripted".to_owned(),
        backend: "scripted".to_owned(),
        model: "m".to_owned(),
        api_key_env: String::new(),
        base_url: String::new(),
        transcript: String::new(),
        context_window: 0,
        ..ProviderPlan::default()
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
        ..AgentPlan::default()
    }
}

impl Simulation {
    pub(super) fn new(strategy: Strategy, max_iterations: u32, turns: Vec<Turn>) -> Self {
        let limits = Limits {
            max_iterations,
            ..Limits::default()
        };
        Self {
            strategy,
            limits,
            turns,
            fallbacks: 0,
            context: Some("found before".to_owned()),
            stop: None,
            room: Room::ENOUGH,
            summarises: false,
            answer_check: AnswerCheck::Off,
            has_pauses: false,
            keeps_tools: false,
        }
    }

    /// The frozen plan.
    pub(super) fn plan(&self) -> Arc<AgentPlan> {
        let mut plan = agent_plan(self.strategy, tools());
        plan.providers
            .iter_mut()
            .for_each(|provider| provider.keeps_tools = self.keeps_tools);
        let main = plan.providers.clone();
        plan.providers
            .extend((1..=self.fallbacks).map(|number| ProviderPlan {
                name: format!("p{number}"),
                ..main.first().cloned().unwrap_or_default()
            }));
        plan.providers
            .iter_mut()
            .for_each(|provider| provider.context_window = self.room.context_window);
        let provider = main.into_iter().next().unwrap_or_default();
        let over_tokens = [("k8s".to_owned(), 2)].into();
        let summaries = self.summarises.then_some(SummaryPlan {
            provider,
            over_tokens,
        });
        let clock = Some(ClockPlan::of_alert(&alert("x"), time_after(&[])));
        Arc::new(AgentPlan {
            limits: self.limits,
            summaries,
            answer_check: self.answer_check,
            checks_figures: self.answer_check == AnswerCheck::Once,
            clock,
            tool_names: ToolNames::AsCalled,
            several_actions: true,
            ..plan
        })
    }

    /// Replays a journal.
    pub(super) fn replay(
        &self,
        journal: impl IntoIterator<Item = impl Into<RecordedEntry>>,
    ) -> State {
        State::replay(self.plan(), self.context.clone(), journal)
    }

    /// Runs from a journal to the end of the execution.
    pub(super) fn run(&self, journal: Vec<Entry>) -> Vec<Written> {
        self.go_on(journal, 0)
    }

    /// The same, after so many events.
    pub(super) fn go_on(
        &self,
        journal: Vec<impl Into<RecordedEntry>>,
        events: usize,
    ) -> Vec<Written> {
        let mut state = self.replay(journal);
        let mut checkpoints: Vec<Written> = Vec::new();
        let mut last_event = u32::try_from(events).unwrap();
        let mut write = |state: &mut State, entries: Vec<Entry>, sent: Vec<Sent>| {
            let asked = sent
                .iter()
                .map(|sent| sent.call.purpose)
                .find(|purpose| *purpose != Purpose::Summary);
            let events = project(state, &entries, &Measured::default());
            let numbers = event_of_each_entry(&entries, &events)
                .into_iter()
                .map(|event| Some(event? + last_event))
                .collect();
            last_event += u32::try_from(events.len()).unwrap();
            let at = time_after(state.entries());
            let written = Written {
                entries,
                events,
                asked,
                numbers,
                at,
                sent,
            };
            written
                .recorded()
                .for_each(|recorded| state.apply(recorded));
            checkpoints.push(written);
        };
        loop {
            if let Some((after, reason)) = self.stop
                && state.stopped().is_none()
                && state.ended().is_none()
                // A stop during a call takes effect after its result, or not at all.
                && state.open_calls().iter().all(|open| !open.started)
                && without_losses(state.entries()).len() >= after
            {
                write(&mut state, vec![Entry::Stopped { reason }], Vec::new());
            }
            let decision = decide(&state);
            if self.has_pauses
                && let Decision::CallModel(_) = decision
                && let Some(waited) = state.after_pause(time_after(state.entries()))
            {
                write(&mut state, vec![waited], Vec::new());
                continue;
            }
            match decision {
                // Its plans have no sub-agents to wait for.
                Decision::Done(_) | Decision::Await(_) | Decision::Wait(_) => return checkpoints,
                Decision::Append(entries) => write(&mut state, entries, Vec::new()),
                Decision::CallModel(call) => {
                    assert!(
                        call.tools != ToolBinding::Bound
                            || self.strategy == Strategy::NativeThinking
                    );
                    let entries = self.answer(&state);
                    let body = request::of_step(&state, call).unwrap();

                    let sent = sent(&state, call.purpose, vec![body]);
                    write(&mut state, entries, sent);
                }
                Decision::RunTools(calls) => {
                    if let [
                        ToolCall {
                            id,
                            read_only: false,
                            ..
                        },
                    ] = calls.as_slice()
                    {
                        write(
                            &mut state,
                            vec![Entry::Started {
                                call_id: id.clone(),
                            }],
                            Vec::new(),
                        );
                    }
                    write(
                        &mut state,
                        calls.iter().flat_map(|call| self.result(call)).collect(),
                        Vec::new(),
                    );
                }
                Decision::Summarise(long) => {
                    let (summaries, bodies) = self.summaries(&state, &long);
                    let sent = sent(&state, Purpose::Summary, bodies);
                    write(&mut state, summaries, sent);
                }
            }
        }
    }

    /// The summaries, with the requests for those that the model is asked for.
    fn summaries(&self, state: &State, long: &[LongResult]) -> (Vec<Entry>, Vec<RequestBody>) {
        let usage = Usage {
            input_tokens: 3,
            output_tokens: 1,
            ..Usage::default()
        };
        let summary = |long: &LongResult| match long.call_id.as_bytes().last() {
            Some(b'2') => missing(long, "max_retries: broke".to_owned()),
            Some(b'3') => not_asked(long, NotAsked::NoTime),
            _ => made(
                long,
                &Answer {
                    text: "in short".to_owned(),
                    usage,
                    ..Answer::default()
                },
            ),
        };
        let made: Vec<Summary> = long.iter().map(summary).collect();
        let asked = long
            .iter()
            .zip(&made)
            .filter(|(_, summary)| summary.was_asked_for());
        let bodies = asked
            .map(|(long, _)| request::of_summary(state, long, &self.said()).unwrap())
            .collect();
        (made.into_iter().map(Entry::Summarised).collect(), bodies)
    }

    fn answer(&self, state: &State) -> Vec<Entry> {
        or_switched(state, self.reply(state))
    }

    fn reply(&self, state: &State) -> Vec<Entry> {
        if state
            .messages()
            .iter()
            .map(|message| message.content.len())
            .sum::<usize>()
            > self.room.takes_bytes
        {
            return failed(
                state,
                ErrorCode::ContextWindowExceeded.as_str(),
                CallError {
                    message: "the prompt is too long",
                    timeout: false,
                },
            );
        }
        let turn = usize::try_from(state.iteration())
            .ok()
            .and_then(|at| self.turns.get(at))
            .cloned();
        match turn.unwrap_or_else(|| Turn::says("Final Answer: Cause: x", "", &[])) {
            Turn::Fails { code, timeout } => failed(
                state,
                code,
                CallError {
                    message: "broke",
                    timeout,
                },
            ),
            Turn::Says(answer) => absorb(state, *answer),
        }
    }

    /// The result of every call that is answered.
    pub(super) fn said(&self) -> String {
        "so it is"
            .chars()
            .cycle()
            .take(self.room.result_bytes)
            .collect()
    }

    fn result(&self, call: &ToolCall) -> Vec<Entry> {
        match (call.tool.ends_with("silent"), call.read_only) {
            (false, _) => vec![answered(
                self.strategy,
                call,
                ToolOutput {
                    content: self.said(),
                    is_error: false,
                    whole_bytes: 0,
                    facts: None,
                },
            )],
            (true, false) => lost(self.strategy, call),
            (true, true) => unanswered(
                self.strategy,
                call,
                CallError {
                    message: "no answer within 3 s",
                    timeout: true,
                },
            ),
        }
    }
}

/// Calls of one checkpoint.
fn sent(state: &State, purpose: Purpose, bodies: Vec<RequestBody>) -> Vec<Sent> {
    let entries_upto = u32::try_from(state.entries().len()).unwrap();
    let call = |call_no| StoredCall {
        purpose,
        entries_upto,
        call_no,
    };
    (1..)
        .zip(bodies)
        .map(|(number, body)| Sent {
            call: call(number),
            body,
        })
        .collect()
}

/// The time when the journal has these entries: some of them come after a long pause.
fn time_after(journal: &[Entry]) -> DateTime<Utc> {
    let count = i64::try_from(without_losses(journal).len()).unwrap();
    DateTime::UNIX_EPOCH + TimeDelta::seconds(1_795_750_351 + count * 90 + count / 7 * 700)
}

/// The journal without the difference between the result of a changing call and its loss.
pub(super) fn without_losses(journal: &[Entry]) -> Vec<Entry> {
    let changing: Vec<String> = tools()
        .into_iter()
        .filter(|tool| !tool.read_only)
        .map(|tool| tool.name)
        .collect();
    let kept = journal
        .iter()
        .filter(|entry| !matches!(entry, Entry::Lost { .. }));
    kept.cloned()
        .map(|mut entry| {
            if let Entry::ToolResult(ToolResult {
                tool,
                content,
                is_error,
                ..
            })
            | Entry::Observation(ToolResult {
                tool,
                content,
                is_error,
                ..
            }) = &mut entry
                && changing.contains(tool)
            {
                (*content, *is_error) = (String::new(), true);
            }
            entry
        })
        .collect()
}
