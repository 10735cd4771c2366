//! Messages of Amazon SNS, with the real program. The test is the proxy through which it reaches SNS.

use std::path::Path;
use std::sync::{Arc, Mutex};

use chrono::{TimeDelta, Utc};
use data_encoding::BASE64;
use rcgen::{CertificateParams, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use super::Receiver;
use crate::support::certificates::Authority;

const RSA_KEY: &str = include_str!("../../../fixtures/google/account.pem");
const HOST: &str = "sns.eu-central-1.amazonaws.com";
const ARN: &str = "arn:aws:sns:eu-central-1:123456789012:alarms";
const CERTIFICATE: &str = "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem";

/// A proxy that answers for SNS, and records each connection and request.
struct Proxy {
    address: String,
    seen: Arc<Mutex<Vec<String>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Proxy {
    async fn start(directory: &Path, authority: &Authority) -> Self {
        let pair = authority.pair(directory, "sns", &[HOST]);
        let key = PrivateKeyDer::from_pem_file(&pair.key).unwrap();
        let certificate = CertificateDer::from_pem_file(&pair.certificate).unwrap();
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .unwrap();
        let tls: TlsAcceptor = Arc::new(
            config
                .with_no_client_auth()
                .with_single_cert(vec![certificate], key)
                .unwrap(),
        )
        .into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(tunnel(stream, tls.clone(), Arc::clone(&record)));
            }
        });
        Self {
            address,
            seen,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else {
            break;
        };
        head.push(byte);
    }
    String::from_utf8(head).unwrap()
}

async fn tunnel(mut stream: TcpStream, tls: TlsAcceptor, seen: Arc<Mutex<Vec<String>>>) {
    let connect = head(&mut stream).await;
    seen.lock()
        .unwrap()
        .push(connect.lines().next().unwrap_or_default().to_owned());
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok();
    let Ok(mut stream) = tls.accept(stream).await else {
        return;
    };
    let request = head(&mut stream).await;
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let signing = CertificateParams::new(vec!["sns.amazonaws.com".to_owned()]).unwrap();
    let signing = signing
        .self_signed(&KeyPair::from_pem(RSA_KEY).unwrap())
        .unwrap()
        .pem();
    let body = if path == CERTIFICATE {
        signing
    } else {
        String::new()
    };
    seen.lock().unwrap().push(path);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.ok();
    stream.shutdown().await.ok();
}

fn time(minutes_ago: i64) -> String {
    (Utc::now() - TimeDelta::minutes(minutes_ago))
        .format("%Y-%m-%dT%H:%M:%S.000Z")
        .to_string()
}

fn alarm(time: &str) -> Value {
    let alarm = json!({
        "AlarmName": "checkout-5xx", "NewStateValue": "ALARM", "AWSAccountId": "123456789012", "Region": "EU (Frankfurt)",
        "AlarmArn": "arn:aws:cloudwatch:eu-central-1:123456789012:alarm:checkout-5xx", "OldStateValue": "OK",
        "StateChangeTime": time, "NewStateReason": "Threshold crossed", "Trigger": {"Dimensions": []},
    });
    json!({
        "Type": "Notification", "MessageId": "m-1", "TopicArn": ARN, "Subject": "ALARM: checkout-5xx",
        "Message": alarm.to_string(), "Timestamp": time, "UnsubscribeURL": "https://unsubscribe.example.com/",
    })
}

fn confirmation(subscribe_url: &str) -> Value {
    json!({
        "Type": "SubscriptionConfirmation", "MessageId": "m-2", "TopicArn": ARN, "Token": "2336412f37fb687f",
        "Message": "You have chosen to subscribe", "SubscribeURL": subscribe_url, "Timestamp": time(0),
    })
}

/// Signs the message as SNS does.
fn signed(mut message: Value) -> Value {
    let fields = [
        "Message",
        "MessageId",
        "Subject",
        "SubscribeURL",
        "Timestamp",
        "Token",
        "TopicArn",
        "Type",
    ]
    .into_iter();
    let lines =
        fields.filter_map(|name| Some(format!("{name}\n{}\n", message.get(name)?.as_str()?)));
    let canonical: String = lines.collect();
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
    message["SignatureVersion"] = "2".into();
    message["Signature"] = BASE64.encode(&signature).into();
    message["SigningCertURL"] = format!("https://{HOST}{CERTIFICATE}").into();
    message
}

struct Sns {
    receiver: Receiver,
    proxy: Proxy,
    _directory: tempfile::TempDir,
    _config: tempfile::TempDir,
}

impl Sns {
    async fn start(confirm: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new(directory.path(), "authority");
        let proxy = Proxy::start(directory.path(), &authority).await;
        let config = format!(
            "sources: {{cloudwatch: {{auth: {{sns: {{topics: ['{ARN}'], confirm: {confirm}}}}}}}}}\n"
        );
        let address = format!("http://{}", proxy.address);
        let env = [
            ("HTTPS_PROXY", address.as_str()),
            ("https_proxy", &address),
            ("NO_PROXY", ""),
            ("no_proxy", ""),
            ("SSL_CERT_FILE", authority.file.to_str().unwrap()),
        ];
        let (receiver, config) = Receiver::configured(&config, &env).await;
        Self {
            receiver,
            proxy,
            _directory: directory,
            _config: config,
        }
    }

    async fn post(&self, message: &Value) -> crate::support::http::Answer {
        self.receiver
            .post("/hooks/cloudwatch", &[], message.to_string().as_bytes())
            .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_of_sns_is_published_once_and_a_changed_or_late_one_is_refused() {
    let sns = Sns::start("false").await;
    let message = signed(alarm(&time(0)));
    let (first, repeated) = (sns.post(&message).await, sns.post(&message).await);
    assert_eq!(
        sns.receiver.published(&first).await.subject.as_str(),
        "tarsy.alerts.normal.cloudwatch"
    );
    assert_eq!(
        repeated.json(),
        first.json(),
        "a repetition is the same alert"
    );
    let mut changed = message.clone();
    changed["Message"] = changed["Message"]
        .as_str()
        .unwrap()
        .replace("checkout-5xx", "checkout-4xx")
        .into();
    let mut unsigned = message.clone();
    unsigned.as_object_mut().unwrap().remove("Signature");
    for refused in [
        changed,
        unsigned,
        signed(alarm(&time(61))),
        json!({"AlarmName": "checkout-5xx"}),
    ] {
        assert_eq!(sns.post(&refused).await.status, 401, "{refused}");
    }
    assert_eq!(sns.receiver.published_count().await, 1);
    assert_eq!(
        sns.proxy.seen(),
        [
            format!("CONNECT {HOST}:443 HTTP/1.1"),
            CERTIFICATE.to_owned()
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_confirmation_opens_no_connection() {
    let sns = Sns::start("true").await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", target.local_addr().unwrap());
    let forged = |field: &str, value: &str| {
        let mut message = signed(confirmation(&address));
        message[field] = value.into();
        message
    };
    let other_region = format!("https://sns.us-east-1.amazonaws.com{CERTIFICATE}");
    for message in [
        forged("TopicArn", "arn:aws:sns:eu-central-1:210987654321:alarms"),
        forged("SigningCertURL", &address),
        forged("SigningCertURL", &other_region),
        forged("SignatureVersion", "1"),
        forged("Timestamp", &time(120)),
        confirmation(&address),
    ] {
        assert_eq!(sns.post(&message).await.status, 401, "{message}");
    }
    // Where a token is the proof, and on the path for everything, a confirmation is only logged.
    for path in ["/hooks/sns-control", "/hooks/pagerduty", "/alert"] {
        let answer = sns
            .receiver
            .post(path, &[], confirmation(&address).to_string().as_bytes())
            .await;
        assert!(
            answer.status == 202 && answer.json()["ignored"].is_string(),
            "{path}: {answer:?}"
        );
    }
    assert_eq!(sns.proxy.seen(), Vec::<String>::new());
    // A signature that is only wrong needs the certificate of SNS, and nothing else.
    assert_eq!(sns.post(&forged("Token", "aaaa")).await.status, 401);
    assert_eq!(
        sns.proxy.seen(),
        [
            format!("CONNECT {HOST}:443 HTTP/1.1"),
            CERTIFICATE.to_owned()
        ]
    );
    let connected = std::future::poll_fn(|context| {
        std::task::Poll::Ready(target.poll_accept(context).is_ready())
    })
    .await;
    assert!(
        !connected,
        "the receiver has requested an address of a message"
    );
    assert_eq!(sns.receiver.published_count().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_confirmation_is_confirmed_only_if_operators_say_so() {
    let by_hand = Sns::start("false").await;
    let message = signed(confirmation("https://subscribe.example.com/"));
    let answer = by_hand.post(&message).await;
    assert!(
        answer.status == 202 && answer.body.contains("not confirmed"),
        "{answer:?}"
    );
    let command = format!(
        "CODE=2336412f37fb687f; aws sns confirm-subscription --token ${{CODE}} --topic-arn {ARN} --region eu-central-1"
    );
    by_hand.receiver.process.logged(&command).await;
    assert_eq!(by_hand.proxy.seen().len(), 2, "the certificate alone");

    let at_once = Sns::start("true").await;
    let answer = at_once.post(&message).await;
    assert_eq!(
        answer.json(),
        json!({"ignored": "the subscription is confirmed"})
    );
    let confirmed = format!(
        "/?Action=ConfirmSubscription&TopicArn={}&Token=2336412f37fb687f",
        ARN.replace(':', "%3A")
    );
    assert_eq!(at_once.proxy.seen().last(), Some(&confirmed));
    assert_eq!(at_once.receiver.published_count().await, 0);
}
