//! Masking takes linear time: a megabyte of usual text is masked in 20 ms, and hostile text in 400 ms.
//!
//! `cargo test --release --manifest-path fuzz/Cargo.toml --test speed -- --nocapture masking_speed` measures it, on a
//! machine that does nothing else. Without optimisation the texts are shorter, and only quadratic time misses the
//! limits.

use std::time::{Duration, Instant};

use tarsy_mask::{MASKED, Mask};

use super::processor_time::Clock;

const DEBUG: bool = cfg!(debug_assertions);
const BYTES: usize = if DEBUG { 64 << 10 } else { 1 << 20 };
const LIMIT: Duration = Duration::from_millis(if DEBUG { 2_000 } else { 20 });
/// The time limit for texts that are made to be slow.
const HOSTILE_LIMIT: Duration = Duration::from_millis(if DEBUG { 4_000 } else { 400 });
/// The best run counts, because other processes use the caches of this machine as well.
const RUNS: usize = if DEBUG { 2 } else { 10 };

fn repeated(part: &str) -> String {
    part.repeat(BYTES / part.len() + 1)
}

/// Numbered lines of a log; every line whose number is a multiple of `every` has a password.
fn log(every: usize) -> String {
    let mut text = String::new();
    for number in 0.. {
        let rest = if number % every == every - 1 {
            "password=hunter2-0f"
        } else {
            "status=200 took=13ms"
        };
        text += &format!(
            "2026-11-22T10:00:{:02}.{number:03}Z INFO checkout-7d9f8b6c5-x2x{number} GET /api/v1/orders/{number} {rest}\n",
            number % 60
        );
        if text.len() > BYTES {
            return text;
        }
    }
    text
}

/// A list of pods, as `kubectl get -o json` prints it.
fn json() -> String {
    let pod = |number: usize| {
        serde_json::json!({
            "kind": "Pod", "metadata": {"name": format!("checkout-{number}"), "namespace": "shop", "uid": format!("{number:032x}"),
            "labels": {"app": "checkout", "pod-template-hash": "7d9f8b6c5"}},
            "spec": {"containers": [{"name": "app", "image": format!("registry.example/checkout@sha256:{number:064x}"),
            "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
            "resources": {"limits": {"memory": "512Mi"}}}]}, "status": {"phase": "Running", "podIP": "10.2.3.4"},
        })
    };
    let items: Vec<_> = (0..BYTES / 560).map(pod).collect();
    serde_json::json!({"kind": "List", "items": items}).to_string()
}

/// A list of pods as YAML.
fn yaml() -> String {
    let mut text = String::new();
    for number in 0.. {
        text += &format!(
            "- kind: Pod\n  metadata:\n    name: checkout-{number}\n    labels:\n      app: checkout\n  spec:\n    containers:\n    \
             - name: app\n      image: checkout:{number}\n      env:\n      - name: LOG_LEVEL\n        value: info\n"
        );
        if text.len() > BYTES {
            return text;
        }
    }
    text
}

/// The duration of the best of several runs, and the number of masked secrets.
fn measured(mask: &Mask, text: &str) -> (Duration, usize) {
    let mut masked = 0;
    let run = || {
        let (begun, clock) = (Instant::now(), Clock::start());
        masked = mask.apply(text).matches(MASKED).count();
        // Processor time grows in ticks of milliseconds, which is too coarse for the limits with optimisation.
        if DEBUG {
            clock.elapsed()
        } else {
            begun.elapsed()
        }
    };
    let best = std::iter::repeat_with(run).take(RUNS).min().unwrap();
    (best, masked)
}

#[test]
fn a_megabyte_is_masked_in_twenty_milliseconds() {
    let known = Mask::new((0..200).map(|number| format!("known-secret-{number}-value")));
    let mut slow = Vec::new();
    for (name, text) in [
        ("log", log(usize::MAX)),
        ("log with passwords", log(200)),
        ("json", json()),
        ("yaml", yaml()),
        (
            "json of a log",
            serde_json::json!({"stdout": log(usize::MAX)}).to_string(),
        ),
        (
            "prose",
            repeated(
                "The pod was restarted because its memory limit was too low for the load of the morning. ",
            ),
        ),
    ] {
        let (took, masked) = measured(&known, &text);
        let took = took.mul_f64(BYTES as f64 / text.len() as f64);
        println!(
            "{name}: {:.1} ms, {masked} masked",
            took.as_secs_f64() * 1000.0
        );
        if took > LIMIT {
            slow.push((name, took));
        }
    }
    assert_eq!(slow, []);
}

#[test]
fn a_hostile_megabyte_is_masked_in_linear_time() {
    let mut slow = Vec::new();
    for part in [
        "password=\"",
        "-----BEGIN ",
        "token ",
        "cookie:{",
        "password=${",
        "password='<a",
        "bearer+",
        "a://b:",
        "eyJ.",
        "sk-",
        "-us",
        "Q~",
        "{\"password\":",
        "[",
        "{\"a\":{\"b\":",
        "- ",
        "password: |\n ",
        "a: &b\n",
        "\\\"",
        "%70%61",
        "\u{1b}[0m",
        "p\u{200b}a",
        "| password ",
        "<password>",
        "AKIA",
        "kind: Secret\ndata:\n  a: ",
        "QUtJQQ==",
        "data:\n",
        "a:b@tcp(",
        "(password) values (",
        "пароль",
        "70617373",
        "private key: ",
        "default = \"",
        "machine x login y password ",
        "*:*:*:",
        "abc_",
        "H4sIA",
        "BEGIN A KEY\n",
        "password is ",
        "\" \"",
        "vault kv put a=",
    ] {
        let (took, _) = measured(&Mask::default(), &repeated(part));
        println!("{part:?}: {:.1} ms", took.as_secs_f64() * 1000.0);
        if took > HOSTILE_LIMIT {
            slow.push((part, took));
        }
    }
    assert_eq!(slow, []);
}
