//! Any bytes are an answer of a provider, and any bytes are the history of a conversation.
//!
//! The seeds are the recorded streams of `tests/fixtures` and the histories below. The suite tries them and some
//! hundred random changes of them, in half a second; `./dev prove` continues for a minute. `TARSY_FUZZ_SECS=60 ./dev
//! test --test it provider_bytes -- --nocapture` searches longer; `TARSY_FUZZ_SEED` repeats a search. The targets in
//! `fuzz/providers` search with libFuzzer.

pub(crate) mod arena;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use self::arena::{APIS, Api, Arena};
use crate::support::figures::{by_depth, from_env};

/// Pieces of the languages that the readers read.
const WORDS: [&str; 30] = [
    "data: ",
    "event: error\n",
    "\n\n",
    "\r\n\r\n",
    "\r",
    ":\n",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\u0000",
    "\\ud800",
    "null",
    "1e999",
    "-1",
    "9999999999999999999",
    "\"thought\":true,",
    "\"thoughtSignature\":\"c2ln\",",
    "\"functionCall\":{\"name\":\"s__a\",\"args\":{}},",
    "\"finishReason\":\"CONTINUATION\",\"continuationToken\":\"t\",",
    "\"finishReason\":\"STOP\"",
    "\"error\":{\"code\":400,\"message\":\"Invalid thought signature\"}",
    "\"index\":-5,",
    "\"type\":\"content_block_stop\"",
    "\"type\":\"response.completed\"",
    "\"tool_calls\":[{\"index\":3,\"function\":{\"arguments\":\"{\"}}],",
    "[DONE]",
    "é→🚀",
    "\u{feff}",
];

/// Provider data and texts of histories.
const HISTORIES: [&str; 9] = [
    "",
    "{}",
    "[]",
    r#"[{"parts":[{"text":"a"},{"functionCall":{"name":"s__a","args":{"z":1.0},"id":"7"},"thoughtSignature":"c2ln"}],"role":"model"}]"#,
    r#"[{"parts":[{"text":"a"}],"role":"model"},{"sources":{"queries":["q"],"pages":[{"url":"https://h"}]}}]"#,
    r#"[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"tool_use","id":"toolu_1","name":"s__a","input":{}}]"#,
    r#"[{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA","summary":[]},{"type":"function_call","call_id":"c","name":"s__a","arguments":"{}"}]"#,
    r#"{"type":"object","properties":{"a":{"$ref":"x"}}}"#,
    "\u{0}\u{feff}\\\"🚀",
];

/// Every fixture that is a stream.
fn streams() -> Vec<Vec<u8>> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut files: Vec<_> = ["gemini", "anthropic", "openai"]
        .iter()
        .filter_map(|folder| std::fs::read_dir(fixtures.join(folder)).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sse"))
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    let mut streams: Vec<Vec<u8>> = files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    streams.extend(APIS.iter().map(|api| api.good.as_bytes().to_vec()));
    streams
}

/// A change of a seed, or several.
fn changed(seeds: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = seeds[random.usize(..seeds.len())].clone();
    for _change in 0..random.usize(1..6) {
        let at = random.usize(..=bytes.len());
        let end = at + random.usize(..=(bytes.len() - at).min(64));
        match random.u8(..6) {
            0 => drop(bytes.splice(at..end, [])),
            1 => {
                let copy = bytes[at..end].repeat(random.usize(1..4));
                bytes.splice(at..at, copy);
            }
            2 => drop(bytes.splice(at..at, WORDS[random.usize(..WORDS.len())].bytes())),
            3 => bytes.truncate(at),
            4 => {
                let other = &seeds[random.usize(..seeds.len())];
                let from = random.usize(..=other.len());
                bytes.splice(at..end, other[from..].iter().copied());
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.u8(..);
                }
            }
        }
    }
    bytes
}

/// Tries every seed in several sizes of pieces, then random changes, and names the input that breaks a property.
fn search(what: &str, seeds: &[Vec<u8>], first_bytes: &[u8], property: fn(&Arena, Api, &[u8])) {
    let arena = Arena::start();
    let attempt = |api: Api, bytes: &[u8]| {
        let outcome = catch_unwind(AssertUnwindSafe(|| property(&arena, api, bytes)));
        if let Err(panic) = outcome {
            println!(
                "{what} of {}: {:?}",
                api.provider,
                String::from_utf8_lossy(bytes)
            );
            println!("as bytes: {bytes:?}");
            resume_unwind(panic);
        }
    };
    for (api, seed, first) in APIS.iter().flat_map(|api| {
        seeds
            .iter()
            .flat_map(move |seed| first_bytes.iter().map(move |first| (api, seed, first)))
    }) {
        attempt(*api, &[&[*first], &seed[..]].concat());
    }
    let seed = from_env("TARSY_FUZZ_SEED", fastrand::u64(..));
    println!("{what}: TARSY_FUZZ_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let until = Instant::now() + Duration::from_secs_f64(by_depth("TARSY_FUZZ_SECS", 0.5, 60.0));
    let mut tried = 0;
    while Instant::now() < until {
        let bytes = [vec![random.u8(..)], changed(seeds, &mut random)].concat();
        attempt(APIS[random.usize(..APIS.len())], &bytes);
        tried += 1;
    }
    println!("{what}: {tried} random inputs");
    assert!(tried > 0);
}

#[test]
fn any_bytes_of_a_provider_give_one_end_and_a_history_that_goes_back() {
    search("an answer", &streams(), &[0, 2, 255], Arena::answer);
}

#[test]
fn any_history_is_sent_as_json_or_refused() {
    let seeds: Vec<Vec<u8>> = HISTORIES
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
    search(
        "a history",
        &seeds,
        &[0, 0x10, 0x31, 0x51, 0x80, 0xf0, 0xf1],
        Arena::history,
    );
}
