//! Connection permits: which client may hold a connection, and which idle connection is closed for a new one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A permit is not revoked before its connection has been idle for this long: a request may be on the way.
const MIN_IDLE: Duration = Duration::from_millis(250);

/// How many connections there may be at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of the listener.
    pub connections: usize,
    /// From one IPv4 address, or from one IPv6 network of 64 bits.
    pub per_address: usize,
}

/// Hands out the connection permits of one listener.
#[derive(Clone, Debug)]
pub struct ConnectionLimiter {
    listener: &'static str,
    limits: Limits,
    open: Arc<Mutex<OpenConnections>>,
}

/// The connections by number. Numbers grow, so the first connections are the oldest.
#[derive(Debug, Default)]
struct OpenConnections {
    next_number: u64,
    by_number: BTreeMap<u64, OpenConnection>,
}

#[derive(Debug)]
struct OpenConnection {
    address: IpAddr,
    /// `None` while a request is being answered.
    idle_since: Option<Instant>,
    revoked: CancellationToken,
}

impl ConnectionLimiter {
    /// `listener` is the value of the metric label of the same name.
    pub fn new(listener: &'static str, limits: Limits) -> Self {
        Self { listener, limits, open: Arc::default() }
    }

    /// A permit for a connection from this address. At the limit, the connection that has been idle for longest loses
    /// its permit; `None` when every connection is in use: the new one has to be closed.
    pub fn acquire(&self, from: IpAddr) -> Option<Arc<ConnectionPermit>> {
        let (address, now) = (network(from), Instant::now());
        let mut open = lock(&self.open);
        let from_address = open.by_number.values().filter(|connection| connection.address == address).count();
        let is_full = open.by_number.len() >= self.limits.connections;
        if from_address >= self.limits.per_address || is_full {
            let is_candidate =
                |connection: &OpenConnection| from_address < self.limits.per_address || connection.address == address;
            let Some(number) = longest_idle(&open, now, is_candidate) else {
                self.count("refused");
                return None;
            };
            if let Some(connection) = open.by_number.remove(&number) {
                connection.revoked.cancel();
                self.count("evicted");
            }
        }
        let (number, revoked) = (open.next_number, CancellationToken::new());
        open.next_number += 1;
        let connection = OpenConnection { address, idle_since: Some(now), revoked: revoked.clone() };
        open.by_number.insert(number, connection);
        Some(Arc::new(ConnectionPermit { open: Arc::clone(&self.open), number, revoked }))
    }

    fn count(&self, how: &'static str) {
        metrics::counter!("tarsy_connections_refused_total", "listener" => self.listener, "how" => how).increment(1);
    }
}

fn lock(open: &Mutex<OpenConnections>) -> MutexGuard<'_, OpenConnections> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

fn longest_idle(open: &OpenConnections, now: Instant, is_candidate: impl Fn(&OpenConnection) -> bool) -> Option<u64> {
    let candidates = open.by_number.iter().filter(|(_, connection)| is_candidate(connection));
    let idle = candidates.filter_map(|(number, connection)| Some((connection.idle_since?, *number)));
    idle.filter(|(since, _)| now.duration_since(*since) >= MIN_IDLE).min().map(|(_, number)| number)
}

/// The unit that `per_address` counts: an IPv4 address, or the IPv6 network that a provider gives to one customer.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Allows one connection. Dropping it makes room for another connection.
#[derive(Debug)]
pub struct ConnectionPermit {
    open: Arc<Mutex<OpenConnections>>,
    number: u64,
    revoked: CancellationToken,
}

impl ConnectionPermit {
    /// Returns when the connection has to be closed because a newer one took its place.
    pub async fn revoked(&self) {
        self.revoked.cancelled().await;
    }

    /// Marks the connection as in use until the guard is dropped. Meanwhile its permit is not revoked.
    pub fn in_use(self: &Arc<Self>) -> InUse {
        self.set_idle_since(None);
        InUse(Arc::clone(self))
    }

    fn set_idle_since(&self, idle_since: Option<Instant>) {
        if let Some(connection) = lock(&self.open).by_number.get_mut(&self.number) {
            connection.idle_since = idle_since;
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        lock(&self.open).by_number.remove(&self.number);
    }
}

/// The guard of a connection that is in use.
#[derive(Debug)]
pub struct InUse(Arc<ConnectionPermit>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.set_idle_since(Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn limiter(connections: usize, per_address: usize) -> ConnectionLimiter {
        ConnectionLimiter::new("alerts", Limits { connections, per_address })
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_is_revoked_and_one_in_use_is_kept() {
        let limiter = limiter(9, 2);
        let (first, second) = (limiter.acquire(address(1)).unwrap(), limiter.acquire(address(1)).unwrap());
        assert!(limiter.acquire(address(1)).is_none(), "both were opened just now");
        let other = limiter.acquire(address(2)).unwrap();
        tokio::time::advance(MIN_IDLE).await;
        let answering = first.in_use();
        let third = limiter.acquire(address(1)).unwrap();
        let is_revoked = |permit: &ConnectionPermit| permit.revoked.is_cancelled();
        assert_eq!([&first, &second, &third, &other].map(|permit| is_revoked(permit)), [false, true, false, false]);
        drop(second);
        tokio::time::advance(MIN_IDLE).await;
        let in_use = third.in_use();
        assert!(limiter.acquire(address(1)).is_none(), "every connection has a request in flight");
        drop(answering);
        assert!(limiter.acquire(address(1)).is_none(), "its client may be about to send another request");
        tokio::time::advance(MIN_IDLE).await;
        assert!(limiter.acquire(address(1)).is_some() && is_revoked(&first) && !is_revoked(&third));
        drop((in_use, third));
        assert!(limiter.acquire(address(1)).is_some(), "a permit ends with its connection");
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_listener_revokes_the_permit_of_any_idle_connection() {
        let limiter = limiter(2, 2);
        let (first, second) = (limiter.acquire(address(1)).unwrap(), limiter.acquire(address(2)).unwrap());
        assert!(limiter.acquire(address(3)).is_none());
        tokio::time::advance(MIN_IDLE).await;
        let _in_use = first.in_use();
        assert!(limiter.acquire(address(3)).is_some() && second.revoked.is_cancelled());
    }

    #[test]
    fn an_address_is_what_one_client_holds() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
