//! Values that try to be more than values: the request has the structure of one with harmless values.

use std::collections::BTreeSet;

use proptest::prelude::*;
use regex::Regex;
use serde_json::Value;
use tarsy_config::sections::destinations::{BUILTIN_DESTINATION_NAMES, Destination, RefForm};
use tarsy_core::alert::refs::Refs;
use tarsy_core::notification::Notification;

use super::{builtin, message};
use crate::destination::render::Report;
use crate::destination::request::{Parts, Request};
use crate::destination::values::{Fault, Values};

const HOSTILE: [&str; 18] = [
    "\"}],\"x\":[{\"y\":\"",
    "a\r\nHost: evil.example\r\n\r\nGET / HTTP/1.1",
    "../../admin",
    "..",
    ".",
    "%2e%2e",
    "..%2f..",
    "@channel @here <!channel> <@U1>",
    "?admin=1&x=2#y",
    "https://evil.example/",
    "//evil.example",
    "\\..\\",
    "{\"type\":\"mention\",\"attrs\":{\"id\":\"1\"}}",
    "{with.from}{secret}{{title}}",
    "<script>alert(1)</script><img src=x onerror=y>",
    "[code]<b>x</b>[/code]",
    "a^ORDERBYx^NQactive=true",
    "\u{202e}\u{0}\u{2028}\u{feff}",
];

/// A destination that accepts every reference.
fn open(name: &str) -> Destination {
    let mut destination = builtin(name, "https://vendor.example.com/base");
    let every = Regex::new("^(?s:.*)$").unwrap();
    for need in &mut destination.needs {
        need.form = RefForm {
            regex: every.clone(),
        };
    }
    destination
}

/// A message with the value in every place that something outside of tarsy fills.
fn filled(destination: &Destination, value: &str) -> Notification {
    let mut message = message(Refs::default());
    message.summary.title = value.to_owned();
    message.summary.chain = Some(value.to_owned());
    message.summary.analysis = Some(format!("Cause: {value}\n\n{value}\n\n- {value}\n"));
    let references = destination
        .needs
        .iter()
        .map(|need| (need.name.clone(), value.to_owned()));
    message.summary.refs = Refs::new(references);
    message
}

fn requests(destination: &Destination, value: &str) -> Result<Vec<Request>, Fault> {
    let mut destination = destination.clone();
    destination
        .with
        .values_mut()
        .for_each(|with| *with = value.to_owned());
    let message = filled(&destination, value);
    let report = Report::new(&message);
    let mut values = Values::new(&destination, &message, "s3cret");
    for need in &destination.needs {
        // Also what `Refs` itself would leave out.
        values.add(&need.name, value.to_owned());
    }
    let parts = Parts {
        destination: &destination,
        values: &values,
        report: &report,
    };
    let find = destination.find.iter().map(|find| &find.call);
    find.chain([&destination.note])
        .map(|call| Request::new(&parts, call))
        .collect()
}

/// The parts of a request that must not depend on values.
#[derive(Debug, PartialEq, Eq)]
struct Structure {
    origin: String,
    segments: usize,
    query: Vec<String>,
    fragment: Option<String>,
    headers: Vec<String>,
    body: String,
}

fn structure(request: &Request) -> Structure {
    let url = &request.url;
    let body = request.body.as_deref().unwrap_or("null");
    Structure {
        origin: format!(
            "{} {:?}",
            url.origin().ascii_serialization(),
            url.username()
        ),
        segments: url.path_segments().unwrap().count(),
        query: url
            .query_pairs()
            .map(|(name, _)| name.into_owned())
            .collect(),
        fragment: url.fragment().map(str::to_owned),
        headers: request.headers.keys().map(ToString::to_string).collect(),
        body: shape(&serde_json::from_str(body).unwrap()),
    }
}

/// The keys and types of JSON. A document of Atlassian has as many nodes as the analysis has paragraphs.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(members) if members.get("type") == Some(&Value::from("doc")) => {
            nodes(value);
            "document".to_owned()
        }
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| format!("{key:?}:{},", shape(value)))
            .collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| format!("[{}]", shape(item)))
            .collect(),
        Value::String(_) => "text".to_owned(),
        Value::Number(_) | Value::Bool(_) | Value::Null => value.to_string(),
    }
}

/// Every node of a document is of a known type, and its only link leads to the page of the investigation.
fn nodes(document: &Value) {
    let known: BTreeSet<&str> = [
        "doc",
        "paragraph",
        "heading",
        "bulletList",
        "orderedList",
        "listItem",
        "blockquote",
        "codeBlock",
        "text",
        "hardBreak",
        "strong",
        "em",
        "code",
        "link",
    ]
    .into();
    let mut open = vec![document];
    while let Some(node) = open.pop() {
        let kind = node["type"].as_str().unwrap();
        assert!(known.contains(kind), "{node}");
        if kind == "link" {
            let href = node["attrs"]["href"].as_str().unwrap();
            assert!(
                href.starts_with("https://tarsy.example.com/sessions/"),
                "{node}"
            );
        }
        assert!(kind != "text" || node["text"] != "", "{node}");
        for below in ["content", "marks"] {
            open.extend(node[below].as_array().into_iter().flatten());
        }
    }
}

fn is_contained(name: &str, value: &str) {
    let destination = open(name);
    let harmless: Vec<Structure> = requests(&destination, "value")
        .unwrap()
        .iter()
        .map(structure)
        .collect();
    match requests(&destination, value) {
        Ok(requests) => {
            let found: Vec<Structure> = requests.iter().map(structure).collect();
            assert_eq!(found, harmless, "{name} {value:?}");
        }
        // A value that no path or header can have is not sent at all.
        Err(Fault::Unfit(_)) => {}
        Err(Fault::Absent(reference)) => panic!("{name} {value:?}: {reference}"),
    }
}

#[test]
fn a_hostile_value_changes_no_structure_of_any_request() {
    for name in BUILTIN_DESTINATION_NAMES {
        for value in HOSTILE {
            is_contained(name, value);
        }
    }
}

proptest! {
    #[test]
    fn no_value_changes_the_structure_of_any_request(
        value in prop_oneof![any::<String>(), "[\\PC\\p{Cc}\"'\\\\{}<>@#/?&%.:\\r\\n]{0,60}"],
        index in 0..BUILTIN_DESTINATION_NAMES.len(),
    ) {
        is_contained(BUILTIN_DESTINATION_NAMES[index], &value);
    }
}
