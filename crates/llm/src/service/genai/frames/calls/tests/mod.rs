//! Streams of calls, as servers send them.

mod generated;

use serde_json::{Value, json};

use super::*;

fn line(call: Called) -> String {
    format!("{} {} {}", call.id, call.name, call.arguments)
}

/// The calls of a stream and, for one with a piece that belongs to no call, the word `malformed`.
fn read(api: Api, events: impl IntoIterator<Item = Value>) -> Vec<String> {
    let mut calls = Calls::new(api);
    let mut found = Vec::new();
    for event in events {
        calls.add(&event);
        found.extend(calls.take_complete());
    }
    let last = calls.take_last();
    let mut lines: Vec<String> = found.into_iter().chain(last.calls).map(line).collect();
    lines.extend(last.is_malformed.then(|| "malformed".to_owned()));
    lines
}

fn chat(pieces: impl IntoIterator<Item = Value>) -> Vec<String> {
    read(
        Api::Chat,
        pieces
            .into_iter()
            .map(|piece| json!({"choices":[{"delta":{"tool_calls":[piece]}}]})),
    )
}

fn piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: Value) -> Value {
    json!({"index":index,"id":id,"function":{"name":name,"arguments":arguments}})
}

#[test]
fn a_call_in_the_field_before_tool_calls_is_read() {
    let pieces = [
        json!({"name":"a__b","arguments":""}),
        json!({"arguments":"{\"a\":"}),
        json!({"arguments":"1}"}),
    ];
    assert_eq!(
        read(
            Api::Chat,
            pieces.map(|call| json!({"choices":[{"delta":{"function_call":call}}]}))
        ),
        [" a__b {\"a\":1}"]
    );
}

#[test]
fn a_call_of_anthropic_is_complete_at_the_end_of_its_block() {
    let mut calls = Calls::new(Api::Messages);
    let start = |index: u64, input: Value| {
        let block = json!({"type":"tool_use","id":index.to_string(),"name":"a__b","input":input});
        json!({"type":"content_block_start","index":index,"content_block":block})
    };
    let delta = |index: u64, text: &str| {
        let delta = json!({"type":"input_json_delta","partial_json":text});
        json!({"type":"content_block_delta","index":index,"delta":delta})
    };
    let stop = |index: u64| json!({"type":"content_block_stop","index":index});
    let search =
        json!({"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use"}});
    for event in [
        search,
        start(1, json!({})),
        delta(1, "{\"a\": "),
        delta(0, "x"),
        start(2, json!({"b":1})),
        delta(1, "1.0}"),
    ] {
        calls.add(&event);
    }
    assert_eq!(calls.take_complete(), Vec::new());
    calls.add(&stop(1));
    assert_eq!(
        calls
            .take_complete()
            .into_iter()
            .map(line)
            .collect::<Vec<_>>(),
        ["1 a__b {\"a\": 1.0}"]
    );
    calls.add(&stop(0));
    calls.add(&stop(2));
    let last = calls.take_complete();
    assert_eq!(
        last.into_iter().map(line).collect::<Vec<_>>(),
        ["2 a__b {\"b\":1}"]
    );
    assert_eq!(calls.take_last(), LastCalls::default());
    // A piece of no block, a block without a name, one at whose index another begins, and one without its end.
    let nameless = json!({"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"1"}});
    for events in [
        vec![start(1, json!({})), delta(3, "{}"), stop(1)],
        vec![nameless, stop(1)],
        vec![
            start(1, json!({})),
            start(1, json!({})),
            delta(1, "{}"),
            stop(1),
        ],
        vec![start(1, json!({}))],
        vec![start(1, json!({"b":1})), delta(1, "{\"b\":2}"), stop(1)],
    ] {
        assert_eq!(
            read(Api::Messages, events.clone())
                .last()
                .map(String::as_str),
            Some("malformed"),
            "{events:?}"
        );
    }
}

#[test]
fn a_call_of_bedrock_has_its_own_arguments_also_when_they_are_cut() {
    let start = json!({"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t1","name":"a__b"}}});
    let stop = |index: u64| json!({"contentBlockIndex":index});
    let text = json!({"contentBlockIndex":0,"delta":{"text":"I look."}});
    let events = |input: &str| {
        [
            json!({"role":"assistant"}),
            text.clone(),
            stop(0),
            start.clone(),
            json!({"contentBlockIndex":1,"delta":{"toolUse":{"input":input}}}),
            stop(1),
        ]
        .into_iter()
        .chain([
            json!({"stopReason":"tool_use"}),
            json!({"usage":{},"metrics":{}}),
        ])
    };
    assert_eq!(
        read(Api::Converse, events("{\"a\":1}")),
        ["t1 a__b {\"a\":1}"]
    );
    assert_eq!(read(Api::Converse, events("")), ["t1 a__b "]);
    assert_eq!(read(Api::Converse, events("{\"a\":")), ["t1 a__b {\"a\":"]);
}

#[test]
fn items_of_the_last_event_count_only_if_no_other_event_had_them() {
    let item = |id: &str| json!({"type":"function_call","call_id":id,"name":"n","arguments":"{}"});
    let last =
        json!({"type":"response.completed","response":{"output":[{"type":"message"}, item("1")]}});
    assert_eq!(read(Api::Responses, [last.clone()]), ["1 n {}"]);
    let done = json!({"type":"response.output_item.done","item":item("2")});
    assert_eq!(read(Api::Responses, [done, last]), ["2 n {}"]);
    let twice = json!({"type":"response.output_item.done","output_index":0,"item":item("2")});
    assert_eq!(read(Api::Responses, [twice.clone(), twice]), ["2 n {}"]);
}

#[test]
fn an_item_without_its_end_has_the_arguments_of_its_pieces() {
    let item = |arguments: &str| json!({"type":"function_call","id":"fc","call_id":"1","name":"n","arguments":arguments});
    let added = json!({"type":"response.output_item.added","output_index":0,"item":item("")});
    let delta = |text: &str| json!({"type":"response.function_call_arguments.delta","item_id":"fc","delta":text});
    let done = json!({"type":"response.output_item.done","output_index":0,"item":item("")});
    let pieces = [added.clone(), delta("{\"a\":"), delta("1}")];
    assert_eq!(read(Api::Responses, pieces.clone()), ["1 n {\"a\":1}"]);
    assert_eq!(
        read(Api::Responses, pieces.into_iter().chain([done.clone()])),
        ["1 n {\"a\":1}"]
    );
    assert_eq!(read(Api::Responses, [added.clone(), done]), ["1 n "]);
    assert_eq!(read(Api::Responses, [added]), ["1 n ", "malformed"]);
}

#[test]
fn pieces_of_chat_completions_are_joined_in_every_numbering() {
    let first = |index, id| piece(index, Some(id), Some(id), json!("{"));
    let more = |index, id| piece(index, id, None, json!("}"));
    for pieces in [
        // As documented.
        vec![
            first(Some(0), "a"),
            more(Some(0), None),
            first(Some(1), "b"),
            more(Some(1), None),
        ],
        // Interleaved, with the id in each piece.
        vec![
            first(Some(0), "a"),
            first(Some(1), "b"),
            more(Some(0), Some("a")),
            more(Some(1), Some("b")),
        ],
        // The same number for every call, and no numbers.
        vec![
            first(Some(0), "a"),
            more(Some(0), None),
            first(Some(0), "b"),
            more(Some(0), None),
        ],
        vec![
            first(Some(0), "a"),
            first(Some(0), "b"),
            more(Some(0), Some("a")),
            more(Some(0), Some("b")),
        ],
        vec![
            first(None, "a"),
            more(None, None),
            first(None, "b"),
            more(None, Some("b")),
        ],
        vec![
            first(None, "a"),
            first(None, "b"),
            more(None, Some("a")),
            more(None, Some("b")),
        ],
        vec![
            piece(None, Some("a"), Some("a"), json!("{}")),
            piece(None, Some("b"), Some("b"), json!({})),
        ],
    ] {
        assert_eq!(chat(pieces.clone()), ["a a {}", "b b {}"], "{pieces:?}");
    }
}

#[test]
fn pieces_that_have_one_sensible_reading_are_read_so() {
    let zero = |id, name, arguments: &str| piece(Some(0), id, name, json!(arguments));
    let id = Some;
    let n = Some("s__t");
    for (pieces, expected) in [
        // Another id in each piece, and the name in each piece.
        (
            vec![
                zero(id("a"), n, ""),
                zero(id("b"), None, "{\"x\":"),
                zero(id("c"), None, "1}"),
            ],
            vec!["a s__t {\"x\":1}"],
        ),
        (
            vec![
                zero(id("a"), n, ""),
                zero(id("b"), n, "{\"x\":"),
                zero(id("c"), n, "1}"),
            ],
            vec!["a s__t {\"x\":1}"],
        ),
        (
            vec![zero(id("a"), n, "{\"x\":"), zero(id("a"), n, "1}")],
            vec!["a s__t {\"x\":1}"],
        ),
        // One index and no ids.
        (
            vec![zero(id(""), n, "{\"x\":1}"), zero(id(""), n, "{\"x\":2}")],
            vec![" s__t {\"x\":1}", " s__t {\"x\":2}"],
        ),
        (
            vec![
                zero(None, n, "{\"x\":1}"),
                zero(None, n, ""),
                zero(None, None, "{\"x\":"),
                zero(None, None, "2}"),
            ],
            vec![" s__t {\"x\":1}", " s__t {\"x\":2}"],
        ),
        (
            vec![zero(None, n, "{}"), zero(None, Some("u"), "")],
            vec![" s__t {}", " u "],
        ),
        // A name in pieces, after the id or after the arguments.
        (
            vec![zero(id("a"), Some("s__"), ""), zero(None, Some("t"), "{}")],
            vec!["a s__t {}"],
        ),
        (
            vec![zero(id("a"), None, ""), zero(id("a"), n, "{}")],
            vec!["a s__t {}"],
        ),
        (
            vec![zero(id("a"), None, "{}"), zero(None, n, "")],
            vec!["a s__t {}"],
        ),
        // No arguments, the end of a call with all of it again, and padding.
        (vec![zero(id("a"), n, "")], vec!["a s__t "]),
        (
            vec![zero(id("a"), n, "{\"x\":1}"), zero(id("a"), n, "{\"x\":1}")],
            vec!["a s__t {\"x\":1}"],
        ),
        (
            vec![zero(id("a"), n, "{\"x\":1}"), zero(id("b"), n, "")],
            vec!["a s__t {\"x\":1}"],
        ),
        (
            vec![
                zero(id("a"), n, "{}"),
                piece(Some(1), id("b"), Some(""), json!("{}")),
            ],
            vec!["a s__t {}"],
        ),
    ] {
        assert_eq!(chat(pieces.clone()), expected, "{pieces:?}");
    }
}

#[test]
fn pieces_without_a_sensible_reading_make_an_answer_malformed() {
    let zero = |id, name, arguments: &str| piece(Some(0), id, name, json!(arguments));
    let n = Some("s__t");
    for pieces in [
        // No name.
        vec![zero(Some("a"), Some(""), "{}")],
        vec![
            zero(Some("a"), n, "{}"),
            piece(Some(1), None, None, json!("{\"x\":1}")),
        ],
        vec![
            zero(Some("a"), n, "{\"x\":1}"),
            zero(Some("a"), None, "{\"x\":2}"),
        ],
        vec![zero(Some("a"), n, "{\"x\":1}"), zero(None, None, "}")],
        // Two calls whose pieces cannot be told apart.
        vec![
            zero(Some("a"), n, "{\"x\":"),
            zero(Some("b"), n, "{\"x\":"),
            zero(Some("a"), None, "1}"),
        ],
        vec![zero(None, n, "{\"x\":"), zero(None, Some("u"), "{\"x\":2}")],
        vec![
            piece(None, Some("a"), n, json!("{")),
            piece(None, Some("b"), n, json!("{")),
            piece(None, Some("c"), None, json!("}")),
        ],
    ] {
        assert_eq!(
            chat(pieces.clone()).last().map(String::as_str),
            Some("malformed"),
            "{pieces:?}"
        );
    }
}

#[test]
fn a_call_of_ollama_is_whole() {
    let call = |function: Value| json!({"message":{"tool_calls":[{"function":function}]}});
    let events = [
        call(json!({"name":"a","arguments":{"x":1}})),
        call(json!({"name":"b"})),
    ];
    assert_eq!(read(Api::Ollama, events), [" a {\"x\":1}", " b {}"]);
    assert_eq!(
        read(Api::Ollama, [call(json!({"arguments":{}}))]),
        ["malformed"]
    );
}
