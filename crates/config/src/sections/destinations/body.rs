//! Reads the bodies of requests: a tree whose leaves are texts, and forms.

use serde_json::Value;

use super::declaration::{Form, Member, NamedText, Node, Part, Render};
use super::text::{Place, Scope, Text};
use crate::read::reader::Field;

/// A shorter report would have no room for its link and its marker.
const MIN_RENDERED: u32 = 2_000;
const MAX_RENDERED: u32 = 200_000;
const DEFAULT_RENDERED: u32 = 16_000;

/// A text with values.
pub(super) fn text(field: &Field<'_>, scope: &Scope, place: Place) -> Option<Text> {
    let written = field.text()?;
    parsed(field, &written, scope, place)
}

/// A part of the text of a field.
pub(super) fn parsed(field: &Field<'_>, part: &str, scope: &Scope, place: Place) -> Option<Text> {
    Text::parse(part, scope, place)
        .inspect_err(|fault| field.fault(fault.clone()))
        .ok()
}

/// The fields of a form, or the parameters of a query.
pub(super) fn pairs(field: &Field<'_>, scope: &Scope, place: Place) -> Vec<NamedText> {
    field
        .entries()
        .into_iter()
        .filter_map(|(name, field)| {
            let name = literal(name, &field)?;
            let text = text(&field, scope, place)?;
            Some(NamedText { name, text })
        })
        .collect()
}

/// A node of a JSON body. A mapping with the key `render` is a rendered text.
pub(super) fn node(field: &Field<'_>, scope: &Scope, place: Place) -> Option<Node> {
    Some(match field.json() {
        Value::Null => Node::Null,
        Value::Bool(yes) => Node::Bool(yes),
        Value::Number(number) => Node::Number(number),
        Value::String(_) => Node::Text(text(field, scope, place)?),
        Value::Array(_) => Node::List(
            field
                .list()?
                .iter()
                .map(|item| node(item, scope, place))
                .collect::<Option<_>>()?,
        ),
        Value::Object(members) if members.contains_key("render") => Node::Render(render(field)?),
        Value::Object(_) => Node::Map(
            field
                .entries()
                .into_iter()
                .map(|(name, field)| member(name, &field, scope, place))
                .collect::<Option<_>>()?,
        ),
    })
}

fn member(name: String, field: &Field<'_>, scope: &Scope, place: Place) -> Option<Member> {
    Some(Member {
        name: literal(name, field)?,
        node: node(field, scope, place)?,
    })
}

fn literal(name: String, field: &Field<'_>) -> Option<String> {
    if name.contains(['{', '}']) {
        field.fault("a placeholder in a name; only texts have values".into());
        return None;
    }
    Some(name)
}

fn render(field: &Field<'_>) -> Option<Render> {
    field.section(|map| {
        let parts = Part::ALL.map(Part::as_str).join(", ");
        let part = map
            .required("render", &parts)
            .and_then(|field| field.choice(&Part::ALL, Part::as_str));
        let forms = Form::ALL.map(Form::as_str).join(", ");
        let form = map
            .required("as", &forms)
            .and_then(|field| field.choice(&Form::ALL, Form::as_str));
        let max = map
            .get("max")
            .and_then(|field| field.number(MIN_RENDERED..=MAX_RENDERED))
            .unwrap_or(DEFAULT_RENDERED);
        Some(Render {
            part: part?,
            form: form?,
            max: max.try_into().unwrap_or(usize::MAX),
        })
    })
}
