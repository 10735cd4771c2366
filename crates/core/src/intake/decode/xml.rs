//! XML as an object: attributes and elements are fields, a name that occurs again is a list.

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use serde_json::{Map, Value};

use super::note;
use crate::sources::Repair;

/// Deeper elements make the body a plain text.
const MAX_DEPTH: usize = 64;
/// The field of the text of an element that has attributes or elements beside it.
const TEXT: &str = "text";

/// An element that is not closed yet.
struct Open {
    name: String,
    fields: Map<String, Value>,
    text: String,
}

/// The fields of XML; `None` for any other text. A page of HTML is a text.
pub(super) fn parse(text: &str, repairs: &mut Vec<Repair>) -> Option<Value> {
    if !text.trim_start().starts_with('<') {
        return None;
    }
    let value = document(text)?;
    note(repairs, Repair::Xml);
    Some(value)
}

fn document(text: &str) -> Option<Value> {
    let mut reader = Reader::from_str(text.trim());
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Open> = Vec::new();
    let mut root = Map::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) if open.len() < MAX_DEPTH => open.push(Open::new(&start)),
            Event::Start(_) | Event::Empty(_) => return None,
            Event::End(_) => {
                let Open { name, fields, text } = open.pop()?;
                add(
                    open.last_mut().map_or(&mut root, |outer| &mut outer.fields),
                    name,
                    value(fields, text.trim()),
                );
            }
            // A text beside the element is no XML.
            Event::Text(text) if open.is_empty() && !text.trim().is_empty() => return None,
            Event::Text(text) => open
                .last_mut()
                .into_iter()
                .for_each(|open| open.text.push_str(&text)),
            Event::CData(text) => open.last_mut()?.text.push_str(&text),
            Event::GeneralRef(entity) => {
                let character = entity.resolve_char_ref().ok()?.map(String::from);
                open.last_mut()?.text.push_str(
                    &character.or_else(|| resolve_predefined_entity(&entity).map(str::to_owned))?,
                );
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            Event::Eof => break,
        }
    }
    let is_page = root.keys().any(|name| name.eq_ignore_ascii_case("html"));
    (open.is_empty() && !root.is_empty() && !is_page).then_some(Value::Object(root))
}

impl Open {
    /// Names of namespaces are left out.
    fn new(start: &BytesStart<'_>) -> Self {
        let mut fields = Map::new();
        for attribute in start.attributes().with_checks(false).flatten() {
            let name = attribute.key;
            let is_namespace = name.as_ref() == "xmlns" || name.as_ref().starts_with("xmlns:");
            if let Ok(text) = attribute.normalized_value(XmlVersion::Implicit1_0)
                && !is_namespace
            {
                add(
                    &mut fields,
                    name.local_name().into_inner().to_owned(),
                    Value::String(text.into_owned()),
                );
            }
        }
        Self {
            name: start.local_name().into_inner().to_owned(),
            fields,
            text: String::new(),
        }
    }
}

/// An element without attributes and elements is its text.
fn value(mut fields: Map<String, Value>, text: &str) -> Value {
    if fields.is_empty() {
        return Value::String(text.to_owned());
    }
    if !text.is_empty() {
        add(&mut fields, TEXT.to_owned(), Value::String(text.to_owned()));
    }
    Value::Object(fields)
}

fn add(fields: &mut Map<String, Value>, name: String, value: Value) {
    match fields.get_mut(&name) {
        None => {
            fields.insert(name, value);
        }
        Some(Value::Array(items)) => items.push(value),
        Some(first) => {
            let first_value = first.take();
            *first = Value::Array(vec![first_value, value]);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(text: &str) -> Option<Value> {
        parse(text, &mut Vec::new())
    }

    #[test]
    fn attributes_and_elements_are_fields_and_repeated_names_are_lists() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?><!-- an alert -->
            <m:alert xmlns:m="urn:x" id="7" severity="CRITICAL">
              <host name="db-1"><ip>10.0.0.1</ip><ip>10.0.0.2</ip></host>
              <message>disk &gt; 90&#x25; <![CDATA[<full>]]></message><empty/>
            </m:alert>"#;
        let expected = json!({"alert": {"id": "7", "severity": "CRITICAL", "empty": "",
            "host": {"name": "db-1", "ip": ["10.0.0.1", "10.0.0.2"]}, "message": "disk > 90% <full>"}});
        assert_eq!(fields(text), Some(expected));
        assert_eq!(
            fields("<a b=\"1\">text</a>"),
            Some(json!({"a": {"b": "1", "text": "text"}}))
        );
    }

    #[test]
    fn a_page_a_cut_document_and_a_text_with_a_bracket_are_texts() {
        for text in [
            "<html><body>down</body></html>",
            "<a><b></a>",
            "<a>",
            "< 5 % free",
            "<b>disk</b> full",
            "<a>&x;</a>",
        ] {
            assert_eq!(fields(text), None, "{text}");
        }
        let deep = "<a>".repeat(100) + &"</a>".repeat(100);
        assert_eq!(fields(&deep), None);
    }
}
