//! A small web server on loopback that counts its requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// A web server with some pages; it ends when it is dropped.
pub(crate) struct Pages {
    /// As `127.0.0.1:port`.
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<String>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Pages {
    /// Serves these answers (status line, headers and body) by their paths.
    pub(crate) async fn serve(answers: &[(&'static str, String)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answers: Arc<BTreeMap<&str, String>> = Arc::new(answers.iter().cloned().collect());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&answers), Arc::clone(&seen)));
            }
        });
        Self { address, requests, _serving: AbortOnDropHandle::new(serving) }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// An answer with a body.
pub(crate) fn page(kind: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// An answer that redirects.
pub(crate) fn redirect(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
}

async fn answer(mut stream: TcpStream, answers: Arc<BTreeMap<&str, String>>, seen: Arc<Mutex<Vec<String>>>) {
    let (read, mut write) = stream.split();
    let mut lines = BufReader::new(read).lines();
    let Ok(Some(request)) = lines.next_line().await else { return };
    while let Ok(Some(line)) = lines.next_line().await {
        if line.is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned();
    let answer = answers.get(path.as_str()).unwrap_or(&missing).clone();
    seen.lock().unwrap().push(path);
    write.write_all(answer.as_bytes()).await.ok();
    write.shutdown().await.ok();
}
