//! E-mail of real workers: threads, a lost answer, a refusal, the commands.

use std::sync::atomic::{AtomicUsize, Ordering};

use tarsy_core::notification::MAY_REPEAT;

use super::{closed, system};
use crate::support::process::metric_is;
use crate::support::smtp::{Answer, Line, MailServer, Offer};

fn route(server: &MailServer) -> String {
    format!(
        "  mail:\n    kind: email\n    smtp: {{host: localhost, port: {}, tls: none}}\n    \
         from: tarsy <tarsy@example.com>\n    to: [ops@example.com]\n    when: [started, ended]\n    timeout: 5s\n",
        server.port
    )
}

async fn plain(decide: impl Fn(&Line) -> Answer + Send + Sync + 'static) -> MailServer {
    MailServer::start(Offer::Plain, decide).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_e_mails_of_a_session_are_one_thread_and_come_once() {
    let server = plain(|_| Answer::Usual).await;
    let system = system(&route(&server)).await;
    let (_worker, metrics) = system.worker("w1").await;
    let session = system.publish().await;
    assert_eq!(closed(&system, 2).await, "sent 2");
    let mails = server.mails();
    let [started, ended] = &mails[..] else {
        panic!("{mails:?}")
    };
    assert_eq!(ended.header("References"), started.header("Message-ID"));
    assert_eq!(ended.header("In-Reply-To"), started.header("Message-ID"));
    let subject = started.header("Subject").unwrap();
    assert_eq!(ended.header("Subject"), Some(format!("Re: {subject}")));
    let text = ended.parsed()["parts"]["text/plain"].to_string();
    assert!(
        text.contains(&format!("https://tarsy.example.com/sessions/{session}")),
        "{text}"
    );
    metric_is(
        &metrics,
        "tarsy_notifications_total",
        "{kind=\"email\",outcome=\"sent\"}",
        2.0,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_e_mail_whose_answer_got_lost_comes_again_with_its_id_and_a_remark() {
    let server = plain(|line| {
        if line.is(".") && line.messages == 0 {
            Answer::Close
        } else {
            Answer::Usual
        }
    })
    .await;
    let system = system(&route(&server).replace("[started, ended]", "[ended]")).await;
    let (worker, _) = system.worker("w1").await;
    system.publish().await;
    assert_eq!(closed(&system, 1).await, "sent 1");
    worker.logged("no answer to the message").await;
    let mails = server.mails();
    let [first, second] = &mails[..] else {
        panic!("{mails:?}")
    };
    assert_eq!(first.header("Message-ID"), second.header("Message-ID"));
    let has_remark =
        [first, second].map(|mail| mail.parsed()["parts"].to_string().contains(MAY_REPEAT));
    assert_eq!(has_remark, [false, true]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_e_mail_that_is_refused_comes_later_or_is_given_up_with_the_answer() {
    let attempts = AtomicUsize::new(0);
    let busy = plain(move |line| {
        if line.is("MAIL") && attempts.fetch_add(1, Ordering::SeqCst) == 0 {
            Answer::text("451 4.3.2 not now")
        } else {
            Answer::Usual
        }
    })
    .await;
    let strict = plain(|line| {
        if line.is("RCPT") {
            Answer::text("550 5.1.1 unknown")
        } else {
            Answer::Usual
        }
    })
    .await;
    let routes = format!(
        "{}{}",
        route(&busy),
        route(&strict).replace("  mail:", "  strict:")
    );
    let system = system(&routes.replace("[started, ended]", "[ended]")).await;
    let (worker, _) = system.worker("w1").await;
    system.publish().await;
    assert_eq!(closed(&system, 2).await, "given_up 1, sent 1");
    worker
        .logged("notification not sent yet: SMTP 451 to the sender: 4.3.2 not now")
        .await;
    let mails = busy.mails();
    let text = mails[0].parsed()["parts"].to_string();
    assert!(mails.len() == 1 && !text.contains(MAY_REPEAT), "{mails:?}");
    assert_eq!(
        system
            .database
            .text("SELECT reason FROM notifications WHERE outcome = 'given_up'"),
        "ops@example.com: SMTP 550 to a recipient: 5.1.1 unknown"
    );
    assert!(strict.mails().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_of_e_mail_is_tried_and_checked_without_an_investigation() {
    let server = plain(|_| Answer::Usual).await;
    let system = system(&route(&server)).await;
    let mut test = system.tarsy("notify", &["notify", "test", "mail"]);
    let finished = test.finished().await;
    assert_eq!(finished.0, 0, "{} {}", finished.1, test.log());
    assert!(
        finished.1.contains("mail (email) has taken the message"),
        "{}",
        finished.1
    );
    let subject = server.mails()[0].header("Subject").unwrap();
    assert_eq!(
        subject,
        "[tarsy] A test of this route: no alert, no investigation"
    );
    let mut doctor = system.tarsy("doctor", &["doctor", "--no-probe"]);
    let checks = doctor.finished().await.1;
    assert!(
        checks.contains("notify mail") && checks.contains("email, reachable"),
        "{checks}"
    );
    assert_eq!(server.mails().len(), 1, "a check sends no message");
}
