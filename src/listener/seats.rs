//! Who sits where, and who has to go.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A connection that waits for less time than this keeps its seat: its request is on the way.
const GRACE: Duration = Duration::from_millis(250);

/// Connections at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of the listener.
    pub connections: usize,
    /// From one address; of IPv6 from one network of 64 bits.
    pub per_address: usize,
}

/// The seats of one listener.
#[derive(Clone, Debug)]
pub struct Seats {
    listener: &'static str,
    limits: Limits,
    taken: Arc<Mutex<Taken>>,
}

/// By number, which grows: the first ones are the oldest.
#[derive(Debug, Default)]
struct Taken {
    next: u64,
    seats: BTreeMap<u64, Sitting>,
}

#[derive(Debug)]
struct Sitting {
    address: IpAddr,
    /// Since when no request is being answered; `None` while one is.
    waits_since: Option<Instant>,
    leave: CancellationToken,
}

impl Seats {
    /// `listener` is its word in metrics.
    pub fn new(listener: &'static str, limits: Limits) -> Self {
        Self { listener, limits, taken: Arc::default() }
    }

    /// A seat, at once or not at all: then the connection is to be closed.
    pub fn take(&self, from: IpAddr) -> Option<Arc<Seat>> {
        let (address, now) = (network(from), Instant::now());
        let mut taken = self.taken();
        let beside = taken.seats.values().filter(|sitting| sitting.address == address).count();
        let is_full = taken.seats.len() >= self.limits.connections;
        if beside >= self.limits.per_address || is_full {
            let may_go = |sitting: &Sitting| beside < self.limits.per_address || sitting.address == address;
            let Some(number) = longest_waiting(&taken, now, may_go) else {
                self.count("refused");
                return None;
            };
            if let Some(sitting) = taken.seats.remove(&number) {
                sitting.leave.cancel();
                self.count("evicted");
            }
        }
        let (number, leave) = (taken.next, CancellationToken::new());
        taken.next += 1;
        taken.seats.insert(number, Sitting { address, waits_since: Some(now), leave: leave.clone() });
        Some(Arc::new(Seat { taken: Arc::clone(&self.taken), number, leave }))
    }

    fn count(&self, how: &'static str) {
        metrics::counter!("tarsy_connections_refused_total", "listener" => self.listener, "how" => how).increment(1);
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn longest_waiting(taken: &Taken, now: Instant, may_go: impl Fn(&Sitting) -> bool) -> Option<u64> {
    let waiting = taken.seats.iter().filter(|(_, sitting)| may_go(sitting));
    let waiting = waiting.filter_map(|(number, sitting)| Some((sitting.waits_since?, *number)));
    waiting.filter(|(since, _)| now.duration_since(*since) >= GRACE).min().map(|(_, number)| number)
}

/// What one client may hold: an address, or the network that a provider gives to one customer.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// The seat of one connection; free when it is dropped.
#[derive(Debug)]
pub struct Seat {
    taken: Arc<Mutex<Taken>>,
    number: u64,
    leave: CancellationToken,
}

impl Seat {
    /// Returns when the connection has to go.
    pub async fn taken_away(&self) {
        self.leave.cancelled().await;
    }

    /// A request is being answered until this is dropped; meanwhile the seat stays.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.set(None);
        Busy(Arc::clone(self))
    }

    fn set(&self, waits_since: Option<Instant>) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sitting) = taken.seats.get_mut(&self.number) {
            sitting.waits_since = waits_since;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).seats.remove(&self.number);
    }
}

/// A request is being answered.
#[derive(Debug)]
pub struct Busy(Arc<Seat>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn seats(connections: usize, per_address: usize) -> Seats {
        Seats::new("alerts", Limits { connections, per_address })
    }

    #[tokio::test(start_paused = true)]
    async fn the_silent_one_that_waited_longest_goes_and_a_busy_one_stays() {
        let seats = seats(9, 2);
        let (first, second) = (seats.take(address(1)).unwrap(), seats.take(address(1)).unwrap());
        assert!(seats.take(address(1)).is_none(), "both have just come");
        let other = seats.take(address(2)).unwrap();
        tokio::time::advance(GRACE).await;
        let answering = first.busy();
        let third = seats.take(address(1)).unwrap();
        let left = |seat: &Seat| seat.leave.is_cancelled();
        assert_eq!([&first, &second, &third, &other].map(|seat| left(seat)), [false, true, false, false]);
        drop(second);
        tokio::time::advance(GRACE).await;
        let busy = third.busy();
        assert!(seats.take(address(1)).is_none(), "every request is being answered");
        drop(answering);
        assert!(seats.take(address(1)).is_none(), "it may be about to ask again");
        tokio::time::advance(GRACE).await;
        assert!(seats.take(address(1)).is_some() && left(&first) && !left(&third));
        drop((busy, third));
        assert!(seats.take(address(1)).is_some(), "a seat is free when its connection is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_listener_takes_the_seat_of_any_silent_connection() {
        let seats = seats(2, 2);
        let (first, second) = (seats.take(address(1)).unwrap(), seats.take(address(2)).unwrap());
        assert!(seats.take(address(3)).is_none());
        tokio::time::advance(GRACE).await;
        let _busy = first.busy();
        assert!(seats.take(address(3)).is_some() && second.leave.is_cancelled());
    }

    #[test]
    fn an_address_is_what_one_client_holds() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
