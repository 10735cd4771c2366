use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::*;
use crate::ports::{
    BrokerUnavailable, NewVerdict, NoChannelGroups, Received, RequestFacts, VerdictRecord,
};
use tarsy_config::{ApprovalPolicy, Person};
use tarsy_core::approvals::{CallHash, Channel, RequestId};
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::Rating;

const SESSION: &str = "0199d3f2-0000-7000-8000-000000000001";
const VOTE: Uuid = Uuid::from_u128(5);

fn session() -> SessionId {
    SessionId::parse(SESSION).unwrap()
}

/// A store with one request, and every vote and freeze that it was sent.
#[derive(Default)]
struct FakeVotes {
    /// The answers to votes, in turn; then votes count and wake nothing.
    answers: Mutex<Vec<Result<VoteRecord, StoreError>>>,
    votes: Mutex<Vec<Vote>>,
    freezes: Mutex<Vec<FreezeChange>>,
    requeued: Mutex<Vec<u64>>,
    verdicts: Mutex<Vec<NewVerdict>>,
}

impl RecordVerdict for FakeVotes {
    async fn record_verdict(&self, verdict: NewVerdict) -> Result<VerdictRecord, StoreError> {
        self.verdicts.lock().push(verdict);
        Ok(VerdictRecord::Recorded("kubernetes".to_owned()))
    }
}

impl Votes for FakeVotes {
    async fn request_facts(&self, request: RequestId) -> Result<Option<RequestFacts>, StoreError> {
        Ok((request.event == 42).then(|| RequestFacts {
            policy: "default".to_owned(),
            quorum: 1,
            channels: vec!["web".to_owned(), "cli".to_owned()],
            other_person: false,
            asked_by: None,
        }))
    }

    async fn record_vote(&self, vote: Vote) -> Result<VoteRecord, StoreError> {
        let counts = VoteRecord {
            refused: vote.refused,
            is_repeated: false,
            outcome: None,
            wakes: None,
        };
        self.votes.lock().push(vote);
        self.answers.lock().pop().unwrap_or(Ok(counts))
    }

    async fn record_requeue(&self, _session: SessionId, sequence: u64) -> Result<(), StoreError> {
        self.requeued.lock().push(sequence);
        Ok(())
    }

    async fn record_freeze(&self, freeze: FreezeChange) -> Result<(), StoreError> {
        self.freezes.lock().push(freeze);
        Ok(())
    }
}

/// A queue that takes alerts again, or is unavailable.
#[derive(Default)]
struct FakeRequeue {
    subjects: Mutex<Vec<String>>,
    is_unavailable: bool,
}

impl Queue for FakeRequeue {
    async fn holds(&self, _: SessionId, _: u64) -> Result<bool, BrokerUnavailable> {
        Ok(false)
    }

    async fn requeue(&self, alert: &IdleAlert) -> Result<u64, BrokerUnavailable> {
        if self.is_unavailable {
            return Err(BrokerUnavailable("test".to_owned()));
        }
        self.subjects.lock().push(alert.subject.clone());
        Ok(77)
    }

    async fn publish_part(&self, _: &Received, _: u32) -> Result<(), BrokerUnavailable> {
        Ok(())
    }
}

/// A delivery that reports its answer.
#[derive(Clone, Debug)]
struct Answered(mpsc::UnboundedSender<&'static str>);

impl Delivery for Answered {
    async fn progress(&self) -> Result<(), BrokerUnavailable> {
        Ok(())
    }

    async fn ack(&self) -> Result<(), BrokerUnavailable> {
        self.0.send("ack").unwrap();
        Ok(())
    }

    async fn nak(&self, _: Duration) -> Result<(), BrokerUnavailable> {
        self.0.send("nak").unwrap();
        Ok(())
    }

    async fn term(&self, _: &str) -> Result<(), BrokerUnavailable> {
        Ok(())
    }
}

struct Scene {
    recorder: Recorder<FakeVotes, FakeRequeue, NoChannelGroups>,
    answers: mpsc::UnboundedReceiver<&'static str>,
    sender: mpsc::UnboundedSender<&'static str>,
}

impl Scene {
    fn new() -> Self {
        Self::with_queue(FakeRequeue::default())
    }

    fn with_queue(queue: FakeRequeue) -> Self {
        let (sender, answers) = mpsc::unbounded_channel();
        let policy = ApprovalPolicy {
            approvers: vec!["sre".to_owned()],
            ..ApprovalPolicy::default()
        };
        let ana = Person {
            cli: Some("ana".to_owned()),
            groups: vec!["sre".to_owned()],
            ..Person::default()
        };
        let recorder = Recorder {
            store: Arc::new(FakeVotes::default()),
            queue: Arc::new(queue),
            groups: NoChannelGroups,
            mask: Mask::new(["s3cret-word".to_owned()]),
            approvals: Approvals {
                policies: BTreeMap::from([("default".to_owned(), policy)]),
                people: BTreeMap::from([("ana".to_owned(), ana)]),
                ..Approvals::default()
            },
            drills: Drills::Refuse,
        };
        Self {
            recorder,
            answers,
            sender,
        }
    }

    async fn receive(&mut self, message: PeopleMessage<Answered>) -> &'static str {
        self.recorder.answer(message).await;
        self.answers.try_recv().unwrap()
    }

    fn message(&self, subject: &str, body: &Value) -> PeopleMessage<Answered> {
        let subject = subject.replace("SESSION", SESSION);
        PeopleMessage {
            address: PeopleSubject::parse(&subject),
            subject,
            id: Some(VOTE),
            proof: Proof::NotNeeded,
            body: serde_json::to_vec(body).unwrap(),
            stored_at: Utc::now(),
            delivery: Answered(self.sender.clone()),
        }
    }

    fn by_ana(&self) -> PeopleMessage<Answered> {
        self.message("tarsy.decisions.cli.ana.SESSION", &decision())
    }

    fn votes(&self) -> Vec<Vote> {
        self.recorder.store.votes.lock().clone()
    }

    fn refusals(&self) -> Vec<Option<Refusal>> {
        self.votes().iter().map(|vote| vote.refused).collect()
    }
}

fn decision() -> Value {
    json!({"v": 1, "request": format!("{SESSION}/42"), "call": "ab".repeat(32), "seen_updates": 3,
        "verdict": "approve", "comment": " with s3cret-word\u{202e} ", "from": "203.0.113.7"})
}

fn edited(body: &Value, edit: &Value) -> Value {
    let mut body = body.clone();
    for (field, value) in edit.as_object().unwrap() {
        body[field] = value.clone();
    }
    body
}

#[tokio::test]
async fn a_verdict_is_recorded_with_the_person_of_its_subject_and_masked_texts() {
    let mut scene = Scene::new();
    let body =
        json!({"v": 1, "verdict": "wrong", "cause": "s3cret-word leaked", "action": " \u{202e} "});
    let message = scene.message("tarsy.verdicts.cli.ana.SESSION", &body);
    assert_eq!(scene.receive(message).await, "ack");
    let message = scene.message("tarsy.verdicts.cli.ben.SESSION", &body);
    assert_eq!(scene.receive(message).await, "ack");
    let verdicts = std::mem::take(&mut *scene.recorder.store.verdicts.lock());
    let [ana, ben] = verdicts.as_slice() else {
        panic!("{verdicts:?}")
    };
    let expected = NewVerdict {
        id: VOTE,
        session: session(),
        person: "ana".to_owned(),
        account: "ana".to_owned(),
        channel: Channel::Cli,
        rating: Rating::Wrong,
        cause: ana.cause.clone(),
        action: None,
    };
    assert_eq!(*ana, expected);
    let cause = ana.cause.as_deref().unwrap();
    assert!(
        cause.ends_with(" leaked") && !cause.contains("s3cret-word"),
        "{cause}"
    );
    assert_eq!(ben.person, "cli:ben");
}

#[tokio::test]
async fn a_verdict_without_proof_or_form_is_not_recorded() {
    let mut scene = Scene::new();
    let body = json!({"v": 1, "verdict": "right"});
    let forged = PeopleMessage {
        proof: Proof::Invalid,
        ..scene.message("tarsy.verdicts.cli.ana.SESSION", &body)
    };
    let unnamed = PeopleMessage {
        id: None,
        ..scene.message("tarsy.verdicts.cli.ana.SESSION", &body)
    };
    let drill = scene.message(
        "tarsy.verdicts.drill.SESSION",
        &edited(&body, &json!({"by": {"name": "ana"}})),
    );
    let odd = scene.message(
        "tarsy.verdicts.cli.ana.SESSION",
        &edited(&body, &json!({"verdict": "great"})),
    );
    for message in [forged, unnamed, drill, odd] {
        assert_eq!(scene.receive(message).await, "ack");
    }
    assert_eq!(*scene.recorder.store.verdicts.lock(), []);
}

#[tokio::test]
async fn a_decision_is_recorded_as_the_subject_and_the_body_have_it() {
    let mut scene = Scene::new();
    let message = scene.by_ana();
    assert_eq!(scene.receive(message).await, "ack");
    let vote = scene.votes().pop().unwrap();
    let expected = Vote {
        id: VOTE,
        request: RequestId {
            session: session(),
            event: 42,
        },
        person: "ana".to_owned(),
        account: "ana".to_owned(),
        groups: vec!["sre".to_owned()],
        channel: Channel::Cli,
        address: Some("203.0.113.7".to_owned()),
        choice: Choice::Approve,
        comment: vote.comment.clone(),
        seen: CallHash([0xab; 32]),
        seen_updates: 3,
        refused: None,
        age: vote.age,
    };
    assert_eq!(vote, expected);
    let comment = vote.comment.unwrap();
    assert!(
        comment.starts_with("with ") && !comment.contains("s3cret-word"),
        "{comment}"
    );
    assert!(!comment.contains('\u{202e}'), "{comment:?}");
    assert!(vote.age < Duration::from_secs(30), "{:?}", vote.age);
}

#[tokio::test]
async fn a_message_that_no_person_sends_is_acknowledged_and_recorded_nowhere() {
    let mut scene = Scene::new();
    let subject = "tarsy.decisions.cli.ana.SESSION";
    let other = "0199d3f2-0000-7000-8000-000000000002/42";
    let edits = [
        json!({"v": 2}),
        json!({"request": "x"}),
        json!({"request": other}),
        json!({"call": "ab"}),
        json!({"verdict": "maybe"}),
        json!({"more": true}),
        json!({"from": "a\nb"}),
    ];
    for edit in edits {
        let message = scene.message(subject, &edited(&decision(), &edit));
        assert_eq!(scene.receive(message).await, "ack", "{edit}");
    }
    let mut without_id = scene.by_ana();
    without_id.id = None;
    assert_eq!(scene.receive(without_id).await, "ack");
    for subject in [
        "tarsy.alerts.low",
        "tarsy.decisions.web.SESSION",
        "tarsy.verdicts.cli.ana.SESSION",
    ] {
        let message = scene.message(subject, &decision());
        assert_eq!(scene.receive(message).await, "ack", "{subject}");
    }
    let unknown = edited(&decision(), &json!({"request": format!("{SESSION}/7")}));
    let message = scene.message(subject, &unknown);
    assert_eq!(scene.receive(message).await, "ack");
    assert_eq!(scene.votes(), []);
}

#[tokio::test]
async fn a_forged_decision_is_recorded_as_refused_under_no_persons_name() {
    let mut scene = Scene::new();
    let mut forged = scene.by_ana();
    forged.proof = Proof::Invalid;
    assert_eq!(scene.receive(forged).await, "ack");
    let vote = scene.votes().pop().unwrap();
    assert_eq!(vote.refused, Some(Refusal::BadSignature));
    assert_eq!((vote.person.as_str(), vote.groups.len()), ("cli:ana", 0));
}

#[test]
fn a_person_without_a_valid_proof_is_none_of_the_configuration() {
    let person = Person {
        cli: Some("ana".to_owned()),
        groups: vec!["sre".to_owned()],
        ..Person::default()
    };
    let approvals = Approvals {
        people: [("Ana".to_owned(), person)].into(),
        ..Approvals::default()
    };
    let rights = Rights {
        approvals: &approvals,
        drills: Drills::Refuse,
    };
    for (proof, name) in [
        (Proof::NotNeeded, "Ana"),
        (Proof::Valid, "Ana"),
        (Proof::Invalid, "cli:ana"),
        (Proof::Unreadable("no such file".to_owned()), "cli:ana"),
    ] {
        let claimant = Claimant {
            channel: Channel::Cli,
            account: "ana".to_owned(),
            groups: Vec::new(),
            proof,
        };
        assert_eq!(rights.voter(&claimant, None).name, name);
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_read_keeps_the_message_for_ten_minutes() {
    let mut scene = Scene::new();
    let mut message = scene.by_ana();
    message.proof = Proof::Unreadable("no such file".to_owned());
    assert_eq!(scene.receive(message.clone()).await, "nak");
    assert_eq!(scene.votes(), []);
    message.stored_at = Utc::now() - TimeDelta::minutes(11);
    assert_eq!(scene.receive(message).await, "ack");
    assert_eq!(scene.refusals(), [Some(Refusal::BadSignature)]);
    assert_eq!(scene.votes().pop().unwrap().person, "cli:ana");
}

#[tokio::test]
async fn an_approval_from_the_future_is_late_and_a_denial_from_there_counts() {
    let mut scene = Scene::new();
    let mut message = scene.by_ana();
    message.stored_at = Utc::now() + TimeDelta::minutes(5);
    scene.receive(message.clone()).await;
    message.body = serde_json::to_vec(&edited(&decision(), &json!({"verdict": "deny"}))).unwrap();
    scene.receive(message).await;
    assert_eq!(scene.refusals(), [Some(Refusal::Late), None]);
}

#[tokio::test]
async fn a_message_stays_while_the_store_is_unavailable() {
    let mut scene = Scene::new();
    let unavailable = StoreError::Unavailable("test".to_owned());
    scene.recorder.store.answers.lock().push(Err(unavailable));
    let message = scene.by_ana();
    assert_eq!(scene.receive(message.clone()).await, "nak");
    assert_eq!(scene.receive(message).await, "ack");
    assert_eq!(scene.refusals(), [None, None]);
}

#[tokio::test]
async fn a_message_that_the_store_always_refuses_is_given_up_after_an_hour() {
    let mut scene = Scene::new();
    let refused = || Err(StoreError::Refused("test".to_owned()));
    scene
        .recorder
        .store
        .answers
        .lock()
        .extend([refused(), refused()]);
    let mut message = scene.by_ana();
    assert_eq!(scene.receive(message.clone()).await, "nak");
    message.stored_at = Utc::now() - TimeDelta::minutes(61);
    assert_eq!(scene.receive(message).await, "ack");
}

fn waking(subject: &str) -> VoteRecord {
    VoteRecord {
        refused: None,
        is_repeated: true,
        outcome: Some("approved".to_owned()),
        wakes: Some(IdleAlert {
            alert_id: session(),
            undecided: false,
            subject: subject.to_owned(),
            headers: json!({}),
            body: Some(Vec::new()),
            stream_sequence: 1,
            woken_by: Some(WakeCause::Decision),
        }),
    }
}

#[tokio::test]
async fn a_decision_that_wakes_a_session_queues_its_alert_before_it_is_acknowledged() {
    for (subject, queued) in [
        ("tarsy.alerts.low.disk-full", "tarsy.alerts.high.disk-full"),
        ("tarsy.questions.normal", "tarsy.questions.high"),
        ("tarsy.alerts.critical", "tarsy.alerts.critical"),
        ("other", "other"),
    ] {
        let mut scene = Scene::new();
        scene
            .recorder
            .store
            .answers
            .lock()
            .push(Ok(waking(subject)));
        let message = scene.by_ana();
        assert_eq!(scene.receive(message).await, "ack");
        assert_eq!(*scene.recorder.queue.subjects.lock(), [queued]);
        assert_eq!(*scene.recorder.store.requeued.lock(), [77]);
    }
    let mut scene = Scene::with_queue(FakeRequeue {
        is_unavailable: true,
        ..FakeRequeue::default()
    });
    scene
        .recorder
        .store
        .answers
        .lock()
        .push(Ok(waking("tarsy.alerts.low")));
    let message = scene.by_ana();
    assert_eq!(scene.receive(message).await, "nak");
    assert_eq!(*scene.recorder.store.requeued.lock(), [0; 0]);
}

#[tokio::test]
async fn a_person_freezes_all_changes_and_a_late_end_of_a_freeze_does_not_count() {
    let mut scene = Scene::new();
    let subject = "tarsy.decisions.cli.ana.freeze";
    let begin =
        json!({"v": 1, "freeze": "begin", "until": "2026-12-01T08:00:00Z", "reason": "release"});
    let end = json!({"v": 1, "freeze": "end"});
    for (subject, body) in [
        (subject, &begin),
        (subject, &end),
        ("tarsy.decisions.cli.eve.freeze", &end),
    ] {
        let message = scene.message(subject, body);
        assert_eq!(scene.receive(message).await, "ack");
    }
    for body in [&begin, &end] {
        let mut late = scene.message(subject, body);
        late.stored_at = Utc::now() - TimeDelta::hours(1);
        assert_eq!(scene.receive(late).await, "ack");
    }
    let changes: Vec<Freeze> = scene
        .recorder
        .store
        .freezes
        .lock()
        .iter()
        .map(|freeze| freeze.change)
        .collect();
    let until = Some("2026-12-01T08:00:00Z".parse().unwrap());
    assert_eq!(
        changes,
        [Freeze::Begin(until), Freeze::End, Freeze::Begin(until)]
    );
}

/// Messages that arrive through a channel.
struct Arriving(mpsc::UnboundedReceiver<PeopleMessage<Answered>>);

impl PeopleMessages for Arriving {
    type Delivery = Answered;

    async fn next(&mut self) -> Result<PeopleMessage<Answered>, BrokerUnavailable> {
        match self.0.recv().await {
            Some(message) => Ok(message),
            None => std::future::pending().await,
        }
    }
}

#[tokio::test]
async fn every_message_that_arrives_is_answered_until_the_worker_ends() {
    let mut scene = Scene::new();
    let (send, arriving) = mpsc::unbounded_channel();
    for _ in 0..3 * MAX_CONCURRENT {
        send.send(scene.by_ana()).unwrap();
    }
    let end = CancellationToken::new();
    let running = tokio::spawn(scene.recorder.run(Arriving(arriving), end.clone()));
    for _ in 0..3 * MAX_CONCURRENT {
        assert_eq!(scene.answers.recv().await, Some("ack"));
    }
    end.cancel();
    running.await.unwrap();
}

/// Keeps what it answers.
#[derive(Default)]
struct FakeSlack {
    answers: Mutex<Vec<String>>,
}

impl ChannelGroups for FakeSlack {
    async fn groups_of(&self, _account: &str, _wanted: &[String]) -> Groups {
        Groups::Known(Vec::new())
    }

    async fn answer(&self, address: &str, text: &str) {
        self.answers.lock().push(format!("{address}: {text}"));
    }
}

#[tokio::test]
async fn only_a_person_in_slack_is_answered_and_only_after_the_vote_is_recorded() {
    let mut scene = Scene::new();
    let clicked = edited(
        &decision(),
        &json!({"verdict": "deny", "by": {"name": "U7"}, "response_url": "https://hooks.slack.com/actions/T1"}),
    );
    let slack = "tarsy.decisions.slack.SESSION";
    let clicks = scene.message(slack, &clicked);
    let forged = PeopleMessage {
        proof: Proof::Invalid,
        ..scene.message(slack, &clicked)
    };
    let web = scene.message("tarsy.decisions.web.SESSION", &clicked);
    let recorder = Recorder {
        store: Arc::clone(&scene.recorder.store),
        queue: Arc::clone(&scene.recorder.queue),
        groups: FakeSlack::default(),
        mask: scene.recorder.mask.clone(),
        approvals: scene.recorder.approvals.clone(),
        drills: Drills::Refuse,
    };
    let judged = json!({"v": 1, "verdict": "right", "by": {"name": "U7"}, "response_url": "https://hooks.slack.com/actions/T2"});
    let judged = scene.message("tarsy.verdicts.slack.SESSION", &judged);
    for message in [clicks, forged, web, judged] {
        recorder.answer(message).await;
        assert_eq!(scene.answers.try_recv(), Ok("ack"));
    }
    assert_eq!(scene.votes().len(), 3);
    let answers = recorder.groups.answers.lock().clone();
    let expected = [
        "https://hooks.slack.com/actions/T1: Not counted: this policy takes no decisions from Slack.",
        "https://hooks.slack.com/actions/T2: Recorded. The newest verdict about an investigation counts.",
    ];
    assert_eq!(answers, expected);
}
