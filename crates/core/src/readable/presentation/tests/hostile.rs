//! Texts that are made to cost time.

use std::time::{Duration, Instant};

use super::presented;

#[test]
fn hostile_texts_of_16_mib_are_presented_in_bounded_time() {
    const BYTES: usize = 16 << 20;
    let repeated = |text: &str| text.repeat(BYTES / text.len());
    let texts = [
        (
            "deep",
            format!("{}{}", "[".repeat(BYTES / 2), "]".repeat(BYTES / 2)),
        ),
        ("numbers", format!("[{}1]", repeated("1,"))),
        (
            "objects",
            format!("[{}{{}}]", repeated(r#"{"a":1,"b":"x"},"#)),
        ),
        ("string", format!("[\"{}\"]", repeated("x"))),
        ("escapes", format!("[\"{}\"]", repeated("\\u0041"))),
        ("lines", repeated("\n")),
        ("log", repeated("2026-11-27T02:00:00Z a1 b2 c3 d4\n")),
        ("digits", repeated("1")),
        ("names", format!("{{{}", repeated("\"time\":\"x\",\"ts\":"))),
        ("equal signs", repeated("=")),
    ];
    for (name, text) in texts {
        for length in [text.len(), 4 << 20] {
            let part = text.get(..length).unwrap_or(&text);
            let began = Instant::now();
            let shown = presented(part);
            let took = began.elapsed();
            println!(
                "{name:<12} {length:>9} bytes: {took:?}, {} bytes shown",
                shown.text.len()
            );
            assert!(took < Duration::from_secs(60), "{name}: {took:?}");
        }
    }
}
