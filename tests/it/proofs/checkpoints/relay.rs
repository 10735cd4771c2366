//! A relay between a store and the server that can drop the reply to one statement, which has taken effect.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Dropping the relay ends it and its connections.
pub(crate) struct Relay {
    port: u16,
    wanted: Arc<Mutex<Option<Uuid>>>,
    _tasks: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn start(database_url: &str) -> Self {
        let server = address(database_url).to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let wanted = Arc::new(Mutex::new(None));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, Arc::clone(&wanted)));
        Self {
            port,
            wanted,
            _tasks: tasks,
        }
    }

    /// The URL of the database through the relay.
    pub(crate) fn url(&self, database_url: &str) -> String {
        database_url.replacen(
            address(database_url),
            &format!("127.0.0.1:{}", self.port),
            1,
        )
    }

    /// Closes the connection in place of the reply to the next statement with this id.
    pub(crate) fn lose_reply_to(&self, id: Uuid) {
        *self.wanted.lock().unwrap() = Some(id);
    }
}

/// `host:port` of a URL.
fn address(url: &str) -> &str {
    let (_, rest) = url.split_once("://").expect("a URL");
    let (server, _) = rest.split_once('/').expect("a database");
    server
        .rsplit_once('@')
        .map_or(server, |(_, address)| address)
}

async fn accept(listener: TcpListener, server: String, wanted: Arc<Mutex<Option<Uuid>>>) {
    let mut connections = JoinSet::new();
    loop {
        let (Ok((client, _)), Ok(server)) =
            (listener.accept().await, TcpStream::connect(&server).await)
        else {
            return;
        };
        let wanted = Arc::clone(&wanted);
        connections.spawn(async move {
            let (client_read, client_write) = client.into_split();
            let (server_read, server_write) = server.into_split();
            let lose = AtomicBool::new(false);
            // The side that ends first closes the other.
            tokio::select! {
                () = requests(client_read, server_write, &wanted, &lose) => {}
                () = replies(server_read, client_write, &lose) => {}
            }
        });
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    wanted: &Mutex<Option<Uuid>>,
    lose: &AtomicBool,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let bytes = &buffer[..count];
        let found = wanted
            .lock()
            .unwrap()
            .take_if(|id| bytes.windows(16).any(|window| window == id.as_bytes()));
        if found.is_some() {
            lose.store(true, Ordering::SeqCst);
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

async fn replies(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, lose: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if lose.load(Ordering::SeqCst) || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
