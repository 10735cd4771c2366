//! Fakes of the LLM service and of the MCP servers.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::ports::*;
use tarsy_core::execution::entry::{Answer, Role, ToolCall, Usage};
use tarsy_core::plan::ToolSpec;
use tarsy_core::sub_agents;
use tarsy_core::testing::{changing_tool, read_only_tool};
use tarsy_core::timeline::DeltaKind;

/// The next action of the scripted model after `n` answers, including failed ones.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// Text, and calls as `(id, tool)`. `dispatch:x` is a call of the agent x.
    Says(&'static str, Vec<(&'static str, &'static str)>),
    Fails,
    /// Text, to an agent that has tools; any other gets an error.
    SaysWithTools(&'static str),
    /// With a permanent error.
    Misconfigured,
    TimesOut,
    NeverAnswers,
    Panics,
    /// Until the call of this number the provider asks to wait for so many seconds.
    Limited(u32, u64),
    /// The service is unavailable.
    Unavailable,
    /// The service breaks off after it was asked.
    Breaks,
    /// Text, to the request to conclude; any other is never answered.
    OnlyConcludes(&'static str),
    /// A piece of the text in each of so many seconds, then the whole.
    Streams(u64, &'static str),
    /// After so many seconds, text and calls.
    Slowly(u64, &'static str, Vec<(&'static str, &'static str)>),
    /// The same, but an analysis at once to the request to conclude.
    LooksSlowly(u64, &'static str, Vec<(&'static str, &'static str)>),
}

/// The tokens of every answer.
const USAGE: Usage = Usage {
    input_tokens: 10,
    cached_tokens: 0,
    output_tokens: 2,
    thinking_tokens: 0,
};

fn call(id: &str, tool: &str) -> ToolCall {
    let agent = tool.strip_prefix("dispatch:");
    ToolCall {
        id: id.to_owned(),
        tool: agent.map_or(tool, |_| sub_agents::TOOL).to_owned(),
        arguments: match agent {
            Some(agent) => json!({"agent": agent, "task": "Look at it."}).to_string(),
            None => "{}".to_owned(),
        },
        read_only: false,
    }
}

#[derive(Debug)]
pub(crate) struct FakeModel {
    pub(crate) turns: Vec<Turn>,
    /// Of the agents whose model has this name, instead.
    pub others: Mutex<BTreeMap<String, Vec<Turn>>>,
    pub calls: Mutex<u32>,
    pub requests: Mutex<Vec<ModelRequest>>,
    /// The answer of the health check; `None` for no answer.
    pub serving: Mutex<Option<bool>>,
}

impl FakeModel {
    pub(super) fn new(turns: Vec<Turn>) -> Self {
        Self {
            turns,
            others: Mutex::default(),
            calls: Mutex::default(),
            requests: Mutex::default(),
            serving: Mutex::new(Some(true)),
        }
    }
}

/// Whether the message follows from a turn: an answer, or the report of a failure.
fn is_of_a_turn(message: &Message) -> bool {
    match message.role {
        Role::Assistant => true,
        Role::User => message.content.contains("Error from previous attempt"),
        Role::System | Role::Tool => false,
    }
}

impl Model for FakeModel {
    async fn generate(
        &self,
        request: ModelRequest,
        deltas: impl Fn(DeltaKind, &str) + Send + Sync,
    ) -> Result<Answer, ModelError> {
        *self.calls.lock() += 1;
        self.requests.lock().push(request.clone());
        let messages = request.messages.iter();
        let before = messages.filter(|message| is_of_a_turn(message)).count();
        let failed = |timeout| {
            let code = "max_retries".to_owned();
            let message = "provider broke".to_owned();
            Err(ModelError::Failed {
                code,
                message,
                timeout,
                provider: ProviderFailure::default(),
            })
        };
        let turns = self
            .others
            .lock()
            .get(&request.provider.model)
            .cloned()
            .unwrap_or_else(|| self.turns.clone());
        let mut turn = turns
            .get(before)
            .cloned()
            .unwrap_or(Turn::Says("Cause: the end", vec![]));
        let last = request.messages.last().map(|last| last.content.as_str());
        let concludes = last == Some("Conclude now.");
        if let Turn::LooksSlowly(secs, text, calls) = turn {
            turn = if concludes {
                Turn::Says("Cause: y", vec![])
            } else {
                Turn::Slowly(secs, text, calls)
            };
        }
        if let Turn::Slowly(secs, text, calls) = turn {
            tokio::time::sleep(Duration::from_secs(secs)).await; // paused time
            turn = Turn::Says(text, calls);
        }
        if let Turn::Streams(secs, text) = turn {
            for _ in 0..secs {
                tokio::time::sleep(Duration::from_secs(1)).await; // paused time
                deltas(DeltaKind::Text, text);
            }
            turn = Turn::Says(text, vec![]);
        }
        if let Turn::OnlyConcludes(text) = turn
            && concludes
        {
            turn = Turn::Says(text, vec![]);
        }
        match turn {
            Turn::Unavailable => Err(ModelError::Unavailable("no connection".to_owned())),
            Turn::Breaks => Err(ModelError::Broke("connection reset".to_owned())),
            Turn::Fails => failed(false),
            Turn::SaysWithTools(_) if request.tools.is_empty() => failed(false),
            Turn::SaysWithTools(text) => Ok(Answer {
                text: text.to_owned(),
                ..Answer::default()
            }),
            Turn::Misconfigured => {
                let code = "invalid_backend".to_owned();
                let message = "no such backend".to_owned();
                Err(ModelError::Failed {
                    code,
                    message,
                    timeout: false,
                    provider: ProviderFailure::default(),
                })
            }
            Turn::Limited(answers, secs) if *self.calls.lock() < answers => {
                let code = "rate_limited".to_owned();
                let message = "too many requests".to_owned();
                let status = "429 RESOURCE_EXHAUSTED".to_owned();
                let retry_after = Some(Duration::from_secs(secs));
                let provider = ProviderFailure {
                    status,
                    retryable: true,
                    retry_after,
                };
                Err(ModelError::Failed {
                    code,
                    message,
                    timeout: false,
                    provider,
                })
            }
            Turn::Limited(..) => Ok(Answer {
                text: "Cause: the end".to_owned(),
                ..Answer::default()
            }),
            Turn::TimesOut => failed(true),
            Turn::NeverAnswers | Turn::OnlyConcludes(_) | Turn::Streams(..) => {
                std::future::pending().await
            }
            Turn::Panics => panic!("an unexpected answer"),
            Turn::Says(text, calls)
            | Turn::Slowly(_, text, calls)
            | Turn::LooksSlowly(_, text, calls) => {
                deltas(DeltaKind::Text, text);
                let mut called = Vec::new();
                if !request.tools.is_empty() {
                    called.extend(calls.into_iter().map(|(id, tool)| call(id, tool)));
                }
                Ok(Answer {
                    text: text.to_owned(),
                    calls: called,
                    usage: USAGE,
                    ..Answer::default()
                })
            }
        }
    }

    async fn serving(&self) -> bool {
        let answer = *self.serving.lock();
        match answer {
            Some(serving) => serving,
            None => std::future::pending().await,
        }
    }
}

/// Counts calls by id. A tool named `x.lost` loses its answer, `x.refused` reports an error.
#[derive(Debug)]
pub(crate) struct FakeTools {
    pub calls: Mutex<BTreeMap<String, u32>>,
    /// Every call takes so long; one that may change something is not sent after it, as if no server was there.
    pub(crate) call_duration: Mutex<Duration>,
    /// Stands at the end of every answer.
    pub rest: Mutex<String>,
    /// The leases of the runs that have ended, in order, and the states of their sessions.
    pub(crate) ended_runs: Mutex<Vec<(Lease, SessionAfterRun)>>,
    /// The faults of arguments, by call.
    pub(crate) unfit: Mutex<BTreeMap<String, String>>,
    /// The reading of every call's arguments; `None`: as they are written.
    pub(crate) fitted: Mutex<Option<String>>,
    /// The arguments of changing calls, in order.
    pub(crate) sent: Mutex<Vec<String>>,
    /// Of every tool.
    pub(crate) matches: Mutex<ToolMatch>,
}

impl Default for FakeTools {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            call_duration: Mutex::default(),
            rest: Mutex::default(),
            ended_runs: Mutex::default(),
            unfit: Mutex::default(),
            fitted: Mutex::default(),
            sent: Mutex::default(),
            matches: Mutex::new(ToolMatch::Same),
        }
    }
}

impl Tools for FakeTools {
    async fn list(&self, _servers: &[String]) -> Listing {
        Listing {
            tools: tools(),
            unavailable: vec![],
        }
    }

    async fn call(&self, request: ToolRequest<'_>) -> ToolReply {
        let call = request.call;
        *self.calls.lock().entry(call.id.clone()).or_default() += 1;
        if !call.read_only {
            self.sent.lock().push(call.arguments.clone());
        }
        let call_duration = *self.call_duration.lock();
        tokio::time::sleep(call_duration).await; // paused time
        if call.tool == "k8s.restart" && !call_duration.is_zero() {
            return ToolReply::NotSent {
                error: "no connection".to_owned(),
            };
        }
        if call.tool.ends_with("lost") {
            return ToolReply::NoAnswer {
                error: "connection reset".to_owned(),
                timeout: false,
            };
        }
        let content = format!("{} says hello{}", call.tool, *self.rest.lock());
        ToolReply::Answered {
            content,
            is_error: call.tool.ends_with("refused"),
        }
    }

    async fn fit(&self, call: &ToolCall, _spec: &ToolSpec) -> Fit {
        match self.unfit.lock().get(&call.id) {
            Some(faults) => Fit::Unfit(faults.clone()),
            None => {
                let fitted = self.fitted.lock().clone();
                Fit::Arguments(fitted.unwrap_or_else(|| call.arguments.clone()))
            }
        }
    }

    async fn compare(&self, _spec: &ToolSpec) -> ToolMatch {
        self.matches.lock().clone()
    }

    fn run_ended(&self, lease: Lease, session: SessionAfterRun) {
        self.ended_runs.lock().push((lease, session));
    }
}

pub(super) fn tools() -> Vec<ToolSpec> {
    let read_only = ["k8s.get", "k8s.lost", "k8s.refused"].map(read_only_tool);
    read_only
        .into_iter()
        .chain(["k8s.restart", "k8s.patch.lost"].map(changing_tool))
        .collect()
}
