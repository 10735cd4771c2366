//! Decoding takes linear time: a megabyte of nearly JSON is repaired or refused at once, whatever its shape is.
//!
//! `cargo test --release --manifest-path fuzz/Cargo.toml -- --nocapture hostile_bodies` holds every shape to its limit
//! for a megabyte and prints the slowest. Without optimisation the texts are shorter; quadratic time misses the limit
//! all the same.

use std::time::Duration;

use tarsy_core::intake::decode::{ContentHeaders, decode};
use tarsy_core::intake::{Hints, Intake};

use super::processor_time::Clock;

const LENGTH: usize = if cfg!(debug_assertions) {
    60 * 1024
} else {
    1024 * 1024
};
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 150 });
/// The best run counts, because other processes use this machine as well.
const RUNS: usize = 3;

const STARTS: [&str; 6] = [
    "{\"a\":\"",
    "{\"a\":",
    "[",
    "[\"",
    "[{\"a\":\"x\"},",
    "a=1&b=",
];
const REPEATED: [&str; 40] = [
    "\"",
    "\\\"",
    "\\\"}",
    "\\\",",
    "\\\",\"a",
    "[",
    "{",
    "}",
    "]",
    "{\"a\":",
    "\"a\",",
    "\"a\":",
    "{{",
    "{A}",
    "{A",
    "\\",
    "\\\\",
    "\"  ",
    "\",\"a",
    "\",\"a\"",
    "\" , \"",
    "'",
    "',",
    ",",
    ";",
    "//",
    "/*",
    "\\u",
    "\\ud83d",
    "\\u{1",
    "a:",
    "a=1&",
    "a[b]=1&",
    "%",
    "\n{\"a\":1}",
    "{\"a\":1}\n",
    "{}",
    "\u{1e}{}",
    "\" \n",
    "1e999,",
];

/// The size of a reduced body.
const REDUCED: usize = 16 * 1024;
/// Reducing a body takes several passes over it.
const REDUCE_FACTOR: u32 = 4;

#[test]
fn a_hostile_body_is_reduced_in_linear_time() {
    let mut slowest = (Duration::ZERO, String::new());
    for (start, repeated) in STARTS
        .iter()
        .flat_map(|start| REPEATED.map(|repeated| (start, repeated)))
    {
        let text = format!("{start}{}", repeated.repeat(LENGTH / repeated.len()));
        let time = || {
            let clock = Clock::start();
            let reduced = Intake::default().reduced(text.as_bytes(), &Hints::default(), REDUCED);
            let elapsed = clock.elapsed();
            assert!(
                reduced.is_ok_and(
                    |reduced| reduced.is_some_and(|reduced| reduced.body.len() <= REDUCED)
                )
            );
            elapsed
        };
        let mut best = time();
        for _ in 1..RUNS {
            // A run within the limit is enough.
            if best >= LIMIT {
                best = best.min(time());
            }
        }
        assert!(
            best < LIMIT * REDUCE_FACTOR,
            "{start} {repeated:?} needs {best:?}"
        );
        slowest = slowest.max((best, format!("{start} {repeated:?}")));
    }
    println!("the slowest of {LENGTH} bytes that are reduced: {slowest:?}");
}

#[test]
fn a_hostile_body_is_decoded_in_linear_time() {
    let mut slowest = (Duration::ZERO, String::new());
    for (start, repeated) in STARTS
        .iter()
        .flat_map(|start| REPEATED.map(|repeated| (start, repeated)))
    {
        let half = LENGTH / 2;
        let spaced = format!(
            "{start}{}{}",
            repeated.repeat(half / repeated.len()),
            " ".repeat(half)
        );
        for text in [
            format!("{start}{}", repeated.repeat(LENGTH / repeated.len())),
            spaced,
        ] {
            let time = |_| {
                let clock = Clock::start();
                let decoded = decode(text.as_bytes(), ContentHeaders::default());
                let elapsed = clock.elapsed();
                assert!(decoded.is_ok_and(|decoded| decoded.text.len() == text.len()));
                elapsed
            };
            let best = (0..RUNS).map(time).min().unwrap_or_default();
            assert!(best < LIMIT, "{start} {repeated:?} needs {best:?}");
            slowest = slowest.max((best, format!("{start} {repeated:?}")));
        }
    }
    println!("the slowest of {LENGTH} bytes: {slowest:?}");
}
