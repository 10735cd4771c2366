//! Connection permits: limits the connections in all and per client, and selects the connection that is closed for a
//! new one.
//!
//! A connection is unauthenticated from its first byte until a request on it has proven its sender. The unauthenticated
//! ones have a separate share of the permits, and give way first: whatever clients without credentials do, clients with
//! credentials get the rest.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A connection that waits for less than this keeps its permit: a request, or its proof, may be on the way. One of an
/// address that crowds out others does not.
const MIN_WAIT: Duration = Duration::from_millis(250);
/// A connection that is unauthenticated for longer counts for the share of these. A slow head or a busy machine takes
/// less.
const MAX_UNCOUNTED: Duration = Duration::from_secs(3);
/// The part of all permits that unauthenticated connections may hold for longer.
const UNAUTHENTICATED_SHARE: usize = 4;
/// The number of unauthenticated connections that may always be open.
const MIN_UNAUTHENTICATED: usize = 16;

/// The limits of concurrent connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The connections of the listener.
    pub connections: usize,
    /// The connections from one IPv4 address, or from one IPv6 network of 64 bits.
    pub per_address: usize,
}

impl Limits {
    /// The number of connections that may be unauthenticated for longer than a moment. A burst of honest clients
    /// begins without authentication as well.
    pub fn unauthenticated(self) -> usize {
        (self.connections / UNAUTHENTICATED_SHARE)
            .max(MIN_UNAUTHENTICATED)
            .min(self.connections)
    }
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
    state: State,
    revoked: CancellationToken,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// No request has proven its sender since the connection was opened, or since its last answer.
    Unauthenticated(Instant),
    /// An authenticated request is being answered.
    InUse,
    /// The answer to an authenticated request has ended at this time.
    Idle(Instant),
}

impl ConnectionLimiter {
    /// `listener` is the value of the metric label of the same name.
    pub fn new(listener: &'static str, limits: Limits) -> Self {
        Self {
            listener,
            limits,
            open: Arc::default(),
        }
    }

    /// A permit for a connection from this address. At a limit another connection loses its permit; `None` when none
    /// may lose it: the new one has to be closed.
    pub fn acquire(&self, from: IpAddr) -> Option<Arc<ConnectionPermit>> {
        let address = network(from);
        let now = Instant::now();

        let mut open = self.open.lock();
        let Some(superseded) = open.superseded_by(address, self.limits, now) else {
            self.count("refused");
            return None;
        };
        for number in superseded {
            if let Some(connection) = open.by_number.remove(&number) {
                connection.revoked.cancel();
                self.count("evicted");
            }
        }
        let number = open.next_number;
        let revoked = CancellationToken::new();

        open.next_number += 1;
        let connection = OpenConnection {
            address,
            state: State::Unauthenticated(now),
            revoked: revoked.clone(),
        };
        open.by_number.insert(number, connection);
        Some(Arc::new(ConnectionPermit {
            open: Arc::clone(&self.open),
            number,
            revoked,
        }))
    }

    fn count(&self, how: &'static str) {
        metrics::counter!("tarsy_connections_refused_total", "listener" => self.listener, "how" => how).increment(1);
    }
}

impl OpenConnections {
    /// The connections that give way to a new one from this address; `None` if it has to be refused.
    fn superseded_by(&self, address: IpAddr, limits: Limits, now: Instant) -> Option<Vec<u64>> {
        let mut superseded = Vec::new();
        let is_own = |connection: &OpenConnection| connection.address == address;
        let own = self.by_number.values().filter(|other| is_own(other));
        if own.count() >= limits.per_address {
            let own = self
                .longest_unauthenticated(now, is_own)
                .or_else(|| self.longest_idle(now, is_own))?;
            superseded.push(own);
        }
        let unauthenticated =
            self.waiting(now, OpenConnection::unauthenticated_since, |connection| {
                let since = connection.unauthenticated_since();
                since.is_some_and(|since| now.duration_since(since) >= MAX_UNCOUNTED)
            });
        let excess = (unauthenticated.len() + 1).saturating_sub(limits.unauthenticated());
        superseded.extend(unauthenticated.into_iter().take(excess));
        if self.by_number.len() - superseded.len() >= limits.connections {
            let crowding = self
                .of_crowd_beside(address)
                .or_else(|| self.longest_unauthenticated(now, |_| true));
            superseded.push(crowding.or_else(|| self.longest_idle(now, |_| true))?);
        }
        Some(superseded)
    }

    /// The oldest unauthenticated connection of the address that has most of them, if they are at least twice as many
    /// as this address would have.
    fn of_crowd_beside(&self, address: IpAddr) -> Option<u64> {
        let mut crowds = HashMap::<IpAddr, (usize, u64)>::new();
        let unauthenticated = self
            .by_number
            .iter()
            .filter(|(_, it)| it.unauthenticated_since().is_some());
        for (number, connection) in unauthenticated {
            crowds.entry(connection.address).or_insert((0, *number)).0 += 1;
        }
        let own = crowds.get(&address).map_or(0, |(count, _)| *count);
        let (count, oldest) = crowds.into_values().max()?;
        (count >= 2 * (own + 1)).then_some(oldest)
    }

    fn longest_unauthenticated(
        &self,
        now: Instant,
        is_candidate: impl Fn(&OpenConnection) -> bool,
    ) -> Option<u64> {
        self.waiting(now, OpenConnection::unauthenticated_since, is_candidate)
            .first()
            .copied()
    }

    fn longest_idle(
        &self,
        now: Instant,
        is_candidate: impl Fn(&OpenConnection) -> bool,
    ) -> Option<u64> {
        self.waiting(now, OpenConnection::idle_since, is_candidate)
            .first()
            .copied()
    }

    /// The connections that have waited for long enough to give way, the one that has waited for longest first.
    fn waiting(
        &self,
        now: Instant,
        since: fn(&OpenConnection) -> Option<Instant>,
        is_candidate: impl Fn(&OpenConnection) -> bool,
    ) -> Vec<u64> {
        let mut waiting: Vec<(Instant, u64)> = self
            .by_number
            .iter()
            .filter(|(_, connection)| is_candidate(connection))
            .filter_map(|(number, connection)| Some((since(connection)?, *number)))
            .filter(|(since, _)| now.duration_since(*since) >= MIN_WAIT)
            .collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, number)| number).collect()
    }
}

impl OpenConnection {
    fn unauthenticated_since(&self) -> Option<Instant> {
        match self.state {
            State::Unauthenticated(since) => Some(since),
            State::InUse | State::Idle(_) => None,
        }
    }

    fn idle_since(&self) -> Option<Instant> {
        match self.state {
            State::Idle(since) => Some(since),
            State::InUse | State::Unauthenticated(_) => None,
        }
    }
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

    /// A request has arrived: the connection is unauthenticated until [`Self::authenticate`]. Drop the guard when its
    /// answer is written.
    pub fn begin(self: &Arc<Self>) -> Exchange {
        self.change(|state| match state {
            State::Idle(_) => State::Unauthenticated(Instant::now()),
            State::Unauthenticated(_) | State::InUse => state,
        });
        Exchange(Arc::clone(self))
    }

    /// The sender of the request is known, or the listener serves everyone. The connection keeps its permit until the
    /// answer is written; a connection without [`Self::begin`], until its end.
    pub fn authenticate(&self) {
        self.change(|_| State::InUse);
    }

    fn change(&self, change: impl FnOnce(State) -> State) {
        if let Some(connection) = self.open.lock().by_number.get_mut(&self.number) {
            connection.state = change(connection.state);
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.lock().by_number.remove(&self.number);
    }
}

/// The guard of a request and its answer.
#[derive(Debug)]
pub struct Exchange(Arc<ConnectionPermit>);

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.change(|state| match state {
            State::InUse => State::Idle(Instant::now()),
            State::Idle(_) | State::Unauthenticated(_) => state,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn limiter(connections: usize, per_address: usize) -> ConnectionLimiter {
        ConnectionLimiter::new(
            "alerts",
            Limits {
                connections,
                per_address,
            },
        )
    }

    fn is_revoked(permit: &ConnectionPermit) -> bool {
        permit.revoked.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_waiting_connection_is_revoked_and_one_in_use_is_kept() {
        let limiter = limiter(9, 2);
        let first = limiter.acquire(address(1)).unwrap();
        let second = limiter.acquire(address(1)).unwrap();

        assert!(
            limiter.acquire(address(1)).is_none(),
            "both were opened just now"
        );
        let other = limiter.acquire(address(2)).unwrap();
        tokio::time::advance(MIN_WAIT).await;
        let answering = first.begin();
        first.authenticate();
        let third = limiter.acquire(address(1)).unwrap();
        assert_eq!(
            [&first, &second, &third, &other].map(|permit| is_revoked(permit)),
            [false, true, false, false]
        );
        drop(second);
        tokio::time::advance(MIN_WAIT).await;
        let in_use = third.begin();
        third.authenticate();
        assert!(
            limiter.acquire(address(1)).is_none(),
            "every connection has a request in flight"
        );
        drop(answering);
        assert!(
            limiter.acquire(address(1)).is_none(),
            "its client may be about to send another request"
        );
        tokio::time::advance(MIN_WAIT).await;
        assert!(limiter.acquire(address(1)).is_some() && is_revoked(&first) && !is_revoked(&third));
        drop((in_use, third));
        assert!(
            limiter.acquire(address(1)).is_some(),
            "a permit ends with its connection"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_listener_revokes_the_permit_of_any_idle_connection() {
        let limiter = limiter(2, 2);
        let first = limiter.acquire(address(1)).unwrap();
        let second = limiter.acquire(address(2)).unwrap();

        assert!(limiter.acquire(address(3)).is_none());
        tokio::time::advance(MIN_WAIT).await;
        let _in_use = first.begin();
        first.authenticate();
        assert!(limiter.acquire(address(3)).is_some() && is_revoked(&second));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_authentication_gives_way_before_an_idle_connection() {
        let limiter = limiter(3, 3);
        let (first, second, third) = [1, 2, 3]
            .map(|last| limiter.acquire(address(last)).unwrap())
            .into();
        drop(first.begin());
        first.authenticate();
        let answered = first.begin();
        first.authenticate();
        drop(answered);
        tokio::time::advance(2 * MIN_WAIT).await;
        let _slow = (second.begin(), third.begin());
        let fourth = limiter.acquire(address(4)).unwrap();
        assert_eq!(
            [&first, &second, &third].map(|permit| is_revoked(permit)),
            [false, true, false]
        );
        fourth.authenticate();
        let _fifth = limiter.acquire(address(5)).unwrap();
        assert!(is_revoked(&third) && !is_revoked(&first));
        let _next = first.begin();
        tokio::time::advance(MIN_WAIT).await;
        assert!(
            limiter.acquire(address(6)).is_some(),
            "a later request has to be authenticated again"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_crowd_all_places_without_authentication_cannot_keep_out_others() {
        let limits = Limits {
            connections: 256,
            per_address: 16,
        };
        assert_eq!(limits.unauthenticated(), 64);
        let limiter = ConnectionLimiter::new("alerts", limits);
        let known: Vec<_> = (0..16)
            .filter_map(|_| limiter.acquire(address(9)))
            .collect();
        known.iter().for_each(|permit| permit.authenticate());
        let flood = |from, to| {
            let members = (from..to).flat_map(|last| (0..16).map(move |_| last));
            members
                .filter_map(|last| limiter.acquire(address(last)))
                .collect::<Vec<_>>()
        };
        let alive = |permits: &[Arc<ConnectionPermit>]| {
            permits.iter().filter(|permit| !is_revoked(permit)).count()
        };
        // Of many addresses, at once.
        let burst = flood(20, 40);
        assert_eq!(alive(&burst), 240, "every place that is left");
        let honest = limiter
            .acquire(address(8))
            .expect("a place beside the crowd");
        tokio::time::advance(MAX_UNCOUNTED).await;
        let crowd = flood(1, 5);
        assert_eq!(
            (crowd.len(), alive(&burst)),
            (64, limits.unauthenticated() - 2),
            "one place is for each newcomer"
        );
        assert!(!is_revoked(&honest));
        // Each of them connects again as soon as it is closed, and no time passes.
        let other = limiter
            .acquire(address(7))
            .expect("a place beside the crowd");
        let again = flood(1, 5);
        assert!(again.len() < crowd.len());
        assert!(!is_revoked(&other) && alive(&known) == known.len());
    }

    #[test]
    fn a_quarter_of_the_permits_needs_no_authentication_but_sixteen_at_least() {
        assert_eq!(
            [1, 16, 40, 64, 256, 1_024].map(|connections| {
                Limits {
                    connections,
                    per_address: connections,
                }
                .unauthenticated()
            }),
            [1, 16, 16, 16, 64, 256]
        );
    }

    #[test]
    fn an_address_is_what_one_client_holds() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
