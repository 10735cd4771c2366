//! A server that stands for every vendor: it keeps notes, lists them in the form of a declaration, and can fail.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tarsy_config::sections::destinations::{Destination, Find};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The answer to a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The note is kept, and the connection breaks.
    KeptAndDropped,
    Dropped,
    KeptAnd(u16),
    Status(u16),
}

impl Fault {
    /// Every fault after which another attempt is made.
    pub(super) const ALL: [Self; 5] = [
        Self::KeptAndDropped,
        Self::Dropped,
        Self::KeptAnd(500),
        Self::Status(503),
        Self::Status(429),
    ];
}

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrived {
    pub(super) line: String,
    pub(super) body: String,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// The faults of the next notes; afterwards they are kept and accepted.
    pub(super) faults: VecDeque<Fault>,
    /// The status of a list; 0 for the list itself.
    pub(super) list_status: u16,
    /// The answer in the place of a list; null for the list itself.
    pub(super) list: Value,
    /// Pages of other notes before the own ones.
    pub(super) other_pages: usize,
    /// The answer to a lookup.
    pub(super) lookup: Value,
    pub(super) notes: Vec<String>,
    pub(super) requests: Vec<Arrived>,
}

/// The server.
pub(super) struct Vendor {
    pub(super) address: String,
    pub(super) state: Arc<Mutex<State>>,
}

impl Vendor {
    /// Serves until the runtime of the test ends.
    pub(super) async fn start(destination: Destination) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                serve(stream, &destination, &shared).await;
            }
        });
        Self { address, state }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.state.lock().unwrap().notes.clone()
    }
}

/// Answers the one request of a connection.
async fn serve(stream: TcpStream, destination: &Destination, state: &Mutex<State>) {
    let mut stream = BufReader::new(stream);
    let Some(arrived) = request(&mut stream).await else {
        return;
    };
    let Some(Answer { status, body }) = answer(&arrived, destination, &mut state.lock().unwrap())
    else {
        return;
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} x\r\nretry-after: 7\r\nlocation: http://169.254.169.254/\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.ok();
    stream.write_all(body.as_bytes()).await.ok();
}

async fn request(stream: &mut BufReader<TcpStream>) -> Option<Arrived> {
    let mut arrived = Arrived::default();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if arrived.line.is_empty() {
            arrived.line = line.trim_end().to_owned();
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    arrived.body = String::from_utf8(body).unwrap();
    Some(arrived)
}

struct Answer {
    status: u16,
    body: Value,
}

/// `None`: the connection breaks.
fn answer(arrived: &Arrived, destination: &Destination, state: &mut State) -> Option<Answer> {
    state.requests.push(arrived.clone());
    let is_note = !arrived.line.starts_with("GET") && arrived.body.contains("tarsy-");
    if is_note {
        let fault = state.faults.pop_front();
        let is_kept = !matches!(fault, Some(Fault::Dropped | Fault::Status(_)));
        if is_kept {
            state.notes.push(arrived.body.clone());
        }
        let status = match fault {
            Some(Fault::KeptAndDropped | Fault::Dropped) => return None,
            Some(Fault::KeptAnd(status) | Fault::Status(status)) => status,
            None => destination.accepted[0],
        };
        return Some(Answer {
            status,
            body: json!({}),
        });
    }
    let find = destination.find.as_ref();
    let is_lookup = destination.lookup.is_some()
        && !arrived.line.contains("/notes")
        && !arrived.line.contains("/comment");
    if is_lookup && !state.lookup.is_null() {
        return Some(Answer {
            status: 200,
            body: state.lookup.clone(),
        });
    }
    let status = if state.list_status == 0 {
        200
    } else {
        state.list_status
    };
    if !state.list.is_null() {
        return Some(Answer {
            status,
            body: state.list.clone(),
        });
    }
    let others = std::mem::take(&mut state.other_pages);
    state.other_pages = others.saturating_sub(1);
    let texts = if others > 0 {
        vec!["another note".to_owned(); find.and_then(|find| find.size).unwrap_or(1) as usize]
    } else {
        state.notes.clone()
    };
    Some(Answer {
        status,
        body: list(find.unwrap(), &texts),
    })
}

/// The list of notes, as the pointers of a declaration find it.
fn list(find: &Find, texts: &[String]) -> Value {
    let items: Vec<Value> = texts
        .iter()
        .map(|text| nested(&find.text, json!(text)))
        .collect();
    nested(&find.items, Value::from(items))
}

/// A value at a pointer; a number in it is the place in a list.
fn nested(pointer: &str, value: Value) -> Value {
    pointer
        .split('/')
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .fold(value, |inner, key| {
            if key.parse::<usize>().is_ok() {
                json!([inner])
            } else {
                json!({key: inner})
            }
        })
}
