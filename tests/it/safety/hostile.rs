//! Parsing takes linear time: a megabyte of hostile text is parsed at once, whatever its shape is.
//!
//! `cargo test --release --manifest-path fuzz/Cargo.toml -- --nocapture` holds every shape to 50 ms for a megabyte and
//! prints the slowest. Without optimisation the same code is ten to forty times slower, so the texts are only as long
//! as the longest input that is parsed leniently; quadratic time misses the limit all the same. The suite tries each
//! fragment in one place; `./dev prove`, and the command above, try it in every place.

use std::time::Duration;

use tarsy_core::react::read;

use super::processor_time::Clock;

const LENGTHS: &[usize] = if cfg!(debug_assertions) {
    &[60 * 1024]
} else {
    &[60 * 1024, 1024 * 1024]
};
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 50 });
/// The best run counts, because other processes use this machine as well.
const RUNS: usize = 5;

/// Fragments that are repeated as an answer, as a final answer, and as an input.
const REPEATED: [&str; 58] = [
    "Action:",
    "Action:\n",
    "Action: a.b\n",
    "Action: a.b\n\n\n\n",
    "Action:\n\n",
    "Action Input:",
    "Action Input:\n",
    "Action Input: {}\n",
    "Action: a.b\nAction Input: {}\n",
    "Action: a.b Action Input: {} ",
    "Thought:",
    "Thought\n",
    "Thought: a\nAction: a.b\n",
    "Final Answer:",
    "Final Answer: x\n",
    "x. Action: ",
    "x.Action: a.b ",
    "x. Action: a.b Action Input: ",
    "x. Action: a.b\n",
    "x. Final Answer: ",
    "x.** `Action: ",
    "* `",
    ". ",
    "action ",
    "action: ",
    "action: a.b\n",
    "Observation:\n",
    "[Based on\n",
    "[Based on\n\n",
    "```\n",
    "```json\n",
    "`",
    "\n",
    "\r\n",
    " ",
    "\n ",
    "\u{feff}",
    "#",
    "- ",
    "- a: 1\n",
    "a:\n",
    "a: b, ",
    "a=b, c",
    "a=1, b=2, ",
    "a: {\n",
    "a: [1\n",
    "{",
    "{\"a\":",
    "{\"a\": 1,\n",
    "[",
    "[[1],",
    "}",
    "\"",
    "\", ",
    "' ",
    ",'",
    "\\\"",
    "/* // # ",
];

/// Texts of about this length that no repetition of one fragment produces.
fn composed(length: usize) -> Vec<(String, String)> {
    let half = length / 2;
    // The number of lines when each line has one more space than the line before.
    let side = (2 * length).isqrt();
    let input = |text: String| format!("Action: a.b\nAction Input: {text}");
    let deep: String = (0..side)
        .map(|n| format!("{}k:\n", " ".repeat(n)))
        .collect();
    let deep_list: String = (0..side)
        .map(|n| format!("{}- - k:\n", " ".repeat(n)))
        .collect();
    let fields: String = (0..length / 18)
        .map(|n| format!("\"key{n}\": [1,],\n"))
        .collect();
    [
        (
            "spaces, then quotes",
            input(format!("a:{}{}", " ".repeat(half), "' ".repeat(half / 2))),
        ),
        (
            "asterisks before a mark",
            format!(
                "Thought: x{}{}",
                "*".repeat(half),
                "Action:".repeat(half / 7)
            ),
        ),
        (
            "blank lines before every call",
            format!(
                "Final Answer: x{}",
                format!("\nAction: a.b{}", "\n".repeat(500)).repeat(length / 512)
            ),
        ),
        (
            "a call, then blank lines",
            format!(
                "Final Answer: x\n{}{}",
                "Action:\n".repeat(half / 8),
                "\n".repeat(half)
            ),
        ),
        ("a mapping deeper and deeper", input(format!("\n{deep}"))),
        ("a list deeper and deeper", input(format!("\n{deep_list}"))),
        (
            "braces deeper and deeper",
            input("{\"a\": [".repeat(length / 7)),
        ),
        ("many fields", input(format!("{{{fields}}}"))),
        ("many fields without an end", input(format!("{{{fields}"))),
        (
            "many mappings without an end",
            input("a: {\"b\": 1,\n".repeat(length / 12)),
        ),
        (
            "texts of three quotes without an end",
            input("{\"a\": \"\"\"x\n".repeat(length / 12)),
        ),
        (
            "a text in its block",
            input(format!("a: |\n{}", "  x: y\n".repeat(length / 7))),
        ),
        (
            "lines that go on",
            input(format!("a: b\n{}", "  c d\n".repeat(length / 6))),
        ),
        (
            "words and then an object",
            input(format!("words\n{}", "{x\n".repeat(length / 3))),
        ),
        (
            "comments",
            input(format!("a: 1\n{}", "# b\n".repeat(length / 4))),
        ),
        (
            "a long name",
            format!("Action: {}\nAction Input: {{}}", "a.".repeat(half)),
        ),
        ("a long key", input(format!("{}: 1", "k".repeat(length)))),
        ("one long word", "x".repeat(length)),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into()
}

fn shapes(length: usize) -> Vec<(String, String)> {
    let places = [
        "",
        "Final Answer: ",
        "Thought: x",
        "Action: a.b\nAction Input: ",
        "Action: a.b\nAction Input: a: {",
    ];
    let is_whole = !cfg!(debug_assertions)
        || std::env::var("TARSY_TEST_DEPTH").is_ok_and(|depth| depth == "prove");
    let mut shapes = composed(length);
    let all = (0..places.len()).flat_map(|at| {
        REPEATED
            .iter()
            .enumerate()
            .map(move |(number, text)| (at, number, text))
    });
    for (at, _, repeated) in all.filter(|(at, number, _)| is_whole || number % places.len() == *at)
    {
        let place = places[at];
        let text = format!("{place}{}", repeated.repeat(length / repeated.len()));
        shapes.push((format!("{place:?} and then {repeated:?}"), text));
    }
    shapes
}

fn took(text: &str) -> Duration {
    let begun = Clock::start();
    read(text, None);
    begun.elapsed()
}

#[test]
fn a_hostile_megabyte_is_parsed_at_once() {
    let mut figures = Vec::new();
    for (name, text) in LENGTHS.iter().flat_map(|length| shapes(*length)) {
        let mut best = took(&text);
        for _ in 1..RUNS {
            if best < LIMIT / 4 {
                break;
            }
            best = best.min(took(&text));
        }
        figures.push((best, name));
    }
    figures.sort_unstable_by(|a, b| b.cmp(a));
    for (best, name) in figures.iter().take(10) {
        println!("{best:>12.2?}  {name}");
    }
    let slow: Vec<_> = figures
        .into_iter()
        .filter(|(best, _)| *best >= LIMIT)
        .collect();
    assert_eq!(slow, Vec::new());
}
