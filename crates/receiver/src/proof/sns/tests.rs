//! Messages that are signed with a certificate of a private authority, which a server on loopback has.

use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use data_encoding::BASE64;
use hyper::HeaderMap;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use tarsy_http::outgoing;

const RSA_KEY: &str = include_str!("../../../../../tests/fixtures/google/account.pem");
const HOST: &str = "sns.eu-central-1.amazonaws.com";
const ARN: &str = "arn:aws:sns:eu-central-1:123456789012:alarms";
const CERTIFICATE: &str = "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem";
const NOW: &str = "2026-11-25T10:00:00.000Z";

/// SNS on loopback, with a client that connects to it.
struct FakeSns {
    requests: Arc<Mutex<Vec<String>>>,
    certificates: Arc<Certificates>,
    _serving: AbortOnDropHandle<()>,
}

impl FakeSns {
    /// Serves a certificate that is valid until this year.
    async fn start_until(year: i32) -> Self {
        let mut params = CertificateParams::new(vec!["sns.amazonaws.com".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let signing = params
            .self_signed(&KeyPair::from_pem(RSA_KEY).unwrap())
            .unwrap()
            .pem();
        Self::start(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{signing}",
            signing.len()
        ))
        .await
    }

    /// Answers a request for the certificate with this text.
    async fn start(certificate: String) -> Self {
        drop(outgoing::builder()); // installs the provider of cryptography
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec![HOST.to_owned()])
            .unwrap()
            .signed_by(&key, &*authority)
            .unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = rustls::ServerConfig::builder().with_no_client_auth();
        let config = config
            .with_single_cert(vec![server.der().clone()], key)
            .unwrap();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let serving = tokio::spawn(serve(
            listener,
            Arc::new(config).into(),
            certificate,
            Arc::clone(&requests),
        ));
        let root = reqwest::Certificate::from_pem(authority.pem().as_bytes()).unwrap();
        let certificates = Arc::new(Certificates::new(client(address, root)));
        Self {
            requests,
            certificates,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    fn proof(&self, confirm: Confirm) -> Sns {
        let topics = vec![Topic::parse(ARN).unwrap()];
        Sns {
            topics,
            confirm,
            certificates: Arc::clone(&self.certificates),
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

/// As the client outside tests; only the address and the authority of SNS are others.
fn client(address: SocketAddr, root: reqwest::Certificate) -> Client {
    let builder = outgoing::builder()
        .timeout(std::time::Duration::from_secs(5))
        .https_only(true)
        .no_proxy();
    builder
        .resolve(HOST, address)
        .tls_certs_only([root])
        .build()
        .unwrap()
}

async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    certificate: String,
    requests: Arc<Mutex<Vec<String>>>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(stream) = tls.accept(stream).await else {
            continue;
        };
        answer(stream, &certificate, &requests).await;
    }
}

async fn answer(stream: TlsStream<TcpStream>, certificate: &str, requests: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream
            .read_until(b'\n', &mut head)
            .await
            .unwrap_or_default()
            == 0
        {
            return;
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let answer = if path.starts_with("/SimpleNotificationService-") {
        certificate
    } else {
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    };
    requests.lock().push(path);
    stream.get_mut().write_all(answer.as_bytes()).await.ok();
    stream.get_mut().shutdown().await.ok();
}

fn notification() -> Value {
    json!({
        "Type": "Notification", "MessageId": "m-1", "TopicArn": ARN, "Subject": "ALARM: cpu",
        "Message": "{\"AlarmName\": \"cpu\", \"NewStateValue\": \"ALARM\"}", "Timestamp": NOW,
        "UnsubscribeURL": "https://unsubscribe.example.com/",
    })
}

fn confirmation() -> Value {
    json!({
        "Type": "SubscriptionConfirmation", "MessageId": "m-2", "TopicArn": ARN, "Token": "2336412f37",
        "Message": "You have chosen to subscribe", "SubscribeURL": "https://evil.example.com/", "Timestamp": NOW,
    })
}

/// Signs the message as SNS does.
fn signed(mut message: Value) -> Value {
    message["SignatureVersion"] = "2".into();
    message["SigningCertURL"] = format!("https://{HOST}{CERTIFICATE}").into();
    message["Signature"] = "".into();
    let canonical = Message::parse(message.to_string().as_bytes())
        .unwrap()
        .canonical;
    let key = PrivatePkcs8KeyDer::from_pem_slice(RSA_KEY.as_bytes()).unwrap();
    let key = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap();
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        canonical.as_bytes(),
        &mut signature,
    )
    .unwrap();
    message["Signature"] = BASE64.encode(&signature).into();
    message
}

/// The outcome at a time in minutes after that of the messages.
async fn checked_at(proof: &Sns, message: &Value, minutes: i64) -> Result<Proven, Rejection> {
    let now = DateTime::parse_from_rfc3339(NOW)
        .unwrap()
        .with_timezone(&Utc)
        + TimeDelta::minutes(minutes);
    checked_from(proof, message, [10, 0, 0, 1], now).await
}

async fn checked_from(
    proof: &Sns,
    message: &Value,
    sender: [u8; 4],
    now: DateTime<Utc>,
) -> Result<Proven, Rejection> {
    let headers = HeaderMap::new();
    let body = message.to_string();
    let body = body.as_bytes();
    let sender = sender.into();
    proof
        .check(Signed {
            source: "cloudwatch",
            headers: &headers,
            body,
            sender,
            now,
        })
        .await
}

fn forged(number: u32) -> Value {
    let mut forged = signed(notification());
    forged["SigningCertURL"] =
        format!("https://{HOST}/SimpleNotificationService-{number:032x}.pem").into();
    forged["Message"] = "forged".into();
    forged
}

async fn checked(proof: &Sns, message: &Value) -> Result<Proven, Rejection> {
    checked_at(proof, message, 0).await
}

fn unproven(outcome: Result<Proven, Rejection>) -> String {
    match outcome {
        Err(Rejection::Unproven(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_repeated_message_has_the_same_id_and_its_certificate_is_requested_once() {
    let sns = FakeSns::start_until(2100).await;
    let proof = sns.proof(Confirm::ByHand);
    let message = signed(notification());
    let Ok(Proven::Alert(Some(first))) = checked(&proof, &message).await else {
        panic!("refused")
    };
    assert_eq!(
        checked_at(&proof, &message, 59).await,
        Ok(Proven::Alert(Some(first)))
    );
    let mut other = notification();
    other["MessageId"] = "m-9".into();
    let Ok(Proven::Alert(Some(second))) = checked(&proof, &signed(other)).await else {
        panic!("refused")
    };
    assert_ne!(first, second);
    assert_eq!(sns.requests(), [CERTIFICATE]);
}

#[tokio::test]
async fn a_message_that_was_changed_or_comes_late_is_refused() {
    let sns = FakeSns::start_until(2100).await;
    let proof = sns.proof(Confirm::AtOnce);
    let message = signed(notification());
    for (field, value) in [
        (
            "Message",
            "{\"AlarmName\": \"cpv\", \"NewStateValue\": \"ALARM\"}",
        ),
        ("MessageId", "m-3"),
        ("Subject", "ALARM: cpv"),
        ("Timestamp", "2026-11-25T10:00:01.000Z"),
    ] {
        let mut changed = message.clone();
        changed[field] = value.into();
        assert!(
            unproven(checked(&proof, &changed).await).contains("does not belong"),
            "{field}"
        );
    }
    let mut confirmation = signed(confirmation());
    confirmation["Token"] = "2336412f38".into();
    assert!(unproven(checked(&proof, &confirmation).await).contains("does not belong"));
    for minutes in [61, -6] {
        assert!(
            unproven(checked_at(&proof, &message, minutes).await).contains("older than an hour")
        );
    }
    assert_eq!(
        sns.requests(),
        [CERTIFICATE],
        "a forged confirmation confirms nothing"
    );
}

#[tokio::test]
async fn a_forged_message_leads_to_no_connection() {
    let sns = FakeSns::start_until(2100).await;
    let proof = sns.proof(Confirm::AtOnce);
    let foreign = ARN.replace("123456789012", "210987654321");
    for (field, value) in [
        ("TopicArn", foreign.as_str()),
        (
            "SigningCertURL",
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem",
        ),
        (
            "SigningCertURL",
            "https://sns.s3.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem",
        ),
        ("SigningCertURL", "https://evil.example.com/x.pem"),
        ("SignatureVersion", "1"),
        ("Timestamp", "2026-11-25T08:00:00.000Z"),
    ] {
        let mut forged = signed(confirmation());
        forged[field] = value.into();
        unproven(checked(&proof, &forged).await);
    }
    assert_eq!(sns.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn only_a_signed_confirmation_is_confirmed_and_at_the_configured_topic() {
    let sns = FakeSns::start_until(2100).await;
    let message = signed(confirmation());
    let Ok(Proven::Control(reason)) = checked(&sns.proof(Confirm::ByHand), &message).await else {
        panic!("refused")
    };
    assert!(reason.contains("not confirmed"), "{reason}");
    assert_eq!(sns.requests(), [CERTIFICATE], "by hand");
    let Ok(Proven::Control(reason)) = checked(&sns.proof(Confirm::AtOnce), &message).await else {
        panic!("refused")
    };
    assert_eq!(reason, "the subscription is confirmed");
    let confirmed = "/?Action=ConfirmSubscription&TopicArn=arn%3Aaws%3Asns%3Aeu-central-1%3A123456789012%3Aalarms\
                     &Token=2336412f37";
    assert_eq!(sns.requests(), [CERTIFICATE, confirmed]);
    let mut injected = confirmation();
    injected["Token"] = "x&Action=Publish".into();
    assert!(
        unproven(checked(&sns.proof(Confirm::AtOnce), &signed(injected)).await)
            .contains("letters and digits")
    );
    let mut ended = confirmation();
    ended["Type"] = "UnsubscribeConfirmation".into();
    let Ok(Proven::Control(reason)) = checked(&sns.proof(Confirm::AtOnce), &signed(ended)).await
    else {
        panic!()
    };
    assert!(reason.contains("ended"), "{reason}");
    assert_eq!(sns.requests().len(), 2);
}

#[tokio::test]
async fn a_certificate_that_has_ended_or_cannot_be_read_proves_nothing() {
    let message = signed(notification());
    let ended = FakeSns::start_until(2026).await;
    assert!(unproven(checked(&ended.proof(Confirm::ByHand), &message).await).contains("Expired"));
    let large = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 20000\r\n\r\n{}",
        "x".repeat(20_000)
    );
    for answer in [
        "HTTP/1.1 302 Found\r\nlocation: https://evil.example.com/\r\ncontent-length: 0\r\n\r\n"
            .to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno".to_owned(),
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
        large,
    ] {
        let sns = FakeSns::start(answer.clone()).await;
        let outcome = checked(&sns.proof(Confirm::ByHand), &message).await;
        assert!(
            matches!(outcome, Err(Rejection::Unavailable { .. })),
            "{answer:.30}: {outcome:?}"
        );
        assert_eq!(sns.requests(), [CERTIFICATE]);
    }
}

#[tokio::test]
async fn forged_certificate_addresses_lead_to_a_bounded_number_of_requests() {
    let sns =
        FakeSns::start("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let proof = sns.proof(Confirm::ByHand);
    let now = DateTime::parse_from_rfc3339(NOW)
        .unwrap()
        .with_timezone(&Utc);
    for sender in 1..10 {
        for number in 0..20 {
            let outcome = checked_from(&proof, &forged(number), [10, 0, 1, sender], now).await;
            assert!(matches!(outcome, Err(Rejection::Unavailable { .. })));
        }
        assert_eq!(sns.requests().len(), usize::from(10 * sender.min(6)));
    }
}

#[tokio::test]
async fn a_sender_of_forged_messages_uses_up_its_own_requests_only() {
    let sns = FakeSns::start_until(2036).await;
    let proof = sns.proof(Confirm::ByHand);
    for number in 0..20 {
        let outcome = checked(&proof, &forged(number)).await;
        let is_last = matches!(outcome, Err(Rejection::Unavailable { .. }));
        assert_eq!(is_last, number >= 10, "{number}: {outcome:?}");
    }
    let now = DateTime::parse_from_rfc3339(NOW)
        .unwrap()
        .with_timezone(&Utc);
    let honest = signed(notification());
    assert!(
        checked_from(&proof, &honest, [10, 0, 0, 2], now)
            .await
            .is_ok()
    );
    assert!(
        checked(&proof, &honest).await.is_ok(),
        "its certificate is known now"
    );
}

#[tokio::test]
async fn a_certificate_that_cannot_be_read_again_is_used_for_a_week() {
    let sns = FakeSns::start_until(2036).await;
    let proof = sns.proof(Confirm::ByHand);
    let honest = signed(notification());
    assert!(checked(&proof, &honest).await.is_ok());
    drop(sns);
    tokio::time::pause();
    let after = async |hours| tokio::time::advance(std::time::Duration::from_hours(hours)).await;
    for hours in [25, 5 * 24] {
        after(hours).await;
        assert!(checked(&proof, &honest).await.is_ok(), "{hours}");
    }
    after(48).await;
    assert!(matches!(
        checked(&proof, &honest).await,
        Err(Rejection::Unavailable { .. })
    ));
}
