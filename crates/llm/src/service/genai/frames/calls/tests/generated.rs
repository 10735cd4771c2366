//! Whatever way a server cuts, numbers and names the pieces of its calls: no call comes out that is not one of the
//! stream, and one that a server sends in a sensible way comes out.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[derive(Clone, Debug)]
struct Sent {
    id: String,
    name: String,
    arguments: String,
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Value::from),
        "[a-z{}\"\\\\ :,]{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[a-c]{1,2}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        ]
    })
}

fn calls() -> impl Strategy<Value = Vec<Sent>> {
    let arguments = prop::collection::hash_map("[a-c]{1,2}", values(), 1..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()).to_string());
    let call = ("(s__get|s__put|t__run)", arguments);
    prop::collection::vec(call, 1..4).prop_map(|calls| {
        calls
            .into_iter()
            .enumerate()
            .map(|(position, (name, arguments))| Sent {
                id: format!("id-{position}"),
                name,
                arguments,
            })
            .collect()
    })
}

/// The form in which a server writes its pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Right,
    Zero,
    Missing,
    Changing,
}

#[derive(Clone, Debug)]
struct Style {
    index: Word,
    id: Word,
    /// Whether each piece has the id, and the name.
    repeats_id: bool,
    repeats_name: bool,
    cuts_name: bool,
    is_interleaved: bool,
    /// The offsets at which the arguments are cut.
    cuts: Vec<usize>,
}

fn styles() -> impl Strategy<Value = Style> {
    let index = prop_oneof![Just(Word::Right), Just(Word::Zero), Just(Word::Missing)];
    let id = prop_oneof![Just(Word::Right), Just(Word::Missing), Just(Word::Changing)];
    let flags = prop::array::uniform4(any::<bool>());
    (index, id, flags, prop::collection::vec(0_usize..40, 0..5)).prop_map(
        |(index, id, flags, cuts)| {
            let [repeats_id, repeats_name, cuts_name, is_interleaved] = flags;
            // Another name with another id is another call, and so is one after whole arguments. What such names call
            // is no tool, so nothing runs.
            let cuts_name =
                cuts_name && id != Word::Changing && (index == Word::Right || !is_interleaved);
            // Pieces that alternate need a word that says which call continues.
            let is_interleaved =
                is_interleaved && (index == Word::Right || (id == Word::Right && repeats_id));
            Style {
                index,
                id,
                repeats_id,
                repeats_name,
                cuts_name,
                is_interleaved,
                cuts,
            }
        },
    )
}

fn cut(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for (position, letter) in text.chars().enumerate() {
        if cuts.contains(&position) {
            pieces.push(String::new());
        }
        pieces.last_mut().unwrap().push(letter);
    }
    pieces
}

fn written(calls: &[Sent], style: &Style) -> Vec<Value> {
    let mut by_call: Vec<Vec<Value>> = Vec::new();
    for (position, call) in calls.iter().enumerate() {
        let index = match style.index {
            Word::Right | Word::Changing => Some(position as u64),
            Word::Zero => Some(0),
            Word::Missing => None,
        };
        let mut arguments = cut(&call.arguments, &style.cuts);
        let mut names = vec![call.name.clone()];
        if style.cuts_name {
            let (begin, rest) = call.name.split_at(2);
            names = vec![begin.to_owned(), rest.to_owned()];
            arguments.insert(0, String::new());
        }
        let mut pieces = Vec::new();
        for (at, arguments) in arguments.iter().enumerate() {
            let id = match style.id {
                Word::Right if at == 0 || style.repeats_id => Some(call.id.clone()),
                Word::Changing => Some(format!("{}-{at}", call.id)),
                Word::Right | Word::Missing | Word::Zero => None,
            };
            pieces.push(piece(
                index,
                id.as_deref(),
                names
                    .get(at)
                    .cloned()
                    .or_else(|| (style.repeats_name && !style.cuts_name).then(|| call.name.clone()))
                    .as_deref(),
                json!(arguments),
            ));
        }
        by_call.push(pieces);
    }
    if !style.is_interleaved {
        return by_call.concat();
    }
    let longest = by_call.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|at| {
            by_call
                .iter()
                .filter_map(move |pieces| pieces.get(at).cloned())
        })
        .collect()
}

/// Whether an engineer could read such a stream.
fn is_readable(style: &Style, calls: usize) -> bool {
    let has_id = style.id == Word::Right;
    let is_one = calls == 1;
    // A piece that begins with a bracket may begin another call of the same tool.
    if style.id == Word::Changing && style.repeats_name {
        return false;
    }
    match style.index {
        Word::Right | Word::Changing => true,
        // The id says which call continues, or whole calls follow each other.
        Word::Zero => is_one || (!style.is_interleaved && style.id != Word::Changing),
        Word::Missing => (is_one || !style.is_interleaved) && (has_id || style.id == Word::Missing),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_call_of_a_stream_is_one_that_the_model_wrote(calls in calls(), style in styles()) {
        let found = chat(written(&calls, &style));
        let is_malformed = found.last().is_some_and(|line| line == "malformed");
        if is_malformed {
            prop_assert!(!is_readable(&style, calls.len()), "{style:?} {found:?}");
            return Ok(());
        }
        prop_assert!(found.iter().all(|line| {
            let (_, call) = line.split_once(' ').unwrap();
            // Arguments that are no object are answered, and not sent.
            let is_json = call.split_once(' ').is_some_and(|(_, text)| serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok());
            !is_json || calls.iter().any(|sent| format!("{} {}", sent.name, sent.arguments) == call)
        }), "{style:?} {found:?}");
        if is_readable(&style, calls.len()) {
            prop_assert_eq!(found.len(), calls.len(), "{:?} {:?}", style, found);
        }
    }

    #[test]
    fn a_block_of_a_stream_is_one_that_the_model_wrote(
        calls in calls(),
        cuts in prop::collection::vec(0_usize..40, 0..5),
        lost in prop::collection::vec(0_usize..12, 0..3),
        kind in prop_oneof![Just(Api::Messages), Just(Api::Converse)],
    ) {
        let mut events = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            match kind {
                Api::Converse => {
                    let tool = json!({"toolUseId":call.id,"name":call.name});
                    events.push(json!({"contentBlockIndex":index,"start":{"toolUse":tool}}));
                    for text in cut(&call.arguments, &cuts) {
                        events.push(json!({"contentBlockIndex":index,"delta":{"toolUse":{"input":text}}}));
                    }
                    events.push(json!({"contentBlockIndex":index}));
                }
                Api::Messages | Api::Responses | Api::Chat | Api::Ollama => {
                    let block = json!({"type":"tool_use","id":call.id,"name":call.name,"input":{}});
                    events.push(json!({"type":"content_block_start","index":index,"content_block":block}));
                    for text in cut(&call.arguments, &cuts) {
                        let delta = json!({"type":"input_json_delta","partial_json":text});
                        events.push(json!({"type":"content_block_delta","index":index,"delta":delta}));
                    }
                    events.push(json!({"type":"content_block_stop","index":index}));
                }
            }
        }
        let whole = events.len();
        let mut position = 0;
        // Beginnings and ends are lost, not pieces: a shorter text can be JSON, too.
        events.retain(|event| {
            position += 1;
            event.get("delta").is_some() || !lost.contains(&(position - 1))
        });
        let found = read(kind, events.clone());
        let wanted: Vec<String> = calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect();
        if events.len() == whole {
            prop_assert_eq!(&found, &wanted);
        }
        // A call never has arguments of another one, whatever event is lost.
        for line in found.iter().filter(|line| *line != "malformed") {
            let (id, rest) = line.split_once(' ').unwrap();
            let (name, arguments) = rest.split_once(' ').unwrap();
            let sent = calls.iter().find(|call| call.id == id).unwrap();
            let is_part = serde_json::from_str::<Value>(arguments).is_err() || arguments == sent.arguments;
            prop_assert!(name == sent.name && is_part, "{line}");
        }
    }
}
