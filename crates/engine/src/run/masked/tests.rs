//! Tests of masked answers: what is stored, shown and sent to tools, also by the next worker.

use std::sync::Arc;

use uuid::Uuid;

use crate::ports::{
    Fit, Lease, Listing, SessionAfterRun, ToolMatch, ToolReply, ToolRequest, Tools,
};
use crate::run::masked::*;
use crate::run::session::LeasedSession;
use crate::run::tests::control;
use crate::testing::{
    Death, FakeCancelRequests, FakeDelivery, FakeFeed, FakeIntake, FakeJournal, FakePresence,
    FakeQueue, FakeSessions, Scene,
};
use crate::world::{Ports, World};
use tarsy_core::execution::entry::{Entry, ToolCall};
use tarsy_core::plan::{Strategy, ToolSpec};
use tarsy_core::timeline::EventType;

const SECRET: &str = "s3cret-0f-the-m0del";

/// Gives these answers in turn, each in pieces of three bytes, then an error.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<Vec<Answer>>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl Model for Scripted {
    async fn generate(
        &self,
        request: ModelRequest,
        deltas: impl Fn(DeltaKind, &str) + Send + Sync,
    ) -> Result<Answer, ModelError> {
        self.requests.lock().push(request);
        let mut answers = self.answers.lock();
        if answers.is_empty() {
            let message = format!("GET https://provider?key={SECRET} failed");
            let provider = ProviderFailure {
                status: format!("400 {SECRET}"),
                ..ProviderFailure::default()
            };
            return Err(ModelError::Failed {
                code: "invalid_request".to_owned(),
                message,
                timeout: false,
                provider,
            });
        }
        let answer = answers.remove(0);
        for (kind, text) in [
            (DeltaKind::Thinking, &answer.thinking),
            (DeltaKind::Text, &answer.text),
        ] {
            text.as_bytes()
                .chunks(3)
                .for_each(|piece| deltas(kind, std::str::from_utf8(piece).unwrap()));
        }
        Ok(answer)
    }

    async fn serving(&self) -> bool {
        true
    }
}

/// Notes the arguments that it is called with.
#[derive(Debug, Default)]
struct Noting(Mutex<Vec<String>>);

impl Tools for Noting {
    async fn list(&self, _servers: &[String]) -> Listing {
        Listing::default()
    }

    async fn call(&self, request: ToolRequest<'_>) -> ToolReply {
        let call = request.call;
        self.0.lock().push(call.arguments.clone());
        ToolReply::Answered {
            content: "done".to_owned(),
            is_error: false,
        }
    }

    async fn fit(&self, call: &ToolCall, _spec: &ToolSpec) -> Fit {
        Fit::Arguments(call.arguments.clone())
    }

    async fn compare(&self, _spec: &ToolSpec) -> ToolMatch {
        ToolMatch::Same
    }

    fn run_ended(&self, _lease: Lease, _session: SessionAfterRun) {}
}

#[derive(Debug)]
struct Stage;

impl World for Stage {
    type Model = Masked<Scripted>;
    type Tools = Noting;
    type Journal = FakeJournal;
    type Feed = FakeFeed;
    type Sessions = FakeSessions;
    type Intake = FakeIntake;
    type Delivery = FakeDelivery;
    type Queue = FakeQueue;
    type CancelRequests = FakeCancelRequests;
    type Presence = FakePresence;
}

struct Play {
    scene: Scene,
    ports: Arc<Ports<Stage>>,
}

impl Play {
    fn new(strategy: Strategy, answers: Vec<Answer>) -> Self {
        let scene = Scene::new(strategy, 9, vec![]);
        let model = Scripted {
            answers: Mutex::new(answers),
            ..Scripted::default()
        };
        let ports = Arc::new(Ports {
            model: Arc::new(Masked::new(model, Mask::new([SECRET.to_owned()]))),
            tools: Arc::new(Noting::default()),
            journal: Arc::clone(&scene.ports.journal),
            feed: Arc::clone(&scene.ports.feed),
            sessions: Arc::clone(&scene.ports.sessions),
            intake: Arc::clone(&scene.ports.intake),
            queue: Arc::default(),
            cancel_requests: Arc::default(),
            presence: Arc::default(),
        });
        Self { scene, ports }
    }

    async fn run(&self) {
        let lease = Lease {
            session_id: self.scene.session,
            epoch: self.scene.disk().epoch,
            token: Uuid::nil(),
        };
        LeasedSession {
            ports: self.ports.clone(),
            lease,
            control: control(),
            opened: None,
            max_open: 1_000,
        }
        .run()
        .await
        .unwrap();
    }

    fn sent(&self) -> Vec<String> {
        self.ports.tools.0.lock().clone()
    }

    /// Everything that is written, shown or sent to the model.
    fn seen(&self) -> String {
        let disk = self.scene.disk();
        let journal = disk
            .entries
            .values()
            .flatten()
            .map(|recorded| serde_json::to_string(&recorded.entry).unwrap());
        let journal = journal.collect::<String>();
        let events = &disk.events;
        let end = &disk.end;
        let deltas: String = self
            .scene
            .ports
            .feed
            .deltas
            .lock()
            .iter()
            .map(|delta| delta.delta.as_str())
            .collect();
        let requests = self.ports.model.model.requests.lock();
        let prompts: Vec<_> = requests.iter().map(|request| &request.messages).collect();
        format!("{journal}\n{events:?}\n{end:?}\n{deltas}\n{prompts:?}")
    }
}

fn call(tool: &str) -> ToolCall {
    let arguments = format!("{{\"password\":\"{SECRET}\",\"user\":\"bob\"}}");
    ToolCall {
        id: "a".to_owned(),
        tool: tool.to_owned(),
        arguments,
        read_only: false,
    }
}

fn calls(tool: &str) -> Answer {
    Answer {
        text: format!("I log in with {SECRET} now"),
        thinking: format!("the key is {SECRET}."),
        calls: vec![call(tool)],
        code_executions: vec![CodePart {
            result: SECRET.to_owned(),
            ..CodePart::default()
        }],
        groundings: vec![Grounding {
            queries: vec![SECRET.to_owned()],
            other_sources: vec![passage()],
            ..Grounding::default()
        }],
        ..Answer::default()
    }
}

/// A source with the secret in every text.
fn passage() -> OtherSource {
    let text = || format!("the key is {SECRET}");
    let supports = vec![Support {
        text: text(),
        ..Support::default()
    }];
    OtherSource {
        kind: text(),
        uri: text(),
        title: text(),
        text: text(),
        supports,
    }
}

fn react() -> Answer {
    let text = format!(
        "Thought: use {SECRET}\nAction: k8s.get\nAction Input: {{\"password\": \"{SECRET}\"}}"
    );
    Answer {
        text,
        ..Answer::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_sent_what_the_model_wrote_and_nothing_else_holds_it() {
    for (strategy, answer) in [
        (Strategy::NativeThinking, calls("k8s.get")),
        (Strategy::React, react()),
    ] {
        let play = Play::new(strategy, vec![answer]);
        play.run().await;
        let sent = play.sent();
        assert!(sent.len() == 1 && sent[0].contains(SECRET), "{sent:?}");
        let seen = play.seen();
        assert!(!seen.contains(SECRET), "{seen}");
        assert!(
            seen.contains("provider?key=[masked] failed"),
            "the provider's error: {seen}"
        );
        assert!(
            seen.contains("[masked]\\\"") || seen.contains("[masked]\""),
            "{seen}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_arguments_died_with_its_worker_is_asked_for_again() {
    for (tool, strategy) in [
        ("k8s.get", Strategy::NativeThinking),
        ("k8s.restart", Strategy::NativeThinking),
        ("k8s.get", Strategy::React),
    ] {
        let answer = || {
            if strategy == Strategy::React {
                react()
            } else {
                calls(tool)
            }
        };
        let last = Answer {
            text: "Final Answer: Cause: z".to_owned(),
            ..Answer::default()
        };
        let play = Play::new(strategy, vec![answer(), answer(), last]);
        // The opening, the stage's beginning and the first answer are written; then the worker dies.
        play.scene.disk().death = Death::After(3);
        tokio::select! {
            () = play.scene.ports.journal.died.notified() => {}
            () = play.run() => panic!("not killed"),
        }
        assert_eq!(play.sent(), Vec::<String>::new());
        {
            let mut disk = play.scene.disk();
            (disk.death, disk.epoch) = (Death::Never, 2);
            // The store keeps what an entry is as JSON.
            for recorded in disk.entries.values_mut().flatten() {
                let stored = serde_json::to_string(&recorded.entry).unwrap();
                recorded.entry = serde_json::from_str(&stored).unwrap();
            }
        }
        play.run().await;
        let sent = play.sent();
        assert!(
            sent.len() == 1 && sent[0].contains(SECRET),
            "the second time it is asked for: {sent:?}"
        );
        let results = play.scene.journal();
        let results = results
            .iter()
            .filter(|entry| entry.result().is_some())
            .collect::<Vec<_>>();
        assert!(
            format!("{:?}", results[0]).contains("this call was not sent"),
            "{results:?}"
        );
        assert_eq!(results.len(), 2);
        assert!(!play.seen().contains(SECRET));
    }
}

#[tokio::test(start_paused = true)]
async fn live_text_is_the_stored_text_and_its_offsets_count_the_bytes_that_are_shown() {
    let play = Play::new(Strategy::NativeThinking, vec![calls("k8s.get")]);
    play.run().await;
    let deltas = play.scene.ports.feed.deltas.lock();
    for (kind, event) in [
        (DeltaKind::Text, EventType::LlmResponse),
        (DeltaKind::Thinking, EventType::LlmThinking),
    ] {
        let pieces: Vec<_> = deltas.iter().filter(|delta| delta.kind == kind).collect();
        let mut end = 0;
        for piece in &pieces {
            assert_eq!(piece.offset, end, "{pieces:?}");
            end += piece.delta.len() as u64;
        }
        let live: String = pieces.iter().map(|delta| delta.delta.as_str()).collect();
        let disk = play.scene.disk();
        let stored = disk
            .events
            .iter()
            .find(|stored| stored.event_type == event)
            .unwrap();
        assert_eq!(
            (live.as_str(), pieces.len() > 2),
            (stored.content.as_str(), true)
        );
    }
}

#[test]
fn calls_that_differ_only_in_what_is_hidden_are_no_repetition() {
    use tarsy_core::execution::state::State;
    let plan = Scene::new(Strategy::NativeThinking, 9, vec![])
        .disk()
        .record
        .plan
        .stages[0]
        .agents[0]
        .clone();
    let mut state = State::replay(plan, None, Vec::<Entry>::new());
    for n in 0..5 {
        let call = ToolCall {
            id: format!("c{n}"),
            arguments: "{\"key\":\"[masked]\"}".to_owned(),
            ..call("k8s.get")
        };
        let masked_calls = vec![call.id.clone()];
        state.apply(Entry::Answer(Answer {
            calls: vec![call],
            masked_calls,
            ..Answer::default()
        }));
        assert!(!state.refuses_calls() && !state.needs_repeat_feedback());
    }
}
