//! Ports for servers that start later, or that end and start again.
#![allow(clippy::expect_used, reason = "helpers of tests fail the test")]

use std::net::TcpListener;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u16 = 10_000;
const COUNT: u16 = 6_000;
/// Other test processes start somewhere else.
static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| AtomicU16::new(fastrand::u16(..COUNT)));

/// A port that nothing listens on. No other test gets it, and it is below the ports that the kernel gives to clients,
/// so it stays free until its server starts and while that server is down.
pub(crate) fn free_port() -> u16 {
    let ports = std::iter::repeat_with(|| FIRST + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT);
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports
        .take(usize::from(COUNT))
        .find(free)
        .expect("a free port")
}

/// An address with a port that nothing listens on: `127.0.0.1:12345`.
pub(crate) fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}
