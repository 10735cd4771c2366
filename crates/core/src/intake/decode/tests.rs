//! Bytes as senders write them, and properties of any bytes.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn plain(body: &[u8]) -> Decoded<'_> {
    decode(body, ContentHeaders::default()).unwrap()
}

fn value(text: &str) -> Value {
    plain(text.as_bytes())
        .value
        .unwrap_or_else(|| panic!("{text} is no JSON"))
}

fn with_type<'b>(body: &'b [u8], content_type: &str) -> Decoded<'b> {
    decode(
        body,
        ContentHeaders {
            content_type: Some(content_type),
            encoding: None,
        },
    )
    .unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn utf_16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(to_bytes).collect()
}

const BODY: &str = r#"{"title":"Speicher voll auf rz-münchen","status":"down"}"#;

#[test]
fn a_valid_body_is_not_changed_and_has_no_repair() {
    let decoded = plain(BODY.as_bytes());
    assert_eq!(
        (decoded.text.as_ref(), decoded.repairs.as_slice()),
        (BODY, &[][..])
    );
    assert!(matches!(decoded.text, Cow::Borrowed(_)), "no copy is made");
    let text = plain(b"disk full: usage=94% & rising");
    assert_eq!((text.value, text.repairs), (None, Vec::new()));
}

#[test]
fn a_character_set_is_that_of_the_mark_the_header_or_windows() {
    let latin: Vec<u8> = BODY
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect();
    let utf_16le = utf_16(BODY, u16::to_le_bytes);
    let with_mark = |mark: &[u8], body: &[u8]| [mark, body].concat();
    let bodies = [
        (BODY.as_bytes().to_vec(), "application/json"),
        (
            BODY.as_bytes().to_vec(),
            "application/json; charset=ISO-8859-1",
        ),
        (BODY.as_bytes().to_vec(), "application/json; charset=utf-16"),
        (with_mark(b"\xef\xbb\xbf", BODY.as_bytes()), "text/plain"),
        (with_mark(b"\xff\xfe", &utf_16le), ""),
        (
            with_mark(b"\xfe\xff", &utf_16(BODY, u16::to_be_bytes)),
            "application/json; charset=utf-8",
        ),
        (utf_16le, "application/json;charset=UTF-16"),
        (utf_16(BODY, u16::to_be_bytes), ""),
        (latin.clone(), "application/json; charset=\"iso-8859-1\""),
        (latin.clone(), "application/json; charset=nonsense"),
        (latin, "application/json; charset=utf-8"),
    ];
    for (body, content_type) in bodies {
        assert_eq!(
            with_type(&body, content_type).text,
            BODY,
            "{content_type} {body:x?}"
        );
    }
    let japanese = b"{\"title\":\"\x83f\x83B\x83X\x83N\"}";
    assert_eq!(
        with_type(japanese, "application/json; charset=Shift_JIS").value,
        Some(json!({"title": "ディスク"}))
    );
}

#[test]
fn one_bad_byte_does_not_spoil_a_text_that_is_utf_8() {
    let cut = [
        "{\"title\":\"Speicher voll auf münchen".as_bytes(),
        b" \xc3\"}",
    ]
    .concat();
    assert_eq!(plain(&cut).repairs, [Repair::BadBytes]);
    assert_eq!(
        plain(&cut).value,
        Some(json!({"title": "Speicher voll auf münchen \u{fffd}"}))
    );
    assert_eq!(
        plain(b"{\"a\":\"40 \xb0C\"}").repairs,
        [Repair::Charset("windows-1252")]
    );
}

#[test]
fn bytes_of_a_picture_are_no_text() {
    for body in [
        &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0"[..],
        b"\x28\xb5\x2f\xfd\x04\x00\x01\x02\x03\xff",
    ] {
        assert_eq!(
            decode(body, ContentHeaders::default()),
            Err(IntakeError::Undecodable),
            "{body:x?}"
        );
    }
}

#[test]
fn a_compressed_body_is_read_with_and_without_its_header() {
    let bytes = BODY.as_bytes();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(bytes).unwrap();
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
    deflate.write_all(bytes).unwrap();
    let zlib = zlib.finish().unwrap();
    let deflate = deflate.finish().unwrap();

    for (body, encoding, repairs) in [
        (gzip(bytes), Some("gzip"), vec![]),
        (gzip(bytes), Some("X-GZIP, identity"), vec![]),
        (gzip(bytes), None, vec![Repair::Compressed]),
        (gzip(&gzip(bytes)), Some("gzip"), vec![]),
        (zlib.clone(), Some("deflate"), vec![]),
        (zlib, None, vec![Repair::Compressed]),
        (deflate, Some("deflate"), vec![]),
        (bytes.to_vec(), Some("gzip"), vec![Repair::NotCompressed]),
        (bytes.to_vec(), Some("br"), vec![]),
    ] {
        let decoded = decode(
            &body,
            ContentHeaders {
                content_type: None,
                encoding,
            },
        )
        .unwrap();
        assert_eq!(
            (decoded.text.as_ref(), decoded.repairs),
            (BODY, repairs),
            "{encoding:?}"
        );
    }
    let text = "x^2 grows";
    assert_eq!(
        plain(text.as_bytes()).text,
        text,
        "it begins like a zlib stream"
    );
}

#[test]
fn a_decompressed_body_is_bounded_and_a_damaged_one_gives_its_beginning() {
    let bomb = gzip(&vec![b'a'; MAX_INFLATED_BYTES * 3]);
    let decoded = plain(&bomb);
    assert_eq!(decoded.text.len(), MAX_INFLATED_BYTES);
    assert!(decoded.repairs.contains(&Repair::CutCompressed));
    let whole = gzip(BODY.repeat(50).as_bytes());
    let cut = plain(&whole[..whole.len() - 12]);
    assert!(cut.text.starts_with(BODY) && cut.repairs.contains(&Repair::CutCompressed));
}

#[test]
fn json_of_templates_is_read_as_it_is_meant() {
    for (text, expected, repair) in [
        (
            "{\"a\":\"1\n2\t3\"}",
            json!({"a": "1\n2\t3"}),
            Repair::Controls,
        ),
        (
            r#"{"a":"C:\Temp\x","b":1}"#,
            json!({"a": "C:\\Temp\\x", "b": 1}),
            Repair::Escapes,
        ),
        (
            r#"{"a":"Free space on C:\","b":"down"}"#,
            json!({"a": "Free space on C:\\", "b": "down"}),
            Repair::Escapes,
        ),
        (
            r#"{"b":"down","a":"D:\"}"#,
            json!({"b": "down", "a": "D:\\"}),
            Repair::Escapes,
        ),
        (
            r#"{"a":"it\'s \u{1f611}"}"#,
            json!({"a": "it's 😑"}),
            Repair::Escapes,
        ),
        (
            r#"{"a":"x \ud83d","b":"\ude00","c":"\ud83d\ude00"}"#,
            json!({"a": "x \u{fffd}", "b": "\u{fffd}", "c": "😀"}),
            Repair::Surrogates,
        ),
        (
            r#"{"a":NaN,"b":-Infinity,"c":1e999,"d":007}"#,
            json!({"a": "NaN", "b": "-Infinity", "c": "1e999", "d": "007"}),
            Repair::Numbers,
        ),
        (
            r#"{"a":["x",],"b":{},}"#,
            json!({"a": ["x"], "b": {}}),
            Repair::Commas,
        ),
        (
            "{\"a\":1\n\"b\":\"x\"\n\"c\":\"y\"}",
            json!({"a": 1, "b": "x", "c": "y"}),
            Repair::Commas,
        ),
        (
            r#"{"a":"disk "sda", "sdb" full","b":1}"#,
            json!({"a": "disk \"sda\", \"sdb\" full", "b": 1}),
            Repair::Quotes,
        ),
        (
            r#"{"a":"{"k":"v"}","b":1}"#,
            json!({"a": "{\"k\":\"v\"}", "b": 1}),
            Repair::Quotes,
        ),
        (
            r#"{"a":"{"k":"v","n":94}","b":1}"#,
            json!({"a": "{\"k\":\"v\",\"n\":94}", "b": 1}),
            Repair::Quotes,
        ),
        (
            "{'a': 'it's down', 'b': True, 'c': None}",
            json!({"a": "it's down", "b": true, "c": null}),
            Repair::Quotes,
        ),
        (
            r#"{"a":,"b":{EVENT.VALUE},"c":$HOSTNAME$,"d":94%}"#,
            json!({"a": null, "b": "{EVENT.VALUE}", "c": "$HOSTNAME$", "d": "94%"}),
            Repair::Words,
        ),
        (
            "{title: \"x\", state: down, tags: [a, b]}",
            json!({"title": "x", "state": "down", "tags": ["a", "b"]}),
            Repair::Words,
        ),
        (
            "{\"a\":{{ .Labels.pod }},\"b\":\"x\"}",
            json!({"a": "{{ .Labels.pod }}", "b": "x"}),
            Repair::Words,
        ),
        (
            r#"{"a":[{"b":"x"},{"b":"ok"#,
            json!({"a": [{"b": "x"}, {"b": "ok…"}]}),
            Repair::CutJson,
        ),
        (r#"{"a":"x"}}"#, json!({"a": "x"}), Repair::Commas),
    ] {
        let decoded = plain(text.as_bytes());
        assert_eq!(decoded.value, Some(expected), "{text}");
        assert!(
            decoded.repairs.contains(&repair),
            "{text} {:?}",
            decoded.repairs
        );
    }
}

#[test]
fn a_text_that_only_begins_like_json_stays_a_text() {
    for text in [
        "[FIRING:1] disk full on db-3",
        "{prod} disk full",
        "[prod, eu] disk full",
        "{",
        "[]]",
        "{disk is full}",
        "\"disk full\" on db-3",
        "{\"a\":1} and then the disk of db-3 was full",
        "[critical]",
    ] {
        assert_eq!(plain(text.as_bytes()).value, None, "{text}");
    }
}

#[test]
fn several_values_are_a_list_and_a_broken_line_costs_only_itself() {
    let expected = json!([{"a": 1}, {"a": 2}]);
    for text in [
        "{\"a\":1}\n{\"a\":2}\n",
        "{\"a\":1}{\"a\":2}",
        "\u{1e}{\"a\":1}\n\u{1e}{\"a\":2}\n",
        "{\n\"a\":1\n}\r\n\r\n{\"a\":2}",
    ] {
        assert_eq!(value(text), expected, "{text:?}");
    }
    let lines = "{\"a\":1}\n{\"a\":\"C:\\T\"}\nno JSON at all\n{\"a\":2}\n";
    assert_eq!(
        value(lines),
        json!([{"a": 1}, {"a": "C:\\T"}, "no JSON at all", {"a": 2}])
    );
    assert_eq!(value("[\n{\"a\":1}\n{\"a\":2}\n]"), expected);
}

#[test]
fn json_in_a_json_text_is_unwrapped() {
    let inner = json!({"a": "x"});
    let text = Value::from(inner.to_string()).to_string();
    assert_eq!(value(&text), inner);
    assert_eq!(value(&Value::from(text).to_string()), inner);
    assert_eq!(value("\"disk full\""), json!("disk full"));
}

#[test]
fn the_fields_of_a_form_are_read_and_a_text_with_signs_is_none() {
    assert_eq!(
        value(
            "Name=Shop+front&Status=Down&URL=https%3A%2F%2Fshop.example&host[name]=m%FCnchen&tag[]=a&tag[]=b&x="
        ),
        json!({"Name": "Shop front", "Status": "Down", "URL": "https://shop.example", "host": {"name": "münchen"}, "tag": ["a", "b"], "x": ""})
    );
    assert_eq!(
        value("token=x&payload=%7B%22title%22%3A%22Disk+full%22%7D"),
        json!({"title": "Disk full"})
    );
    assert_eq!(
        value("title=Disk full on db-3&status=down"),
        json!({"title": "Disk full on db-3", "status": "down"})
    );
    for text in [
        "disk=full",
        "see https://x.example/?a=1&b=2",
        "https://x.example/?a=1&b=2",
        "a=1&b=2\nc",
        "x & y",
    ] {
        assert_eq!(plain(text.as_bytes()).value, None, "{text}");
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,12}",
        "[\\\\\"',:{}\\[\\]a ]{0,10}",
        Just("C:\\".to_owned())
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_valid_is_unchanged(body in any_value()) {
        let text = body.to_string();
        let strict: Value = serde_json::from_str(&text).unwrap();
        if !strict.is_string() {
            let decoded = plain(text.as_bytes());
            prop_assert_eq!(decoded.value.as_ref(), Some(&strict));
            prop_assert!(decoded.repairs.is_empty(), "{:?}", decoded.repairs);
        }
    }

    #[test]
    fn the_repair_changes_no_meaning_of_valid_json(body in any_value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&body).unwrap() } else { body.to_string() };
        if let Some(repaired) = repair::repair(&text) {
            prop_assert!(repaired.repairs.is_empty(), "{:?} {text}", repaired.repairs);
            let strict: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&repaired.json).unwrap(), strict);
        } else {
            let is_small = body.as_object().is_none_or(serde_json::Map::is_empty);
            prop_assert!(is_small, "{text}");
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(body in prop::collection::vec(any::<u8>(), 0..200), encoding in prop_oneof![Just(None), Just(Some("gzip")), Just(Some("deflate"))], label in "[a-z0-9-]{0,8}") {
        let content_type = format!("text/plain; charset={label}");
        let headers = ContentHeaders { content_type: Some(&content_type), encoding };
        if let Ok(decoded) = decode(&body, headers) {
            prop_assert!(decoded.text.len() <= MAX_INFLATED_BYTES * 3);
        }
    }

    #[test]
    fn text_of_the_signs_of_json_is_repaired_to_json_or_not_at_all(text in "[{\\[]([\\\\\"',:{}\\[\\]a0 \n/u-]|\"a\":|\"b\"|null){0,40}") {
        if let Some(repaired) = repair::repair(&text) {
            let parsed: Result<Value, _> = serde_json::from_str(&repaired.json);
            prop_assert!(parsed.is_ok(), "{text} {} {parsed:?}", repaired.json);
        }
    }

    #[test]
    fn a_raw_text_in_a_template_is_its_field(text in "[a-zA-Z0-9 \n\t:;.()ü-]{1,30}", other in "[a-z]{1,8}") {
        let body = format!("{{\"text\":\"{text}\",\"other\":\"{other}\",}}");
        prop_assert_eq!(value(&body), json!({"text": text, "other": other}));
    }

    #[test]
    fn a_compressed_text_is_its_text(text in "[ -~ü]{1,200}") {
        let body = gzip(text.as_bytes());
        prop_assert_eq!(plain(&body).text, text);
    }
}
