//! E-mail to a real mail server: protections, logins, each answer, and hostile texts.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use data_encoding::BASE64;
use tarsy_config::Config;
use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_core::notification::summary::{Outcome, Summary};
use tarsy_core::notification::{MAY_REPEAT, Moment, Notification, NotificationKey};
use tarsy_engine::ports::{Arrival, Notifier as _, ProviderAnswer};
use tarsy_mask::Mask;
use tarsy_notifications::Routes;
use uuid::Uuid;

use crate::support::certificates::localhost_tls;
use crate::support::smtp::{Answer, Line, MailServer, Offer};

const PASSWORD: &str = "correct-h0rse-battery";

/// Routes with one of e-mail, whose password is in a file.
struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("password"), format!("{PASSWORD}\n")).unwrap();
        Self { folder }
    }

    fn login(&self) -> String {
        let file = self.folder.path().join("password");
        format!(", username: tarsy, password_file: {}", file.display())
    }

    /// The offer of TLS, and the key that trusts it.
    fn tls(&self, offer: fn(tokio_rustls::TlsAcceptor) -> Offer) -> Tls {
        let signed = localhost_tls(self.folder.path());
        Tls {
            offer: offer(signed.0),
            trust: format!(", ca_file: {}", signed.1.display()),
        }
    }
}

struct Tls {
    offer: Offer,
    trust: String,
}

fn routes(smtp: &str) -> Routes {
    let section = format!(
        "notifications:\n  mail: {{kind: email, smtp: {{{smtp}}}, from: Tarsy <tarsy@example.com>, \
         to: [ops@example.com, oc@example.com], timeout: 2s}}\n"
    );
    let config = Config::parse("f", &section, &|_| None).unwrap();
    Routes::new(config.notifications, Mask::default())
}

fn message() -> Notification {
    let session = SessionId(Uuid::now_v7());
    let ended_at = Utc::now();
    Notification {
        key: NotificationKey {
            session,
            route: "mail".to_owned(),
            moment: Moment::Ended,
            request: None,
        },
        about: session,
        summary: Summary {
            title: "PodOOMKilled web-0".to_owned(),
            severity: Some(Severity::Critical),
            outcome: Some(Outcome::Completed),
            analysis: Some(
                "Cause: the limit is *too* low, größer als gedacht [5]\n\n.\n\n..x".to_owned(),
            ),
            began_at: Some(ended_at - TimeDelta::seconds(7)),
            ended_at: Some(ended_at),
            ..Summary::default()
        },
        url: Some(format!("https://tarsy.example.com/sessions/{session}")),
        template: None,
        may_repeat: false,
        stays_in_thread: false,
    }
}

/// The words of each client, for an assertion.
fn words(server: &MailServer) -> String {
    let lines = server.lines();
    let words = lines.iter().map(|line| {
        let word = line.text.split(' ').next().unwrap_or_default();
        let mark = if line.is_encrypted { "*" } else { "" };
        format!("{word}{mark}")
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Sends one message to a server that decides so, without TLS.
async fn answered(decide: impl Fn(&Line) -> Answer + Send + Sync + 'static) -> ProviderAnswer {
    let fixture = Fixture::new();
    let server = MailServer::start(Offer::Plain, decide).await;
    let login = fixture.login();
    let routes = routes(&format!(
        "host: localhost, port: {}, tls: none{login}",
        server.port
    ));
    routes.send(message(), None).await
}

fn refused(reason: &str) -> ProviderAnswer {
    unavailable(reason, Arrival::Refused)
}

fn unavailable(reason: &str, arrival: Arrival) -> ProviderAnswer {
    ProviderAnswer::Unavailable {
        reason: reason.to_owned(),
        retry_after: None,
        arrival,
    }
}

#[tokio::test]
async fn an_e_mail_arrives_as_it_was_written_over_each_protection() {
    let fixture = Fixture::new();
    let starttls = fixture.tls(Offer::Starttls);
    let of_starttls = MailServer::accepting(starttls.offer).await;
    let by_starttls = format!("tls: starttls{}", starttls.trust);
    let other = Fixture::new();
    let required = other.tls(Offer::Tls);
    let of_tls = MailServer::accepting(required.offer).await;
    let by_tls = format!("tls: required{}", required.trust);
    let of_plain = MailServer::accepting(Offer::Plain).await;

    for (server, protection, expected) in [
        (
            &of_starttls,
            by_starttls.as_str(),
            "EHLO STARTTLS EHLO* AUTH* MAIL* RCPT* RCPT* DATA* QUIT*",
        ),
        (
            &of_tls,
            by_tls.as_str(),
            "EHLO* AUTH* MAIL* RCPT* RCPT* DATA* QUIT*",
        ),
        (&of_plain, "tls: none", "EHLO AUTH MAIL RCPT RCPT DATA QUIT"),
    ] {
        let login = fixture.login();
        let routes = routes(&format!(
            "host: localhost, port: {}, {protection}{login}",
            server.port
        ));
        assert_eq!(routes.check("mail").await, Ok(()));
        assert!(server.mails().is_empty());
        let checked = words(server);
        let message = message();
        let id = format!("<{}@example.com>", message.key.id());
        let url = message.url.clone().unwrap();
        let receipt = Some(id.clone());
        assert_eq!(
            routes.send(message, None).await,
            ProviderAnswer::Accepted { receipt }
        );
        assert_eq!(words(server), format!("{checked} {expected}"));
        let auth = server
            .lines()
            .into_iter()
            .find(|line| line.is("AUTH"))
            .unwrap();
        let plain = BASE64.encode(format!("\0tarsy\0{PASSWORD}").as_bytes());
        assert_eq!(auth.text, format!("AUTH PLAIN {plain}"));

        let mails = server.mails();
        let [mail] = &mails[..] else {
            panic!("{mails:?}")
        };
        assert_eq!(mail.from, "tarsy@example.com");
        assert_eq!(mail.to, ["ops@example.com", "oc@example.com"]);
        let parsed = mail.parsed();
        assert_eq!(parsed["defects"], serde_json::json!([]), "{}", mail.raw);
        assert_eq!(mail.header("Message-ID"), Some(id));
        assert_eq!(
            mail.header("Auto-Submitted").as_deref(),
            Some("auto-generated")
        );
        assert_eq!(
            mail.header("Subject").as_deref(),
            Some("[tarsy] PodOOMKilled web-0")
        );
        let text = parsed["parts"]["text/plain"].as_str().unwrap();
        assert!(
            text.contains("größer als gedacht (event 5)\n\n.\n\n..x\n"),
            "{text}"
        );
        assert!(text.contains(&format!("All steps: {url}")), "{text}");
        let html = parsed["parts"]["text/html"].as_str().unwrap();
        assert!(html.contains("limit is <em>too</em> low"), "{html}");
        assert!(
            html.contains(&format!("<a href=\"{url}\">{url}</a>")),
            "{html}"
        );
    }
}

#[tokio::test]
async fn a_server_without_the_wanted_tls_gets_neither_password_nor_message() {
    let fixture = Fixture::new();
    let login = fixture.login();
    let plain = MailServer::accepting(Offer::Plain).await;
    let starttls = routes(&format!("host: localhost, port: {}{login}", plain.port));
    let expected = refused("the server offers no STARTTLS");
    assert_eq!(starttls.send(message(), None).await, expected);
    assert_eq!(
        starttls.check("mail").await,
        Err("the server offers no STARTTLS".to_owned())
    );
    let required = routes(&format!(
        "host: localhost, port: {}, tls: required{login}",
        plain.port
    ));
    let answer = required.send(message(), None).await;
    assert!(
        matches!(
            &answer,
            ProviderAnswer::Unavailable {
                arrival: Arrival::Refused,
                ..
            }
        ),
        "{answer:?}"
    );
    // A certificate of an authority that this machine does not know.
    let tls = fixture.tls(Offer::Starttls);
    let unknown = MailServer::accepting(tls.offer).await;
    let untrusted = routes(&format!("host: localhost, port: {}{login}", unknown.port));
    let answer = untrusted.send(message(), None).await;
    let ProviderAnswer::Unavailable {
        reason,
        arrival: Arrival::Refused,
        ..
    } = answer
    else {
        panic!("{answer:?}")
    };
    assert!(reason.contains("certificate"), "{reason}");
    assert_eq!(words(&unknown), "EHLO STARTTLS");
    let lines = plain.lines();
    assert!(
        lines
            .iter()
            .all(|line| !line.is("AUTH") && !line.is("MAIL")),
        "{lines:?}"
    );
}

#[tokio::test]
async fn an_answer_that_is_added_before_tls_is_not_believed() {
    let fixture = Fixture::new();
    let tls = fixture.tls(Offer::Starttls);
    let server = MailServer::start(tls.offer, |line| {
        if line.is("STARTTLS") {
            Answer::text("220 go ahead\r\n250-evil.example.com\r\n250 AUTH PLAIN")
        } else {
            Answer::Usual
        }
    })
    .await;
    let trust = tls.trust;
    let login = fixture.login();
    let routes = routes(&format!(
        "host: localhost, port: {}{trust}{login}",
        server.port
    ));
    let answer = routes.send(message(), None).await;
    assert!(
        matches!(
            &answer,
            ProviderAnswer::Unavailable {
                arrival: Arrival::Refused,
                ..
            }
        ),
        "{answer:?}"
    );
    assert_eq!(words(&server), "EHLO STARTTLS");
}

#[tokio::test]
async fn without_tls_no_other_machine_is_reached_with_a_password() {
    // `localhost` may be another machine by the file of hosts; an address of documentation stands for it.
    let fixture = Fixture::new();
    let login = fixture.login();
    let section = |smtp: &str| {
        format!(
            "notifications: {{mail: {{kind: email, smtp: {{{smtp}}}, from: a@b.example, to: [c@d.example]}}}}"
        )
    };
    let mut config = Config::parse(
        "f",
        &section(&format!(
            "host: localhost, tls: none, allow_plaintext: true{login}"
        )),
        &|_| None,
    )
    .unwrap();
    let route = config.notifications.get_mut("mail").unwrap();
    let tarsy_config::RouteKind::Email(email) = &mut route.kind else {
        panic!("{route:?}")
    };
    email.smtp.host = "192.0.2.1".to_owned();
    let routes = Routes::new(config.notifications, Mask::default());
    let expected = refused("192.0.2.1 is not this machine, and tls is none");
    assert_eq!(routes.send(message(), None).await, expected);
}

#[tokio::test]
async fn a_metadata_service_is_not_reached() {
    for host in [
        "169.254.169.254",
        "'fd00:ec2::254'",
        "'::ffff:169.254.169.254'",
    ] {
        let answer = routes(&format!("host: {host}")).send(message(), None).await;
        let ProviderAnswer::Unavailable { reason, .. } = answer else {
            panic!("{answer:?}")
        };
        assert!(
            reason.ends_with("one of a metadata service, which is refused"),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn each_answer_before_the_content_says_what_is_next() {
    let rejected = |reason: &str| ProviderAnswer::Rejected {
        reason: reason.to_owned(),
    };
    for (word, answer, expected) in [
        (
            "",
            "421 too busy",
            refused("SMTP 421 to the connection: too busy"),
        ),
        (
            "",
            "554 no service",
            refused("SMTP 554 to the connection: no service"),
        ),
        ("AUTH", "535 wrong", refused("SMTP 535 to the login: wrong")),
        ("AUTH", "454 later", refused("SMTP 454 to the login: later")),
        (
            "MAIL",
            "530 log in first",
            refused("SMTP 530 to the sender: log in first"),
        ),
        (
            "MAIL",
            "550 not you",
            rejected("SMTP 550 to the sender: not you"),
        ),
        (
            "MAIL",
            "451 later",
            refused("SMTP 451 to the sender: later"),
        ),
        (
            "RCPT TO:<OC",
            "450-4.7.1 later\r\n450 4.7.1 please",
            refused("SMTP 450 to a recipient: 4.7.1 later please"),
        ),
        (
            "RCPT",
            "550 no\u{1b}[31m such user",
            rejected(
                "ops@example.com: SMTP 550 to a recipient: no such user; \
                 oc@example.com: SMTP 550 to a recipient: no such user",
            ),
        ),
        ("DATA", "452 full", refused("SMTP 452 to DATA: full")),
        ("DATA", "554 no", rejected("SMTP 554 to DATA: no")),
        ("DATA", "250 what", refused("SMTP 250 to DATA")),
        (".", "451 later", refused("SMTP 451 to the message: later")),
        (
            ".",
            "552 too big",
            rejected("SMTP 552 to the message: too big"),
        ),
    ] {
        let text = answer.to_owned();
        let found = answered(move |line| {
            // The greeting is the answer to an empty line.
            let is_meant = if word.is_empty() {
                line.text.is_empty()
            } else {
                line.is(word)
            };
            if is_meant {
                Answer::Text(text.clone())
            } else {
                Answer::Usual
            }
        })
        .await;
        assert_eq!(found, expected, "{word}: {answer}");
    }
}

#[tokio::test]
async fn only_a_lost_answer_to_the_content_is_in_doubt() {
    for (word, arrival) in [
        ("EHLO", Arrival::Refused),
        ("AUTH", Arrival::Refused),
        ("RCPT", Arrival::Refused),
        ("DATA", Arrival::Refused),
        (".", Arrival::Unknown),
    ] {
        for fault in [Answer::Close, Answer::Hang] {
            let of_server = fault.clone();
            let answer = answered(move |line| {
                if line.is(word) {
                    of_server.clone()
                } else {
                    Answer::Usual
                }
            })
            .await;
            let ProviderAnswer::Unavailable {
                reason,
                arrival: found,
                ..
            } = answer
            else {
                panic!("{answer:?}")
            };
            assert_eq!(found, arrival, "{word} {fault:?}: {reason}");
            let is_late = reason == "no answer within 2 s";
            assert_eq!(is_late, matches!(fault, Answer::Hang), "{reason}");
        }
    }
}

#[tokio::test]
async fn a_farewell_without_an_answer_changes_nothing() {
    let begun = std::time::Instant::now();
    let answer = answered(|line| {
        if line.is("QUIT") {
            Answer::Hang
        } else {
            Answer::Usual
        }
    })
    .await;
    assert!(
        matches!(answer, ProviderAnswer::Accepted { .. }),
        "{answer:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_refused_recipient_is_reported_and_the_others_get_the_message() {
    let server = MailServer::start(Offer::Plain, |line| {
        if line.is("RCPT TO:<OPS") {
            Answer::text("550 5.1.1 unknown")
        } else {
            Answer::Usual
        }
    })
    .await;
    let routes = routes(&format!(
        "host: localhost, port: {}, tls: none",
        server.port
    ));
    let reason = "sent, but not to 1 of 2 recipients: ops@example.com: SMTP 550 to a recipient: 5.1.1 unknown";
    let reason = reason.to_owned();
    assert_eq!(
        routes.send(message(), None).await,
        ProviderAnswer::Rejected { reason }
    );
    let mails = server.mails();
    assert_eq!(
        (mails.len(), &mails[0].to),
        (1, &vec!["oc@example.com".to_owned()])
    );
}

#[tokio::test]
async fn a_server_that_repeats_the_password_puts_it_into_no_reason() {
    let answer = answered(|line| {
        if line.is("AUTH") {
            Answer::Text(format!("535 no: {} {PASSWORD}", line.text))
        } else {
            Answer::Usual
        }
    })
    .await;
    let expected = refused("SMTP 535 to the login: no: AUTH PLAIN [masked] [masked]");
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn a_repetition_has_the_id_of_the_first_attempt_and_a_reply_its_thread() {
    let server = MailServer::accepting(Offer::Plain).await;
    let routes = routes(&format!(
        "host: localhost, port: {}, tls: none",
        server.port
    ));
    let once = message();
    let again = Notification {
        may_repeat: true,
        ..once.clone()
    };
    let first = "<0195a2b3-0000-7000-8000-000000000001@example.com>".to_owned();
    routes.send(once, None).await;
    routes.send(again, Some(first.clone())).await;
    let mails = server.mails();
    let ids: Vec<_> = mails.iter().map(|mail| mail.header("Message-ID")).collect();
    assert_eq!(ids[0], ids[1]);
    let has_remark = |part: usize| {
        let parts = mails[part].parsed()["parts"].clone();
        let kinds = ["text/plain", "text/html"];
        kinds.map(|kind| parts[kind].as_str().unwrap().contains(MAY_REPEAT))
    };
    assert_eq!([has_remark(0), has_remark(1)], [[false; 2], [true; 2]]);
    assert_eq!(mails[0].header("References"), None);
    assert_eq!(mails[1].header("References"), Some(first.clone()));
    assert_eq!(mails[1].header("In-Reply-To"), Some(first));
}

#[tokio::test]
async fn hostile_texts_change_no_header_no_part_and_no_command() {
    let server = MailServer::accepting(Offer::Plain).await;
    let routes = routes(&format!(
        "host: localhost, port: {}, tls: none",
        server.port
    ));
    let hostile = [
        "harmless",
        "a\r\nBcc: evil@example.com\r\n\r\nbody",
        "\r\n.\r\nMAIL FROM:<evil@example.com>\r\nRCPT TO:<evil@example.com>\r\nDATA\r\n",
        "x\n.\nQUIT\n",
        "=?utf-8?q?=0D=0ABcc:_evil@example.com?=",
        "<script>alert(1)</script><img src=x onerror=y>",
        "\u{202e}\u{0}\u{2028}\u{85}\u{b}\u{c}",
    ];
    for text in hostile {
        let mut message = message();
        message.summary.title = text.to_owned();
        message.summary.chain = Some(text.to_owned());
        message.summary.analysis = Some(format!("Cause: {text}\n\n{text}\n"));
        let answer = routes.send(message, None).await;
        assert!(
            matches!(answer, ProviderAnswer::Accepted { .. }),
            "{answer:?}"
        );
    }
    let mails = server.mails();
    assert_eq!(mails.len(), hostile.len());
    let structure = |index: usize| {
        let parsed = mails[index].parsed();
        assert_eq!(
            parsed["defects"],
            serde_json::json!([]),
            "{}",
            mails[index].raw
        );
        let headers = parsed["headers"].as_array().unwrap();
        let names: Vec<String> = headers.iter().map(|header| header[0].to_string()).collect();
        let html = parsed["parts"]["text/html"].as_str().unwrap();
        assert!(
            !html.contains("<script") && !html.contains("<img"),
            "{html}"
        );
        let parts: Vec<String> = parsed["parts"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        (names, parts, mails[index].to.clone())
    };
    for (index, value) in hostile.iter().enumerate() {
        assert_eq!(structure(index), structure(0), "{value}");
    }
    let each = "EHLO MAIL RCPT RCPT DATA QUIT";
    assert_eq!(words(&server), [each].repeat(hostile.len()).join(" "));
}
