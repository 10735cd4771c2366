//! A TCP proxy with faults: cut, slow, stalled, half-open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const BUFFER_BYTES: usize = 16 * 1024;

/// The treatment of bytes by the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Bytes pass unchanged.
    Open,
    /// Connections are reset, also new ones.
    Cut,
    /// Every piece is delayed, and its bytes pass at a limited rate.
    Slow {
        latency: Duration,
        bytes_per_ms: u32,
    },
    /// No byte passes now; all pass later.
    Stalled,
    /// Bytes are dropped silently. An affected connection stays half-open for ever, also after the link is repaired;
    /// only its ends can detect this.
    HalfOpen,
}

/// A proxy on its own port; dropping the value ends it and its connections.
#[derive(Debug)]
pub(crate) struct Link {
    port: u16,
    mode: watch::Sender<Mode>,
    _accepting: JoinSet<()>,
}

impl Link {
    /// Forwards connections to a port of this machine.
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mode, seen) = watch::channel(Mode::Open);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, seen));
        Self {
            port,
            mode,
            _accepting: accepting,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

async fn accept(listener: TcpListener, server: u16, mode: watch::Receiver<Mode>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        connections.spawn(relay(client, server, mode.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn relay(client: TcpStream, server: u16, mode: watch::Receiver<Mode>) {
    let at_first = *mode.borrow();
    if at_first == Mode::HalfOpen {
        return swallow(client).await;
    }
    let server = match at_first {
        Mode::Cut => None,
        _ => TcpStream::connect(("127.0.0.1", server)).await.ok(),
    };
    let Some(server) = server else {
        client.set_zero_linger().ok();
        return;
    };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let deaf = Arc::new(AtomicBool::new(false));
    let up = pump(from_client, to_server, mode.clone(), Arc::clone(&deaf));
    let down = pump(from_server, to_client, mode, deaf);
    tokio::join!(up, down);
}

/// Accepts a connection without a server, until the client closes it.
async fn swallow(mut client: TcpStream) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(1..) = client.read(&mut buffer).await {}
}

/// One direction of a connection.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut mode: watch::Receiver<Mode>,
    deaf: Arc<AtomicBool>,
) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let now = *mode.borrow_and_update();
        match now {
            Mode::Cut => return reset(&from, &to),
            Mode::HalfOpen => deaf.store(true, Ordering::SeqCst),
            Mode::Stalled => {
                if mode.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Mode::Open | Mode::Slow { .. } => {}
        }
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            changed = mode.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let Ok(count @ 1..) = read else {
            // The other end is informed, unless the connection is half-open.
            if deaf.load(Ordering::SeqCst) {
                to.forget();
            } else {
                to.shutdown().await.ok();
            }
            return;
        };
        if deaf.load(Ordering::SeqCst) {
            continue;
        }
        let delay = match now {
            Mode::Slow {
                latency,
                bytes_per_ms,
            } => {
                let bytes = u32::try_from(count).unwrap_or(u32::MAX);
                latency + Duration::from_millis(u64::from(bytes / bytes_per_ms.max(1)))
            }
            _ => Duration::ZERO,
        };
        tokio::time::sleep(delay).await; // the slowness itself
        if *mode.borrow() == Mode::Stalled
            && mode.wait_for(|mode| *mode != Mode::Stalled).await.is_err()
        {
            return;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return reset(&from, &to);
        }
    }
}

/// Sends a reset to both ends.
fn reset(from: &OwnedReadHalf, to: &OwnedWriteHalf) {
    let (from, to): (&TcpStream, &TcpStream) = (from.as_ref(), to.as_ref());
    from.set_zero_linger().ok();
    to.set_zero_linger().ok();
}
