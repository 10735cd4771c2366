//! The plan of faults: it depends on the seed alone and is made before any process starts.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use super::system::LEASE;
use crate::support::link::Mode;

/// Interval between the beginnings of two faults, in milliseconds.
const BETWEEN_MS: std::ops::Range<u64> = 700..3200;
/// Time until the same target may be hit again.
const REST: Duration = Duration::from_secs(2);
/// Time in which a standby is made and has everything.
const COPIED_WITHIN: Duration = Duration::from_secs(5);
const FIRST_FAULT_DELAY: Duration = Duration::from_secs(2);

/// The service that a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    Broker,
    Database,
    LlmService,
}

/// A stream that may be purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Alerts,
    Timeline,
    Control,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// `kill -9` of a worker, which is started again later.
    KillWorker(usize),
    /// SIGSTOP of a worker, then SIGCONT.
    StopWorker(usize),
    /// SIGTERM of a worker; another process follows when it has drained.
    TerminateWorker(usize),
    /// `kill -9` of a tool server.
    KillToolServer(usize),
    /// `kill -9` of all processes of a server, then a start.
    Kill(Server),
    /// SIGSTOP of a server, then SIGCONT; not for the database.
    Freeze(Server),
    /// Promotion of a standby that lacks the last commits, and `kill -9` of its primary. Not drawn: see [`fail_overs`].
    FailOver,
    /// `kill -9` of one backend: the database ends all of them and recovers.
    KillBackend,
    /// Every message of a stream is removed.
    Purge(Stream),
    /// `kill -9` of the broker and loss of its disk.
    LoseStreams,
    /// A fault of a worker's link to a server.
    Link(usize, Server, Mode),
    /// A fault of the watchers' link to the broker.
    WatchLink(Mode),
}

/// A fault with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    /// Start, since the beginning of the run.
    pub(super) at: Duration,
    /// Duration of the fault.
    pub(super) lasts: Duration,
    pub(super) fault: Fault,
}

/// All faults of a run of this length, in order.
pub(super) fn faults(seed: u64, run: Duration, workers: usize) -> Vec<Planned> {
    let mut rng = Rng::with_seed(seed);
    let mut planned = Vec::new();
    let mut busy: Vec<(Target, Duration)> = Vec::new();
    let mut at = FIRST_FAULT_DELAY;
    while at < run {
        busy.retain(|(_, until)| *until > at);
        // A target that was hit recently is skipped; another one always exists.
        let (fault, lasts) = loop {
            let (fault, lasts) = draw(&mut rng, workers);
            if !busy
                .iter()
                .any(|(target, _)| target.overlaps(Target::of(fault)))
            {
                break (fault, lasts);
            }
        };
        busy.push((Target::of(fault), at + lasts + REST));
        planned.push(Planned { at, lasts, fault });
        at += Duration::from_millis(rng.u64(BETWEEN_MS));
    }
    planned
}

/// Adds failovers to a plan: one for each half minute, without another fault of a server beside it.
pub(super) fn fail_overs(planned: &mut Vec<Planned>, seed: u64, run: Duration) {
    // Alerts that wait for a free slot would go with the stream, so fewer investigations would ask.
    planned.retain(|other| other.fault != Fault::Purge(Stream::Alerts));
    let mut rng = Rng::with_seed(seed ^ 0xfa11);
    let count = u32::try_from(run.as_secs() / 30).unwrap_or(u32::MAX);
    for number in 1..=count {
        let (at, lasts) = (run * number / (count + 1), ms_of(&mut rng, 500..2500));
        let fault = Fault::FailOver;
        planned.retain(|other| {
            let apart = other.at > at + lasts + COPIED_WITHIN || other.at + other.lasts + REST < at;
            apart || !Target::of(other.fault).overlaps(Target::of(fault))
        });
        planned.push(Planned { at, lasts, fault });
    }
    planned.sort_by_key(|planned| planned.at);
}

/// The target of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Worker(usize),
    Server(Server),
    Link(usize, Server),
    WatchLink,
}

impl Target {
    fn of(fault: Fault) -> Self {
        match fault {
            Fault::KillWorker(n)
            | Fault::StopWorker(n)
            | Fault::TerminateWorker(n)
            | Fault::KillToolServer(n) => Self::Worker(n),
            Fault::Kill(server) | Fault::Freeze(server) => Self::Server(server),
            Fault::KillBackend | Fault::FailOver => Self::Server(Server::Database),
            Fault::Purge(_) | Fault::LoseStreams => Self::Server(Server::Broker),
            Fault::Link(n, server, _) => Self::Link(n, server),
            Fault::WatchLink(_) => Self::WatchLink,
        }
    }

    /// Two servers are never down together; any other combination is possible.
    fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::Server(_), Self::Server(_)) => true,
            (one, two) => one == two,
        }
    }
}

fn draw(rng: &mut Rng, workers: usize) -> (Fault, Duration) {
    let worker = rng.usize(0..workers);
    let server = [Server::Broker, Server::Database, Server::LlmService][rng.usize(0..3)];
    let stream = [Stream::Alerts, Stream::Timeline, Stream::Control][rng.usize(0..3)];
    let mut ms = |range: std::ops::Range<u64>| Duration::from_millis(rng.u64(range));
    match ms(0..100).as_millis() {
        0..14 => (Fault::KillWorker(worker), ms(200..2500)),
        14..22 => (Fault::StopWorker(worker), LEASE + ms(300..2500)),
        22..30 => (Fault::TerminateWorker(worker), ms(100..500)),
        30..38 => (Fault::KillToolServer(worker), Duration::ZERO),
        38..48 => (Fault::Kill(server), ms(300..2500)),
        48..52 => (Fault::Freeze(frozen(server)), ms(1000..6000)),
        52..56 => (Fault::KillBackend, Duration::ZERO),
        56..64 => (Fault::Purge(stream), Duration::ZERO),
        64..66 => (Fault::LoseStreams, ms(300..1500)),
        66..95 => (
            Fault::Link(worker, server, mode(rng)),
            ms_of(rng, 1000..7000),
        ),
        _ => (Fault::WatchLink(mode(rng)), ms_of(rng, 1000..5000)),
    }
}

/// A database is never paused, because its backends would continue.
fn frozen(server: Server) -> Server {
    match server {
        Server::Database | Server::Broker => Server::Broker,
        Server::LlmService => Server::LlmService,
    }
}

fn ms_of(rng: &mut Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.u64(range))
}

fn mode(rng: &mut Rng) -> Mode {
    match rng.u8(0..4) {
        0 => Mode::Cut,
        1 => Mode::Slow {
            latency: ms_of(rng, 20..300),
            bytes_per_ms: rng.u32(8..200),
        },
        2 => Mode::Stalled,
        _ => Mode::HalfOpen,
    }
}

impl Fault {
    /// The kind, for the report.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::KillWorker(_) => "kill -9 of a worker",
            Self::StopWorker(_) => "SIGSTOP of a worker, past its lease",
            Self::TerminateWorker(_) => "SIGTERM of a worker",
            Self::KillToolServer(_) => "kill -9 of a tool server",
            Self::Kill(Server::Broker) => "kill -9 of the broker",
            Self::Kill(Server::Database) => "kill -9 of the database",
            Self::Kill(Server::LlmService) => "kill -9 of the LLM service",
            Self::Freeze(Server::LlmService) => "SIGSTOP of the LLM service",
            Self::Freeze(_) => "SIGSTOP of the broker",
            Self::FailOver => "failover that loses commits",
            Self::KillBackend => "kill -9 of a database backend",
            Self::Purge(_) => "emptied stream",
            Self::LoseStreams => "broker killed, its disk lost",
            Self::Link(_, _, mode) | Self::WatchLink(mode) => match mode {
                Mode::Cut => "link cut",
                Mode::Slow { .. } => "link slow",
                Mode::Stalled => "link stalled",
                Mode::HalfOpen | Mode::Open => "link half-open",
            },
        }
    }
}

/// The target as text.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KillWorker(n) => write!(f, "kill -9 w{}", n + 1),
            Self::StopWorker(n) => write!(f, "SIGSTOP w{}", n + 1),
            Self::TerminateWorker(n) => write!(f, "SIGTERM w{}", n + 1),
            Self::KillToolServer(n) => write!(f, "kill -9 tool server of w{}", n + 1),
            Self::Kill(server) => write!(f, "kill -9 {server}"),
            Self::Freeze(server) => write!(f, "SIGSTOP {server}"),
            Self::FailOver => write!(f, "failover to a standby without the last commits"),
            Self::KillBackend => write!(f, "kill -9 a database backend"),
            Self::Purge(stream) => write!(f, "purge {}", stream.name()),
            Self::LoseStreams => write!(f, "kill -9 broker, all streams lost"),
            Self::Link(n, server, mode) => write!(f, "w{} - {server}: {mode:?}", n + 1),
            Self::WatchLink(mode) => write!(f, "watchers - broker: {mode:?}"),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broker => "broker",
            Self::Database => "database",
            Self::LlmService => "LLM service",
        })
    }
}

impl Stream {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Alerts => tarsy_bus::ALERTS,
            Self::Timeline => tarsy_bus::TIMELINE,
            Self::Control => tarsy_bus::CONTROL,
        }
    }
}

#[test]
fn the_seed_determines_the_plan_and_ten_minutes_have_two_hundred_faults() {
    let long = Duration::from_secs(600);
    assert_eq!(faults(7, long, 3), faults(7, long, 3));
    assert_ne!(faults(7, long, 3), faults(8, long, 3));
    for seed in 0..50 {
        let planned = faults(seed, long, 3);
        assert!(planned.len() >= 200, "{seed}: {}", planned.len());
        let kinds: std::collections::BTreeSet<_> =
            planned.iter().map(|planned| planned.fault.kind()).collect();
        assert!(kinds.len() >= 14, "{seed}: {kinds:?}");
        let mut lossy = planned.clone();
        fail_overs(&mut lossy, seed, long);
        let losses = lossy.iter().filter(|one| one.fault == Fault::FailOver);
        assert_eq!(losses.count(), 20);
        assert!(lossy.len() > 150, "{seed}: {}", lossy.len());
    }
}
