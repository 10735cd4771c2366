//! The voters: two people who may decide and one who may not, at the web server, in Slack and at the command line. They
//! look for open requests and publish through the streams of people, signed. Some of their messages must not count.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use fastrand::Rng;
use serde::Deserialize;
use tarsy_bus::{ChannelKeys, ConnectRetry, Nats, NewPeopleMessage, Options};
use tarsy_config::Secret;
use tarsy_core::approvals::{
    CallHash, Channel, Choice, DecisionMessage, MESSAGE_FORM, PeopleSubject, RequestId, Sender,
    Topic, Voter,
};
use tarsy_core::ids::SessionId;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{SHORT, TWO};
use crate::proofs::chaos::system::System;

const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// A request that is still open so long after the last vote is decided again.
const VOTE_AGAIN_AFTER: Duration = Duration::from_secs(6);
/// The time for which a voter tries to send a message, with the same id.
const SENT_WITHIN: Duration = Duration::from_secs(20);
const CHANNELS: [Channel; 3] = [Channel::Web, Channel::Slack, Channel::Cli];
const OPEN: &str = "(SELECT coalesce(jsonb_agg(jsonb_build_object(
    'session', p.session_id, 'event', p.event_seq, 'execution', p.execution_id, 'call', p.call_id, 'policy', p.policy,
    'hash', encode(p.call_sha256, 'hex'), 'updates', s.updates, 'decided_by', p.decided_by)), '[]')::text
  FROM approvals p JOIN alert_sessions s USING (session_id)
  WHERE p.outcome IS NULL AND p.closed_at IS NULL AND p.expires_at > clock_timestamp() AND s.status = 'running')";

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::proofs::chaos) enum Intent {
    /// It counts, unless another one was first.
    Counts,
    /// It names the hash of another call.
    OtherCall,
    /// Its person saw another state of the alert.
    Stale,
    /// Its person may not decide, or is not known.
    Stranger,
    /// It has the signature of another key.
    Forged,
}

/// A message of a voter.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::proofs::chaos) struct Cast {
    pub(in crate::proofs::chaos) id: Uuid,
    /// `None` if the stream has not acknowledged it. It may have it nevertheless.
    pub(in crate::proofs::chaos) acknowledged: Option<DateTime<Utc>>,
    pub(in crate::proofs::chaos) session: Uuid,
    pub(in crate::proofs::chaos) event: i32,
    pub(in crate::proofs::chaos) execution: Uuid,
    pub(in crate::proofs::chaos) call: String,
    pub(in crate::proofs::chaos) who: &'static str,
    pub(in crate::proofs::chaos) channel: Channel,
    pub(in crate::proofs::chaos) choice: Choice,
    pub(in crate::proofs::chaos) intent: Intent,
    /// The request was still open long after the first votes, or again.
    pub(in crate::proofs::chaos) is_again: bool,
}

/// An open request as a voter sees it.
#[derive(Clone, Debug, Deserialize)]
struct Open {
    session: Uuid,
    event: i32,
    execution: Uuid,
    call: String,
    policy: String,
    hash: String,
    updates: u32,
    decided_by: Vec<String>,
}

/// One message of a plan.
#[derive(Clone, Copy, Debug)]
struct Step {
    after: Duration,
    who: &'static str,
    channel: Channel,
    choice: Choice,
    intent: Intent,
    /// The message is sent twice, with the same id.
    twice: bool,
}

/// A request was decided by these voters, or is being decided.
#[derive(Clone, Copy)]
enum Seen {
    Busy,
    Done(Instant),
}

struct Voters {
    nats: Nats,
    keys: ChannelKeys,
    forged: ChannelKeys,
    casts: Mutex<Vec<Cast>>,
    seen: Mutex<BTreeMap<(Uuid, i32), Seen>>,
}

/// Decides about every open request until `end`; returns all messages.
pub(in crate::proofs::chaos) async fn decide(
    system: Arc<System>,
    seed: u64,
    end: CancellationToken,
) -> Vec<Cast> {
    let mut rng = Rng::with_seed(seed ^ 0x70e5);
    let voters = Arc::new(Voters::connect(&system).await);
    let mut deciding = JoinSet::new();
    while !end.is_cancelled() {
        let text = system.ask(OPEN).unwrap_or_default();
        let open: Vec<Open> = serde_json::from_str(&text).unwrap_or_default();
        for request in open.into_iter().filter(|request| request.policy != SHORT) {
            let Some(is_again) = voters.is_due(&request) else {
                continue;
            };
            let steps = plan(&request, &mut rng, is_again);
            let voters = Arc::clone(&voters);
            deciding.spawn(async move { voters.vote(request, steps, is_again).await });
        }
        while deciding.try_join_next().is_some() {}
        end.run_until_cancelled(tokio::time::sleep(BETWEEN_LOOKS)) // pacing of looks
            .await;
    }
    while deciding.join_next().await.is_some() {}
    std::mem::take(&mut *voters.casts.lock().unwrap())
}

/// The messages about one request.
fn plan(open: &Open, rng: &mut Rng, is_again: bool) -> Vec<Step> {
    let step = |rng: &mut Rng, who: &'static str, choice: Choice, intent: Intent| Step {
        after: Duration::from_millis(rng.u64(0..400)),
        who,
        channel: CHANNELS[rng.usize(0..CHANNELS.len())],
        choice,
        intent,
        twice: rng.u8(0..4) == 0,
    };
    let mut people = ["ana", "ben"];
    rng.shuffle(&mut people);
    let [first, second] = people;
    let mut steps = Vec::new();
    if !is_again {
        for (percent, who, intent) in [
            (25, first, Intent::OtherCall),
            (20, second, Intent::Stale),
            (10, "eve", Intent::Stranger),
            (10, "mallory", Intent::Stranger),
            (10, first, Intent::Forged),
        ] {
            if rng.u8(0..100) < percent {
                steps.push(step(rng, who, Choice::Approve, intent));
            }
        }
    }
    let (approve, deny) = (Choice::Approve, Choice::Deny);
    let choices: Vec<(&str, Choice)> = match (open.policy.as_str(), rng.u8(0..10)) {
        (TWO, 0) => vec![(first, deny)],
        (TWO, 1) => vec![(first, approve), (second, deny)],
        // The same person once more counts as one.
        (TWO, 2..4) => vec![(first, approve), (first, approve), (second, approve)],
        (TWO, _) => vec![(first, approve), (second, approve)],
        (_, 0..6) => vec![(first, approve)],
        (_, 6 | 7) => vec![(first, deny)],
        (_, 8) => vec![(first, Choice::DenySession)],
        _ => vec![(first, approve), (second, deny)],
    };
    for (who, choice) in choices {
        if choice != approve || !open.decided_by.iter().any(|person| person == who) {
            steps.push(step(rng, who, choice, Intent::Counts));
        }
    }
    if let (Some(thinks), false) = (steps.first_mut(), is_again) {
        thinks.after = Duration::from_millis(rng.u64(0..1500));
    }
    steps
}

impl Voters {
    async fn connect(system: &System) -> Self {
        let options = Options {
            url: system.nats_url.clone(),
            role: "chaos".to_owned(),
            credentials: Default::default(),
            retry: ConnectRetry::Forever,
        };
        Self {
            nats: Nats::connect(&options).await.unwrap(),
            keys: keys(|channel| system.file(&format!("{}.key", channel.as_str()))),
            forged: keys(|_| system.file("forged.key")),
            casts: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    /// Whether votes about a request are due, and if so, whether it was decided before.
    fn is_due(&self, request: &Open) -> Option<bool> {
        let mut seen = self.seen.lock().unwrap();
        let key = (request.session, request.event);
        let is_again = match seen.get(&key) {
            None => false,
            Some(Seen::Done(at)) if at.elapsed() > VOTE_AGAIN_AFTER => true,
            Some(Seen::Done(_) | Seen::Busy) => return None,
        };
        seen.insert(key, Seen::Busy);
        Some(is_again)
    }

    async fn vote(&self, request: Open, steps: Vec<Step>, is_again: bool) {
        for step in steps {
            tokio::time::sleep(step.after).await; // a person thinks
            self.send(&request, step, is_again).await;
        }
        let key = (request.session, request.event);
        let done = Seen::Done(Instant::now());
        self.seen.lock().unwrap().insert(key, done);
    }

    /// Sends one message until the stream acknowledges it.
    async fn send(&self, request: &Open, step: Step, is_again: bool) {
        let (message, id) = (message(request, step), Uuid::now_v7());
        let message = NewPeopleMessage {
            subject: PeopleSubject {
                topic: Topic::Decision(SessionId(request.session)),
                sender: sender(step),
            },
            id,
            body: serde_json::to_vec(&message).unwrap(),
        };
        let keys = match step.intent {
            Intent::Forged => &self.forged,
            Intent::Counts | Intent::OtherCall | Intent::Stale | Intent::Stranger => &self.keys,
        };
        let limit = Instant::now() + SENT_WITHIN;
        let mut acknowledged = None;
        while acknowledged.is_none() && Instant::now() < limit {
            match self.nats.publish_of_person(&message, keys).await {
                Ok(_) => acknowledged = Some(Utc::now()),
                Err(_) => tokio::time::sleep(BETWEEN_LOOKS).await, // pacing of tries
            }
        }
        if step.twice {
            // Its result does not matter: the stream knows the id.
            self.nats.publish_of_person(&message, keys).await.ok();
        }
        self.casts.lock().unwrap().push(Cast {
            id,
            acknowledged,
            session: request.session,
            event: request.event,
            execution: request.execution,
            call: request.call.clone(),
            who: step.who,
            channel: step.channel,
            choice: step.choice,
            intent: step.intent,
            is_again,
        });
    }
}

fn keys(file: impl Fn(Channel) -> std::path::PathBuf) -> ChannelKeys {
    let secret = |channel: Channel| {
        let path: &Path = &file(channel);
        Secret::in_file("approvals.keys", path.to_str().unwrap())
    };
    ChannelKeys(CHANNELS.map(|channel| (channel, secret(channel))).into())
}

fn sender(step: Step) -> Sender {
    match step.channel {
        Channel::Slack => Sender::Slack,
        Channel::Cli => Sender::cli(step.who).unwrap(),
        Channel::Web | Channel::Link | Channel::Drill => Sender::Web,
    }
}

/// A decision as its channel publishes it.
fn message(request: &Open, step: Step) -> DecisionMessage {
    let seen = CallHash::parse(&request.hash).expect("a hash");
    let event = u32::try_from(request.event).unwrap_or_default();
    let session = SessionId(request.session);
    let named = |name: String| Voter {
        name,
        groups: Vec::new(),
    };
    DecisionMessage {
        v: MESSAGE_FORM,
        request: RequestId { session, event }.to_string(),
        call: if step.intent == Intent::OtherCall {
            CallHash([7; 32])
        } else {
            seen
        },
        seen_updates: if step.intent == Intent::Stale {
            request.updates + 7
        } else {
            request.updates
        },
        verdict: step.choice,
        comment: (step.choice != Choice::Approve).then(|| "not during a run of chaos".to_owned()),
        by: match step.channel {
            Channel::Slack => Some(named(format!("U0{}", step.who.to_uppercase()))),
            Channel::Cli => None,
            Channel::Web | Channel::Link | Channel::Drill => {
                Some(named(format!("{}@example.com", step.who)))
            }
        },
        from: Some("203.0.113.7".to_owned()),
        response_url: None,
    }
}
