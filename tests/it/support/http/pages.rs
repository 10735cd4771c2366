//! A small web server on loopback that counts its requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// The end of an answer after which the server keeps the connection open and sends nothing more.
const HANGS: &str = "\0hangs";

/// A web server with some pages; it ends when it is dropped.
pub(crate) struct Pages {
    /// As `127.0.0.1:port`.
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
    _serving: AbortOnDropHandle<()>,
}

#[derive(Clone)]
struct Request {
    path: String,
    /// The value of the header; empty without one.
    authorization: String,
}

impl Pages {
    /// Serves these answers (status line, headers and body) by their paths.
    pub(crate) async fn serve(answers: &[(&'static str, String)]) -> Self {
        Self::listen(answers, None).await
    }

    /// As `serve`, over TLS.
    pub(crate) async fn serve_tls(answers: &[(&'static str, String)], tls: TlsAcceptor) -> Self {
        Self::listen(answers, Some(tls)).await
    }

    async fn listen(answers: &[(&'static str, String)], tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answers: Arc<BTreeMap<&str, String>> = Arc::new(answers.iter().cloned().collect());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, seen, tls) = (Arc::clone(&answers), Arc::clone(&seen), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => answer(stream, answers, seen).await,
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else {
                                return;
                            };
                            answer(stream, answers, seen).await;
                        }
                    }
                });
            }
        });
        Self {
            address,
            requests,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// The paths that were requested.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests
            .lock()
            .unwrap()
            .iter()
            .map(|request| request.path.clone())
            .collect()
    }

    /// The header `Authorization` of each request; empty without one.
    pub(crate) fn authorizations(&self) -> Vec<String> {
        self.requests
            .lock()
            .unwrap()
            .iter()
            .map(|request| request.authorization.clone())
            .collect()
    }
}

/// An answer with a body.
pub(crate) fn page(kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// An answer that redirects.
pub(crate) fn redirect(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
}

/// An answer whose end never comes.
pub(crate) fn hanging(answer: &str) -> String {
    format!("{answer}{HANGS}")
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite,
    answers: Arc<BTreeMap<&str, String>>,
    seen: Arc<Mutex<Vec<Request>>>,
) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    let Ok(Some(request)) = lines.next_line().await else {
        return;
    };
    let mut authorization = String::new();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or_default();
        if name.eq_ignore_ascii_case("authorization") {
            authorization = value.to_owned();
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned();
    let answer = answers.get(path.as_str()).unwrap_or(&missing).clone();
    seen.lock().unwrap().push(Request {
        path,
        authorization,
    });
    let (sent, hangs) = answer
        .strip_suffix(HANGS)
        .map_or((answer.as_str(), false), |sent| (sent, true));
    write.write_all(sent.as_bytes()).await.ok();
    write.flush().await.ok();
    if hangs {
        // Until the client closes the connection.
        while let Ok(Some(_)) = lines.next_line().await {}
    }
    write.shutdown().await.ok();
}
