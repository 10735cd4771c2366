//! Proxies and certificate authorities of the environment: a process asks Gemini over real sockets.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tarsy_core::execution::entry::Answer;
use tarsy_core::plan::ProviderPlan;
use tarsy_engine::ports::ModelError;
use tarsy_llm::client::Client;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::super::harness::{ask, failed, request};

use crate::support::certificates::{Authority, Pair};
use crate::support::process::Tarsy;

const KEY: &str = "seeded-key-9c1185a5";

/// The behaviour of a server on a connection.
#[derive(Clone)]
enum Speaks {
    /// A proxy: forwards nothing and answers by itself, after `CONNECT` with TLS.
    Proxy(TlsAcceptor),
    Tls(TlsAcceptor),
    Plain,
}

/// A server that answers as Gemini, and remembers the first line of each request.
struct Server {
    address: String,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(speaks: Speaks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, speaks.clone(), Arc::clone(&seen)));
            }
        });
        Self { address, lines }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, speaks: Speaks, lines: Arc<Mutex<Vec<String>>>) {
    let tls = match speaks {
        Speaks::Plain => return answer(stream, &lines).await,
        Speaks::Tls(tls) => tls,
        Speaks::Proxy(tls) => {
            // Only a tunnel begins with this word; the rest is left to be read.
            let mut word = [0; 8];
            while stream.peek(&mut word).await.unwrap_or(0) < word.len() {
                tokio::task::yield_now().await;
            }
            if &word != b"CONNECT " {
                return answer(stream, &lines).await;
            }
            let Some(line) = read(&mut stream).await else {
                return;
            };
            lines.lock().unwrap().push(line);
            stream
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await
                .unwrap();
            tls
        }
    };
    // A client that does not trust the certificate ends the handshake.
    if let Ok(stream) = tls.accept(stream).await {
        answer(stream, &lines).await;
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, lines: &Mutex<Vec<String>>) {
    let Some(line) = read(&mut stream).await else {
        return;
    };
    lines.lock().unwrap().push(line);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gemini/answer.sse");
    let body = std::fs::read_to_string(fixture).unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .ok();
    stream.shutdown().await.ok();
}

/// Reads one request; returns its first line, `None` if there is none.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let lower = head.to_lowercase();
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
            return head.lines().next().map(str::to_owned);
        }
    }
}

fn acceptor(pair: &Pair) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(&pair.certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(&pair.key).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// The variables of proxies in one process; all others of their kind are empty.
#[derive(Clone, Copy, Default)]
struct Proxies<'a> {
    http: &'a str,
    https: &'a str,
    none: &'a str,
}

/// Asks Gemini at `base_url` by a service with these proxies and this file of authorities.
async fn ask_by(
    proxies: Proxies<'_>,
    authorities: &Path,
    base_url: &str,
) -> Result<Answer, ModelError> {
    let env = [
        ("GEMINI_API_KEY", KEY),
        ("GOOGLE_GEMINI_BASE_URL", base_url),
        ("SSL_CERT_FILE", authorities.to_str().unwrap()),
        ("SSL_CERT_DIR", ""),
        ("HTTP_PROXY", proxies.http),
        ("http_proxy", proxies.http),
        ("HTTPS_PROXY", proxies.https),
        ("https_proxy", proxies.https),
        ("NO_PROXY", proxies.none),
        ("no_proxy", proxies.none),
        ("ALL_PROXY", ""),
        ("all_proxy", ""),
    ];
    let mut service = Tarsy::spawn(
        "llm-service",
        &["llm-service", "--listen", "127.0.0.1:0"],
        &env,
    );
    let client = Client::connect(&service.ready().await).unwrap();
    let mut asked = request("none", "why?");
    asked.provider = ProviderPlan {
        name: "gemini".into(),
        provider: "google".into(),
        backend: "google-native".into(),
        model: "gemini-2.5-flash".into(),
        ..ProviderPlan::default()
    };
    let answer = ask(&client, &asked).await;
    assert!(!service.log().contains(KEY), "{}", service.log());
    answer
}

/// The authorities: one that signed the certificate of the servers, and a stranger.
struct Trust {
    directory: tempfile::TempDir,
    own: Authority,
    stranger: Authority,
}

impl Trust {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let own = Authority::new(directory.path(), "own");
        let stranger = Authority::new(directory.path(), "stranger");
        Self {
            directory,
            own,
            stranger,
        }
    }

    fn acceptor(&self) -> TlsAcceptor {
        acceptor(&self.own.pair(
            self.directory.path(),
            "server",
            &["gemini.test", "127.0.0.1"],
        ))
    }
}

const TARGET: &str = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse HTTP/1.1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_to_gemini_goes_through_the_proxies_of_the_environment() {
    let trust = Trust::new();
    let proxy = Server::start(Speaks::Proxy(trust.acceptor())).await;
    let address = format!("http://{}", proxy.address);
    // The host does not exist: only the proxy can answer.
    let plain = Proxies {
        http: &address,
        ..Proxies::default()
    };
    let answered = ask_by(plain, &trust.own.file, "http://gemini.test")
        .await
        .unwrap();
    assert_eq!(answered.text, "Healthy.");
    assert_eq!(proxy.lines(), [format!("POST http://gemini.test{TARGET}")]);
    let tunnel = Proxies {
        https: &address,
        ..Proxies::default()
    };
    let answered = ask_by(tunnel, &trust.own.file, "https://gemini.test")
        .await
        .unwrap();
    assert_eq!(answered.text, "Healthy.");
    assert_eq!(
        proxy.lines()[1..],
        [
            "CONNECT gemini.test:443 HTTP/1.1".to_owned(),
            format!("POST {TARGET}")
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_of_no_proxy_is_asked_without_one() {
    let trust = Trust::new();
    let proxy = Server::start(Speaks::Proxy(trust.acceptor())).await;
    let gemini = Server::start(Speaks::Plain).await;
    let (address, base_url) = (
        format!("http://{}", proxy.address),
        format!("http://{}", gemini.address),
    );
    for (none, through) in [("gemini.test,127.0.0.1", 0), ("gemini.test", 1)] {
        let proxies = Proxies {
            http: &address,
            https: &address,
            none,
        };
        assert_eq!(
            ask_by(proxies, &trust.own.file, &base_url)
                .await
                .unwrap()
                .text,
            "Healthy."
        );
        assert_eq!(
            (proxy.lines().len(), gemini.lines().len()),
            (through, 1),
            "{none}"
        );
    }
    assert_eq!(gemini.lines(), [format!("POST {TARGET}")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_certificate_of_an_authority_in_the_file_is_trusted() {
    let trust = Trust::new();
    let gemini = Server::start(Speaks::Tls(trust.acceptor())).await;
    let base_url = format!("https://{}", gemini.address);
    let answered = ask_by(Proxies::default(), &trust.own.file, &base_url)
        .await
        .unwrap();
    assert_eq!(
        (answered.text.as_str(), gemini.lines().len()),
        ("Healthy.", 1)
    );
    let (code, message, _) =
        failed(ask_by(Proxies::default(), &trust.stranger.file, &base_url).await);
    assert_eq!(code, "unavailable", "{message}");
    assert!(
        message.contains("certificate") && !message.contains("127.0.0.1"),
        "{message}"
    );
    assert_eq!(gemini.lines().len(), 1, "no request was sent");
}
