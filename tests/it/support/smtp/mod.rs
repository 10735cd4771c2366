//! A mail server whose answers a test decides line by line. It keeps every message that it has taken.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// Prints the headers and the parts of a message as JSON.
const PARSER: &str = r#"
import email, email.policy, json, sys
m = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
headers = [[name, str(value)] for name, value in m.items()]
parts = {part.get_content_type(): part.get_content().replace("\r\n", "\n") for part in m.walk() if not part.is_multipart()}
defects = [str(d) for part in m.walk() for d in part.defects]
json.dump({"headers": headers, "parts": parts, "defects": defects}, sys.stdout)
"#;

/// A line of a client, or the end of a message (`.`), with the number of messages that ended before.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) is_encrypted: bool,
    pub(crate) messages: usize,
}

impl Line {
    /// Whether the line begins with a word.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.text.to_ascii_uppercase().starts_with(word)
    }
}

/// The server's answer to a line.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The one of a server that takes everything.
    Usual,
    /// This text in its place.
    Text(String),
    /// None: the connection is closed.
    Close,
    /// None: the connection stays open.
    Hang,
}

impl Answer {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The protection that a server offers.
#[derive(Clone)]
pub(crate) enum Offer {
    Plain,
    Starttls(TlsAcceptor),
    Tls(TlsAcceptor),
}

/// A message that arrived, also one whose answer got lost.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    pub(crate) raw: String,
}

impl Mail {
    /// The message as the library of Python reads it: `headers`, `parts` by their type, `defects`.
    pub(crate) fn parsed(&self) -> Value {
        let mut python = Command::new("python3")
            .args(["-c", PARSER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut python.stdin.take().unwrap(), self.raw.as_bytes()).unwrap();
        let output = python.wait_with_output().unwrap();
        assert!(output.status.success(), "{self:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let parsed = self.parsed();
        let headers = parsed["headers"].as_array().unwrap();
        let found = headers.iter().find(|header| header[0] == name)?;
        Some(found[1].as_str().unwrap().to_owned())
    }
}

type Decide = dyn Fn(&Line) -> Answer + Send + Sync;

#[derive(Clone)]
struct Shared {
    offer: Offer,
    decide: Arc<Decide>,
    lines: Arc<Mutex<Vec<Line>>>,
    mails: Arc<Mutex<Vec<Mail>>>,
}

/// A mail server on this machine.
pub(crate) struct MailServer {
    pub(crate) port: u16,
    shared: Shared,
    _accepting: AbortOnDropHandle<()>,
}

impl MailServer {
    pub(crate) async fn accepting(offer: Offer) -> Self {
        Self::start(offer, |_| Answer::Usual).await
    }

    pub(crate) async fn start(
        offer: Offer,
        decide: impl Fn(&Line) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Shared {
            offer,
            decide: Arc::new(decide),
            lines: Arc::default(),
            mails: Arc::default(),
        };
        let of_task = shared.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(of_task.clone(), stream));
            }
        });
        Self {
            port,
            shared,
            _accepting: AbortOnDropHandle::new(accepting),
        }
    }

    /// The messages in the order of their arrival.
    pub(crate) fn mails(&self) -> Vec<Mail> {
        self.shared.mails.lock().unwrap().clone()
    }

    /// The lines of all clients.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.shared.lines.lock().unwrap().clone()
    }
}

async fn serve(shared: Shared, stream: TcpStream) {
    match shared.offer.clone() {
        Offer::Plain => {
            Session::new(shared, stream).run().await;
        }
        Offer::Tls(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                let mut session = Session::new(shared, stream);
                session.is_encrypted = true;
                session.run().await;
            }
        }
        Offer::Starttls(acceptor) => {
            let Some(stream) = Session::new(shared.clone(), stream).run().await else {
                return;
            };
            if let Ok(stream) = acceptor.accept(stream).await {
                let mut session = Session::new(shared, stream);
                session.is_encrypted = true;
                session.is_greeted = true;
                session.run().await;
            }
        }
    }
}

/// The conversation with one client.
struct Session<S> {
    shared: Shared,
    stream: BufReader<S>,
    is_encrypted: bool,
    is_greeted: bool,
    from: String,
    to: Vec<String>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    fn new(shared: Shared, stream: S) -> Self {
        Self {
            shared,
            stream: BufReader::new(stream),
            is_encrypted: false,
            is_greeted: false,
            from: String::new(),
            to: Vec::new(),
        }
    }

    /// Runs until the client or a fault ends it; returns the connection when TLS is to begin on it.
    async fn run(mut self) -> Option<S> {
        if !self.is_greeted {
            let greeting = self.line("").await;
            self.answer(greeting, "220 mail.example.com ready").await?;
        }
        loop {
            let text = self.read().await?;
            let line = self.line(&text).await;
            self.shared.lines.lock().unwrap().push(line.clone());
            let usual = self.usual(&line);
            let sent = self.answer(line.clone(), &usual).await?;
            if line.is("STARTTLS") && sent.starts_with("220") {
                return Some(self.stream.into_inner());
            }
            if line.is("QUIT") {
                return None;
            }
            if line.is("MAIL FROM:") {
                self.from = address(&text);
                self.to.clear();
            }
            if line.is("RCPT TO:") && sent.starts_with("250") {
                self.to.push(address(&text));
            }
            if line.is("DATA") && sent.starts_with("354") {
                self.content().await?;
            }
        }
    }

    fn usual(&self, line: &Line) -> String {
        if line.is("EHLO") {
            let offers_tls = matches!(self.shared.offer, Offer::Starttls(_)) && !self.is_encrypted;
            let starttls = if offers_tls { "250-STARTTLS\r\n" } else { "" };
            return format!(
                "250-mail.example.com\r\n{starttls}250-8BITMIME\r\n250 AUTH PLAIN LOGIN"
            );
        }
        let text = if line.is("STARTTLS") {
            "220 go ahead"
        } else if line.is("AUTH") {
            "235 welcome"
        } else if line.is("DATA") {
            "354 end with a dot"
        } else if line.is("QUIT") {
            "221 bye"
        } else {
            "250 fine"
        };
        text.to_owned()
    }

    /// Reads a message to its end, and keeps it.
    async fn content(&mut self) -> Option<()> {
        let mut raw = String::new();
        loop {
            let line = self.read().await?;
            if line == "." {
                break;
            }
            raw.push_str(line.strip_prefix('.').unwrap_or(&line));
            raw.push_str("\r\n");
        }
        let line = self.line(".").await;
        self.shared.mails.lock().unwrap().push(Mail {
            from: self.from.clone(),
            to: self.to.clone(),
            raw,
        });
        self.answer(line, "250 queued").await?;
        Some(())
    }

    async fn line(&self, text: &str) -> Line {
        Line {
            text: text.to_owned(),
            is_encrypted: self.is_encrypted,
            messages: self.shared.mails.lock().unwrap().len(),
        }
    }

    async fn read(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        let length = self.stream.read_until(b'\n', &mut bytes).await.ok()?;
        let text = String::from_utf8_lossy(&bytes);
        (length > 0).then(|| text.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Sends what the test decides, and returns it.
    async fn answer(&mut self, line: Line, usual: &str) -> Option<String> {
        let text = match (self.shared.decide)(&line) {
            Answer::Usual => usual.to_owned(),
            Answer::Text(text) => text,
            Answer::Close => return None,
            Answer::Hang => {
                let mut rest = Vec::new();
                self.stream.read_to_end(&mut rest).await.ok();
                return None;
            }
        };
        let stream = self.stream.get_mut();
        let bytes = format!("{text}\r\n");
        stream.write_all(bytes.as_bytes()).await.ok()?;
        stream.flush().await.ok()?;
        Some(text)
    }
}

/// The address between `<` and `>`.
fn address(line: &str) -> String {
    let inner = line.split_once('<').and_then(|rest| rest.1.split_once('>'));
    inner.map(|inner| inner.0.to_owned()).unwrap_or_default()
}
