//! A proxy in front of Postgres that recognises the writes of a worker. It holds one write before the server receives
//! it, or the server's answer after the commit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tarsy_core::ids::SessionId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Text by which each write of an investigation is recognised.
pub(crate) const WRITES: [(&str, &str); 5] = [
    ("open", "a.place = 'undecided' FOR NO KEY UPDATE"),
    ("step", "SET step = $1"),
    ("checkpoint", "INSERT INTO entries"),
    ("finish", "Epoch and token stay: a renewal"),
    ("settled", "SET settled_at = coalesce(s.settled_at"),
];
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
/// The first messages of a connection have a length and no type.
const STARTUP_HEADER_BYTES: usize = 4;
const TYPED_HEADER_BYTES: usize = 5;

/// On which side of a commit the connection is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The server has not seen the statement.
    Before,
    /// The server has committed it; the client has no answer yet.
    After,
}

/// A proxy on a free port.
#[derive(Debug)]
pub(crate) struct PostgresProxy {
    port: u16,
    server: String,
    plan: Arc<Mutex<Plan>>,
    held: mpsc::Receiver<Held>,
    end: CancellationToken,
}

/// A write that the proxy holds.
#[derive(Debug)]
pub(crate) struct Held {
    /// One of [`WRITES`].
    pub(crate) statement: &'static str,
    release: CancellationToken,
}

impl Held {
    /// Sends the held message.
    pub(crate) fn release(self) {
        self.release.cancel();
    }
}

#[derive(Debug)]
struct Plan {
    hold: Option<(u32, Side)>,
    /// Only writes of this session count; without one, every write counts.
    session: Option<SessionId>,
    seen: u32,
}

#[derive(Clone)]
struct Shared {
    plan: Arc<Mutex<Plan>>,
    held: mpsc::Sender<Held>,
    end: CancellationToken,
}

impl PostgresProxy {
    /// Holds the `nth` write (from 1) on `side`; `None` holds nothing.
    pub(crate) async fn start(database_url: &str, hold: Option<(u32, Side)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, held) = mpsc::channel(4);
        let end = CancellationToken::new();
        let plan = Arc::new(Mutex::new(Plan {
            hold,
            session: None,
            seen: 0,
        }));
        let shared = Shared {
            plan: Arc::clone(&plan),
            held: sender,
            end: end.clone(),
        };
        let address = address_of(database_url);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // While the server is down, its clients' connections end at once.
                if let Ok(server) = TcpStream::connect(&address).await {
                    tokio::spawn(relay(client, server, shared.clone()));
                }
            }
        });
        Self {
            port,
            server: database_url.to_owned(),
            plan,
            held,
            end,
        }
    }

    /// Holds the `nth` write (from 1) of a session that does not exist yet on `side`.
    pub(crate) fn hold_in(&self, session: SessionId, nth: u32, side: Side) {
        *self.plan.lock().unwrap() = Plan {
            hold: Some((nth, side)),
            session: Some(session),
            seen: 0,
        };
    }

    /// The URL of the database through the proxy.
    pub(crate) fn url(&self) -> String {
        self.server.replace(
            &address_of(&self.server),
            &format!("127.0.0.1:{}", self.port),
        )
    }

    /// Returns when the planned write is held.
    pub(crate) async fn held(&mut self) -> Held {
        tokio::time::timeout(TIMEOUT, self.held.recv())
            .await
            .expect("the planned write has not come")
            .unwrap()
    }

    /// Drops every connection; a held message is never delivered.
    pub(crate) fn cut(&self) {
        self.end.cancel();
    }
}

/// `host:port` of a URL.
fn address_of(url: &str) -> String {
    let rest = url.split_once("://").unwrap().1;
    let authority = rest.split(['/', '?']).next().unwrap();
    authority.rsplit('@').next().unwrap().to_owned()
}

async fn relay(client: TcpStream, server: TcpStream, shared: Shared) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Answers wait at this gate while a committed write is held.
    let answers = Arc::new(Mutex::new(None));
    let end = shared.end.clone();
    tokio::select! {
        () = requests(from_client, to_server, shared, Arc::clone(&answers)) => {}
        () = responses(from_server, to_client, answers) => {}
        () = end.cancelled() => {}
    }
}

type Answers = Arc<Mutex<Option<(&'static str, CancellationToken, mpsc::Sender<Held>)>>>;

/// Reads message by message, so that the proxy knows which statement will run.
async fn requests(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    shared: Shared,
    answers: Answers,
) {
    let mut started = false;
    let mut writes: Vec<(Vec<u8>, &'static str)> = Vec::new();
    loop {
        let header = if started {
            TYPED_HEADER_BYTES
        } else {
            STARTUP_HEADER_BYTES
        };
        let Some(message) = read_message(&mut client, header).await else {
            return;
        };
        if !started && matches!(code(&message), SSL_REQUEST | GSS_REQUEST) {
            // The proxy sends the request on; a server without TLS refuses it.
        } else {
            started = true;
        }
        if message.first() == Some(&b'P') && started {
            let mut parts = message[5..].splitn(3, |byte| *byte == 0);
            let (name, text) = (parts.next().unwrap().to_vec(), parts.next().unwrap());
            let text = String::from_utf8_lossy(text);
            let known = WRITES.into_iter().find(|(_, marker)| text.contains(marker));
            writes.extend(known.map(|(statement, _)| (name, statement)));
        }
        if message.first() == Some(&b'B') {
            let mut parts = message[5..].splitn(3, |byte| *byte == 0);
            let (_portal, name) = (parts.next().unwrap(), parts.next().unwrap());
            if let Some((_, statement)) = writes.iter().find(|(known, _)| known == name) {
                hold(
                    &shared,
                    &answers,
                    Write {
                        statement,
                        message: &message,
                    },
                )
                .await;
            }
        }
        if server.write_all(&message).await.is_err() {
            return;
        }
    }
}

/// A write that a client sends, with the message that has its parameters.
struct Write<'a> {
    statement: &'static str,
    message: &'a [u8],
}

impl Write<'_> {
    fn is_of(&self, session: SessionId) -> bool {
        let id = session.0.as_bytes();
        self.message.windows(id.len()).any(|bytes| bytes == id)
    }
}

impl Plan {
    /// Counts a write; returns the side on which it is held.
    fn count(&mut self, write: &Write<'_>) -> Option<Side> {
        if self.session.is_some_and(|session| !write.is_of(session)) {
            return None;
        }
        self.seen += 1;
        self.hold
            .filter(|(nth, _)| *nth == self.seen)
            .map(|(_, side)| side)
    }
}

async fn hold(shared: &Shared, answers: &Answers, write: Write<'_>) {
    let side = shared.plan.lock().unwrap().count(&write);
    let statement = write.statement;
    let release = CancellationToken::new();
    match side {
        None => {}
        Some(Side::Before) => {
            shared
                .held
                .send(Held {
                    statement,
                    release: release.clone(),
                })
                .await
                .ok();
            release.cancelled().await;
        }
        Some(Side::After) => {
            *answers.lock().unwrap() = Some((statement, release, shared.held.clone()))
        }
    }
}

async fn responses(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, answers: Answers) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = server.read(&mut buffer).await {
        // The client has received the answers to earlier statements, because it waits for each of them.
        let held = answers.lock().unwrap().take();
        if let Some((statement, release, sender)) = held {
            sender
                .send(Held {
                    statement,
                    release: release.clone(),
                })
                .await
                .ok();
            release.cancelled().await;
        }
        if client.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// One message with its header, which ends with the length.
async fn read_message(client: &mut OwnedReadHalf, header: usize) -> Option<Vec<u8>> {
    let mut message = vec![0; header];
    client.read_exact(&mut message).await.ok()?;
    let length = u32::from_be_bytes(message[header - 4..].try_into().unwrap()) as usize;
    message.resize(header + length - 4, 0);
    client.read_exact(&mut message[header..]).await.ok()?;
    Some(message)
}

fn code(message: &[u8]) -> u32 {
    message
        .get(4..8)
        .map_or(0, |code| u32::from_be_bytes(code.try_into().unwrap()))
}
