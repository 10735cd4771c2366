//! A table of the operations that each role may perform; forged events and cancel requests among them.

use serde_json::json;
use tarsy_bus::permissions::NatsRole;
use tarsy_bus::{ConnectRetry, Nats, NatsCredentials, Options, PeopleStream, TopologySettings};
use tarsy_config::Secret;
use uuid::Uuid;

use super::wire_client::WireClient;
use super::{PASSWORD, guarded};
use crate::support::nats::NatsServer;
use crate::support::nats::jwt::Operator;
use crate::support::wait::eventually;

/// Something that a client may try.
struct Attempt {
    what: &'static str,
    command: Command,
    /// The roles that may: `p`roducer, `r`eceiver, `w`orker, `v`iewer (watcher), `h`TTP (web), `a`dministrator,
    /// `s`lack, the `d`ecider ana.
    roles: &'static str,
}

enum Command {
    Publish(&'static str),
    Subscribe(&'static str),
}

use Command::{Publish, Subscribe};

const SESSION: &str = "0199d3f2-0000-7000-8000-000000000001";

fn attempts() -> Vec<Attempt> {
    let attempt = |what, command, roles| Attempt {
        what,
        command,
        roles,
    };
    vec![
        attempt("queue an alert", Publish("tarsy.alerts.high.test"), "prwa"),
        attempt(
            "queue an alert of the web server",
            Publish("tarsy.alerts.low.web"),
            "prwha",
        ),
        attempt(
            "queue one beside its subjects",
            Publish("tarsy.alerts.low.web.more"),
            "prwa",
        ),
        attempt(
            "queue one without an end",
            Publish("tarsy.alerts.low"),
            "prwa",
        ),
        attempt("ask a question", Publish("tarsy.questions.high"), "wha"),
        attempt(
            "ask in a thread of Slack",
            Publish("tarsy.questions.high.slack"),
            "whas",
        ),
        attempt(
            "ask beside the subject of Slack",
            Publish("tarsy.questions.low.slack"),
            "wha",
        ),
        attempt(
            "ask below the subject of Slack",
            Publish("tarsy.questions.high.slack.more"),
            "wha",
        ),
        attempt(
            "read alerts as they are queued",
            Subscribe("tarsy.alerts.>"),
            "",
        ),
        attempt(
            "read a queued alert",
            Publish("$JS.API.STREAM.MSG.GET.TARSY_ALERTS"),
            "wa",
        ),
        attempt(
            "read a queued alert directly",
            Publish("$JS.API.DIRECT.GET.TARSY_ALERTS"),
            "",
        ),
        attempt(
            "claim alerts",
            Publish("$JS.API.CONSUMER.MSG.NEXT.TARSY_ALERTS.high"),
            "w",
        ),
        attempt(
            "acknowledge an alert",
            Publish("$JS.ACK.TARSY_ALERTS.high.1.9999.1.0.0"),
            "w",
        ),
        attempt(
            "forge a timeline event",
            Publish("tarsy.timeline.SESSION"),
            "w",
        ),
        attempt("forge a delta", Publish("tarsy.live.SESSION"), "w"),
        attempt(
            "read timelines",
            Publish("$JS.API.CONSUMER.CREATE.TARSY_TIMELINE.x.tarsy.timeline.*"),
            "vha",
        ),
        attempt("read deltas", Subscribe("tarsy.live.*"), "vha"),
        attempt(
            "send a cancel request",
            Publish("tarsy.control.SESSION"),
            "ha",
        ),
        attempt("read cancel requests", Subscribe("tarsy.control.*"), "wa"),
        attempt(
            "decide on a page",
            Publish("tarsy.decisions.web.SESSION"),
            "h",
        ),
        attempt(
            "decide in Slack",
            Publish("tarsy.decisions.slack.SESSION"),
            "s",
        ),
        attempt(
            "decide as ana",
            Publish("tarsy.decisions.cli.ana.SESSION"),
            "d",
        ),
        attempt(
            "decide as bob",
            Publish("tarsy.decisions.cli.bob.SESSION"),
            "",
        ),
        attempt(
            "decide by a link",
            Publish("tarsy.decisions.link.SESSION"),
            "",
        ),
        attempt(
            "decide in a drill",
            Publish("tarsy.decisions.drill.SESSION"),
            "",
        ),
        attempt(
            "freeze changes on a page",
            Publish("tarsy.decisions.web.freeze"),
            "h",
        ),
        attempt(
            "freeze changes as ana",
            Publish("tarsy.decisions.cli.ana.freeze"),
            "d",
        ),
        attempt(
            "judge an analysis on a page",
            Publish("tarsy.verdicts.web.SESSION"),
            "h",
        ),
        attempt(
            "judge an analysis in Slack",
            Publish("tarsy.verdicts.slack.SESSION"),
            "s",
        ),
        attempt(
            "judge an analysis as ana",
            Publish("tarsy.verdicts.cli.ana.SESSION"),
            "d",
        ),
        attempt(
            "receive decisions",
            Publish("$JS.API.CONSUMER.MSG.NEXT.TARSY_PEOPLE.recorder"),
            "w",
        ),
        attempt(
            "acknowledge a decision",
            Publish("$JS.ACK.TARSY_PEOPLE.recorder.1.9999.1.0.0"),
            "w",
        ),
        attempt(
            "read decisions as they arrive",
            Subscribe("tarsy.decisions.>"),
            "",
        ),
        attempt(
            "read a stored decision",
            Publish("$JS.API.STREAM.MSG.GET.TARSY_PEOPLE"),
            "",
        ),
        attempt(
            "remove a decision",
            Publish("$JS.API.STREAM.MSG.DELETE.TARSY_PEOPLE"),
            "",
        ),
        attempt("forge a worker's status", Publish("tarsy.workers.x"), "w"),
        attempt(
            "read the status of workers",
            Subscribe("tarsy.workers.*"),
            "wvha",
        ),
        attempt(
            "forge a worker's configuration",
            Publish("tarsy.systems.x"),
            "w",
        ),
        attempt(
            "read the configuration of workers",
            Subscribe("tarsy.systems.*"),
            "h",
        ),
        attempt(
            "forge a dead letter",
            Publish("tarsy.dead.failed.SESSION"),
            "w",
        ),
        attempt(
            "read dead letters",
            Publish("$JS.API.CONSUMER.CREATE.TARSY_DEAD_LETTERS.x.tarsy.dead.>"),
            "a",
        ),
        attempt(
            "remove a dead letter",
            Publish("$JS.API.STREAM.MSG.DELETE.TARSY_DEAD_LETTERS"),
            "a",
        ),
        attempt(
            "remove a timeline event",
            Publish("$JS.API.STREAM.MSG.DELETE.TARSY_TIMELINE"),
            "",
        ),
        attempt(
            "change a stream",
            Publish("$JS.API.STREAM.UPDATE.TARSY_ALERTS"),
            "a",
        ),
        attempt(
            "change a consumer",
            Publish("$JS.API.CONSUMER.CREATE.TARSY_ALERTS.high"),
            "a",
        ),
        attempt(
            "delete a consumer",
            Publish("$JS.API.CONSUMER.DELETE.TARSY_ALERTS.high"),
            "",
        ),
        attempt(
            "purge a stream",
            Publish("$JS.API.STREAM.PURGE.TARSY_ALERTS"),
            "",
        ),
        attempt(
            "delete a stream",
            Publish("$JS.API.STREAM.DELETE.TARSY_TIMELINE"),
            "",
        ),
        attempt(
            "copy a stream",
            Publish("$JS.API.STREAM.SNAPSHOT.TARSY_ALERTS"),
            "",
        ),
        attempt(
            "make a stream of one's own",
            Publish("$JS.API.STREAM.CREATE.OTHER"),
            "",
        ),
        attempt("read replies to workers", Subscribe("_INBOX_worker.>"), "w"),
        attempt(
            "read replies to the web server",
            Subscribe("_INBOX_web.>"),
            "vh",
        ),
        attempt(
            "read replies to administrators",
            Subscribe("_INBOX_cancel.>"),
            "a",
        ),
        attempt("read everything", Subscribe(">"), ""),
        attempt("publish elsewhere", Publish("other.subject"), ""),
    ]
}

/// The letter of a role in [`Attempt::roles`].
fn letter(role: NatsRole) -> char {
    match role {
        NatsRole::Producer => 'p',
        NatsRole::Receiver => 'r',
        NatsRole::Worker => 'w',
        NatsRole::Watcher => 'v',
        NatsRole::Web => 'h',
        NatsRole::Administrator => 'a',
        NatsRole::Slack => 's',
        NatsRole::Decider => 'd',
    }
}

async fn as_root(server: &NatsServer) -> Nats {
    let url = server
        .url()
        .replace("nats://", &format!("nats://root:{PASSWORD}@"));
    connect(url, NatsCredentials::default()).await
}

async fn root_jetstream(server: &NatsServer) -> async_nats::jetstream::Context {
    let options =
        async_nats::ConnectOptions::with_user_and_password("root".to_owned(), PASSWORD.to_owned());
    async_nats::jetstream::new(options.connect(server.url()).await.unwrap())
}

async fn connect(url: String, credentials: NatsCredentials) -> Nats {
    let retry = ConnectRetry::UpTo(std::time::Duration::from_secs(10));
    Nats::connect(&Options {
        url,
        role: "doctor".to_owned(),
        credentials,
        retry,
    })
    .await
    .unwrap()
}

/// The streams of a system in which people decide.
fn with_people() -> TopologySettings {
    TopologySettings {
        people: PeopleStream::Needed,
        ..TopologySettings::default()
    }
}

#[tokio::test]
async fn each_role_may_do_exactly_what_the_table_says() {
    let server = guarded().await;
    as_root(&server)
        .await
        .ensure_topology(&with_people())
        .await
        .unwrap();
    let mut clients = Vec::new();
    for role in NatsRole::ALL {
        clients.push((
            role,
            WireClient::connect(&server, &format!("tarsy-{}", role.as_str())).await,
        ));
    }
    println!(
        "{:32} {}",
        "",
        NatsRole::ALL
            .map(|role| format!("{:14}", role.as_str()))
            .concat()
    );
    let mut wrong = Vec::new();
    for Attempt {
        what,
        command,
        roles,
    } in attempts()
    {
        let mut row = format!("{what:32} ");
        for (role, client) in &mut clients {
            let may = match &command {
                Publish(subject) => {
                    client
                        .publish(&subject.replace("SESSION", SESSION), "{}")
                        .await
                }
                Subscribe(subject) => client.subscribe(subject).await,
            };
            row += &format!("{:14}", if may { "yes" } else { "-" });
            if may != roles.contains(letter(*role)) {
                wrong.push(format!(
                    "{} may {}{what}",
                    role.as_str(),
                    if may { "" } else { "not " }
                ));
            }
        }
        println!("{row}");
    }
    assert_eq!(wrong, Vec::<String>::new());
    // What was permitted has arrived, and nothing else: 17 alerts, 13 questions, 2 cancel requests (the stream keeps
    // the last one), one of each that only one role may.
    let jetstream = root_jetstream(&server).await;
    for (stream, messages) in [
        ("TARSY_ALERTS", 30),
        ("TARSY_TIMELINE", 1),
        ("TARSY_CONTROL", 1),
        ("TARSY_DEAD_LETTERS", 1),
        ("TARSY_PEOPLE", 8),
    ] {
        let stored = async || {
            jetstream
                .get_stream(stream)
                .await
                .unwrap()
                .cached_info()
                .state
                .messages
        };
        // A server stores a message a moment after it has answered the PING after it.
        eventually(stream, async || stored().await >= messages).await;
        assert_eq!(stored().await, messages, "{stream}");
    }
}

#[tokio::test]
async fn a_right_to_read_a_stream_is_a_right_to_store_its_messages_again() {
    // A server sends the messages that a client asks for to the reply subject of the request, without a check, and
    // the stream of that subject stores them. They keep their own subject, and an event counts only on that of its
    // session (`bus::timeline::wire`).
    let server = guarded().await;
    let root = as_root(&server).await;
    root.ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    let jetstream = root_jetstream(&server).await;
    jetstream
        .publish(format!("tarsy.timeline.{SESSION}"), "{}".into())
        .await
        .unwrap()
        .await
        .unwrap();
    let mut watcher = WireClient::connect(&server, "tarsy-watcher").await;
    let consumer = json!({"stream_name": "TARSY_TIMELINE", "config": {"name": "x", "filter_subject": "tarsy.timeline.*",
        "ack_policy": "none", "deliver_policy": "all", "mem_storage": true}});
    let create = "$JS.API.CONSUMER.CREATE.TARSY_TIMELINE.x.tarsy.timeline.*";
    assert!(
        watcher
            .publish_with_reply(create, "_INBOX_watch.1", &consumer.to_string())
            .await
    );
    let other = format!("tarsy.timeline.{}", Uuid::now_v7());
    assert!(
        !watcher.publish(&other, "{}").await,
        "it may not publish there itself"
    );
    let stored = async || {
        jetstream
            .get_stream("TARSY_TIMELINE")
            .await
            .unwrap()
            .cached_info()
            .state
            .messages
    };
    // The first requests may arrive before the server has made the consumer.
    eventually("the copy has arrived", async || {
        assert!(
            watcher
                .publish_with_reply("$JS.API.CONSUMER.MSG.NEXT.TARSY_TIMELINE.x", &other, "")
                .await
        );
        stored().await > 1
    })
    .await;
    let copy = jetstream
        .get_stream("TARSY_TIMELINE")
        .await
        .unwrap()
        .get_raw_message(2)
        .await
        .unwrap();
    assert_eq!(copy.subject.as_str(), format!("tarsy.timeline.{SESSION}"));
}

#[tokio::test]
async fn a_role_that_queues_alerts_can_have_an_acknowledgement_stored_anywhere() {
    // A server answers to the reply subject of a stored message without a check. It is no event: it has no signature.
    let server = guarded().await;
    as_root(&server)
        .await
        .ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    let jetstream = root_jetstream(&server).await;
    let mut stored = 0;
    for role in NatsRole::ALL {
        let mut client = WireClient::connect(&server, &format!("tarsy-{}", role.as_str())).await;
        let subject = if role == NatsRole::Web {
            "tarsy.alerts.low.web"
        } else {
            "tarsy.alerts.low"
        };
        let reply = format!("tarsy.timeline.{}", Uuid::now_v7());
        stored += u64::from(client.publish_with_reply(subject, &reply, "{}").await);
        let messages = async || {
            jetstream
                .get_stream("TARSY_TIMELINE")
                .await
                .unwrap()
                .cached_info()
                .state
                .messages
        };
        eventually(role.as_str(), async || messages().await == stored).await;
    }
    assert_eq!(
        stored, 5,
        "every role but watcher, slack and decider queues alerts"
    );
}

#[tokio::test]
async fn users_with_jwts_have_the_permissions_of_their_role() {
    let operator = Operator::new();
    let server = NatsServer::start_with(&operator.settings()).await;
    let directory = tempfile::tempdir().unwrap();
    for role in NatsRole::ALL {
        let file = directory.path().join(role.as_str());
        let permissions =
            json!({"pub": {"allow": role.publish()}, "sub": {"allow": role.subscribe()}});
        operator.write_user(&file, role.as_str(), &permissions);
        let secret =
            Secret::file_of("NATS_CREDS_FILE", &|_| Some(file.display().to_string())).unwrap();
        let login = tarsy_bus::LoginSource::Credentials(secret);
        let nats = connect(
            server.url(),
            NatsCredentials {
                login,
                ..NatsCredentials::default()
            },
        )
        .await;
        let fit = role.fit(&nats.granted().await.unwrap());
        assert_eq!(
            (fit.missing, fit.extra),
            (Vec::new(), Vec::new()),
            "{role:?}"
        );
    }
}
