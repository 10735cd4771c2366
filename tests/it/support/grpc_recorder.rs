//! A relay in front of a gRPC service that records the requests of its clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A relay in front of a service, with the bytes that its clients have sent.
pub(crate) struct GrpcRecorder {
    address: String,
    connections: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl GrpcRecorder {
    /// Relays to `service`.
    pub(crate) async fn before(service: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let (service, kept) = (service.to_owned(), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, service.clone(), Arc::clone(&kept)));
            }
        });
        Self {
            address,
            connections,
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The bodies of all requests so far, concatenated, without the frames of HTTP/2 between them.
    pub(crate) fn sent(&self) -> String {
        let connections = self.connections.lock().unwrap();
        let bodies: Vec<u8> = connections.iter().flat_map(|bytes| bodies(bytes)).collect();
        String::from_utf8_lossy(&bodies).into_owned()
    }
}

impl GrpcRecorder {
    /// The bytes of each message that was sent whole, in the order of connections and calls.
    pub(crate) fn messages(&self) -> Vec<Vec<u8>> {
        let mut calls: BTreeMap<(usize, u32), Vec<u8>> = BTreeMap::new();
        for (connection, bytes) in self.connections.lock().unwrap().iter().enumerate() {
            for Frame { stream, payload } in frames(bytes) {
                calls
                    .entry((connection, stream))
                    .or_default()
                    .extend(payload);
            }
        }
        calls.values().flat_map(|body| messages(body)).collect()
    }
}

async fn relay(client: TcpStream, service: String, kept: Arc<Mutex<Vec<Vec<u8>>>>) {
    let Ok(server) = TcpStream::connect(service).await else {
        return;
    };
    let ((mut from, mut back), (mut answers, mut to)) = (client.into_split(), server.into_split());
    let number = {
        let mut kept = kept.lock().unwrap();
        kept.push(Vec::new());
        kept.len() - 1
    };
    let there = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            kept.lock().unwrap()[number].extend(&buffer[..length]);
            if to.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
        to.shutdown().await.ok();
    };
    tokio::join!(there, tokio::io::copy(&mut answers, &mut back))
        .1
        .ok();
}

/// The payloads of all DATA frames.
fn bodies(bytes: &[u8]) -> Vec<u8> {
    frames(bytes)
        .into_iter()
        .flat_map(|frame| frame.payload.to_vec())
        .collect()
}

/// A DATA frame.
struct Frame<'a> {
    stream: u32,
    payload: &'a [u8],
}

/// The DATA frames (type 0) after the preface of 24 bytes: RFC 9113, 4.1.
fn frames(bytes: &[u8]) -> Vec<Frame<'_>> {
    let (mut all, mut rest) = (Vec::new(), bytes.get(24..).unwrap_or_default());
    while let [a, b, c, kind, _flags, s, t, u, v, after @ ..] = rest {
        let length = usize::try_from(u32::from_be_bytes([0, *a, *b, *c]))
            .unwrap()
            .min(after.len());
        if *kind == 0 {
            all.push(Frame {
                stream: u32::from_be_bytes([*s, *t, *u, *v]),
                payload: &after[..length],
            });
        }
        rest = &after[length..];
    }
    all
}

/// The whole messages of a body: each follows a byte without a flag, and its length.
fn messages(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let [compressed, a, b, c, d, rest @ ..] = body {
        assert_eq!(*compressed, 0, "a message is not compressed");
        let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap();
        let Some(message) = rest.get(..length) else {
            break;
        };
        all.push(message.to_vec());
        body = &rest[length..];
    }
    all
}
