//! Reads the keys of a source. An absent key has the value of the source that `like` names.

use super::fields::Scope;
use crate::read::reader::{Field, Map};
use tarsy_core::alert::{AlertStatus, Severity};
use tarsy_core::sources::{
    Base, Capture, Expression, LabelSource, LinkSource, Pointer, RefSource, Rule, Source, Tag,
    TagRef,
};

const KEY: &str = "a list of parts, such as [/check/id, /host | /ip], or a list of such lists";
const LABELS: &str =
    "{object: /labels}, {list: /tags, split: ':'} or {list: /dims, name: name, value: value}";
/// Pointers that a rule needs, so that it does not fit by chance.
const MIN_POINTERS: usize = 2;
const MAX_REFS: usize = 8;
const MAX_REF_NAME: usize = 40;

/// The origin of a source: built in, or written by a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Builtin,
    User,
}

/// Reads all keys of a source but `like` and `auth`.
pub(super) fn read(map: &mut Map<'_>, base: Source, origin: Origin) -> Source {
    if origin == Origin::Builtin {
        for key in ["recognise", "type", "key"]
            .into_iter()
            .filter(|key| !map.has(key))
        {
            map.missing(key, "a value, in each built-in source");
        }
    }
    let each = map.get("each").and_then(|field| each(&field)).or(base.each);
    let mut scope = Scope {
        groups: Vec::new(),
        has_each: each.is_some(),
    };
    let capture = map
        .get("capture")
        .and_then(|field| capture(&field, &scope))
        .or(base.capture);
    scope.groups = capture
        .iter()
        .flat_map(Capture::names)
        .map(str::to_owned)
        .collect();
    let (parse, parse_element) = match map.list("parse", |field| scope.pointer(field)) {
        Some(pointers) => pointers
            .into_iter()
            .partition(|pointer| pointer.base() == Base::Body),
        None => (base.parse, base.parse_element),
    };
    let expression =
        |map: &mut Map<'_>, key| map.get(key).and_then(|field| scope.expression(&field));
    let severity = map
        .get("severity")
        .map(|field| scope.words(&field, &Severity::ALL, Severity::as_str));
    let status = map
        .get("status")
        .map(|field| scope.words(&field, &AlertStatus::ALL, AlertStatus::as_str));
    Source {
        recognise: map
            .get("recognise")
            .map_or(base.recognise, |field| rules(&field)),
        ignore: scope.conditions(map, "ignore").unwrap_or(base.ignore),
        alert_type: expression(map, "type").or(base.alert_type),
        title: expression(map, "title").or(base.title),
        severity: severity.unwrap_or(base.severity),
        status: status.unwrap_or(base.status),
        test: scope.test_signs(map).unwrap_or(base.test),
        key: map
            .get("key")
            .map(|field| key(&field, &scope))
            .unwrap_or(base.key),
        labels: map
            .list("labels", |field| label(field, &scope))
            .unwrap_or(base.labels),
        links: map
            .get("links")
            .map(|field| links(&field, &scope))
            .unwrap_or(base.links),
        runbook: expression(map, "runbook").or(base.runbook),
        refs: map
            .get("refs")
            .map(|field| refs(&field, &scope))
            .unwrap_or(base.refs),
        at: expression(map, "at").or(base.at),
        text: map
            .get("text")
            .map_or(base.text, |field| text(&field, &scope)),
        parse,
        parse_element,
        each,
        capture,
    }
}

/// The list of alerts in a body; an empty text is the body itself.
fn each(field: &Field<'_>) -> Option<Pointer> {
    if field.text()?.is_empty() {
        Some(Pointer::body())
    } else {
        Scope::body_pointer(field)
    }
}

fn capture(field: &Field<'_>, scope: &Scope) -> Option<Capture> {
    field.section(|map| {
        let from = map
            .required("from", "/title")
            .and_then(|field| scope.expression(&field));
        let field = map.required("regex", r"'^\[(?<state>[^\]]+)\] (?<name>.*)$'")?;
        let regex = field.text()?;
        match Capture::new(from?, &regex) {
            Ok(capture) => Some(capture),
            Err(fault) => {
                field.fault(format!("{regex:?}; {fault}"));
                None
            }
        }
    })
}

/// A rule, or a list of rules.
fn rules(field: &Field<'_>) -> Vec<Rule> {
    if field.is_map() {
        return vec![rule(field)];
    }
    let rules = field.list().unwrap_or_default();
    if rules.is_empty() {
        field.expected("{has: [/check/id, /check/state]}, or a list of such rules");
    }
    rules.iter().map(rule).collect()
}

fn rule(field: &Field<'_>) -> Rule {
    let rule = field.section(|map| Rule {
        has: map.list("has", Scope::body_pointer).unwrap_or_default(),
        equals: Scope::default()
            .conditions(map, "equals")
            .unwrap_or_default(),
        lacks: map.list("lacks", Scope::body_pointer).unwrap_or_default(),
    });
    if field.is_map() && rule.strength() < MIN_POINTERS {
        let count = rule.strength();
        field.fault(format!(
            "{count} of has and equals; accepted: at least {MIN_POINTERS} pointers, one of them the vendor's own"
        ));
    }
    rule
}

/// A list of parts, or a list of such lists.
fn key(field: &Field<'_>, scope: &Scope) -> Vec<Vec<Expression>> {
    let items = field.list().unwrap_or_default();
    if items.is_empty() {
        field.expected(KEY);
        return Vec::new();
    }
    if items.iter().all(Field::is_text) {
        return vec![expressions(&items, scope)];
    }
    let mut lists = Vec::new();
    for item in &items {
        let Some(parts) = item.list() else {
            continue;
        };
        if parts.is_empty() {
            item.expected(KEY);
        }
        lists.push(expressions(&parts, scope));
    }
    lists
}

fn expressions(parts: &[Field<'_>], scope: &Scope) -> Vec<Expression> {
    parts
        .iter()
        .filter_map(|part| scope.expression(part))
        .collect()
}

fn label(field: &Field<'_>, scope: &Scope) -> Option<LabelSource> {
    if !field.is_map() {
        field.expected(LABELS);
        return None;
    }
    field.section(|map| {
        let object = map.get("object").map(|field| scope.pointer(&field));
        let list = map.get("list").map(|field| scope.pointer(&field));
        let separator = map.text("split").filter(|separator| !separator.is_empty());
        let name = field_pointer(map, "name");
        let value = field_pointer(map, "value");
        match (object, list, separator, name, value) {
            (Some(object), None, None, None, None) => Some(LabelSource::Object(object?)),
            (None, Some(list), Some(separator), None, None) => Some(LabelSource::Split {
                list: list?,
                separator,
            }),
            (None, Some(list), None, Some(name), Some(value)) => Some(LabelSource::Pairs {
                list: list?,
                name,
                value,
            }),
            _ => {
                field.expected(LABELS);
                None
            }
        }
    })
}

/// The name of a field in an element, or a pointer to it.
fn field_pointer(map: &mut Map<'_>, key: &'static str) -> Option<Pointer> {
    let field = map.get(key)?;
    let text = field.text()?;
    let path = if text.starts_with('/') {
        text
    } else {
        format!("/{}", text.replace('~', "~0").replace('/', "~1"))
    };
    match Pointer::parse(&path) {
        Ok(pointer) => Some(pointer),
        Err(fault) => {
            field.fault(format!("{path:?}; {fault}"));
            None
        }
    }
}

fn links(field: &Field<'_>, scope: &Scope) -> Vec<LinkSource> {
    field
        .entries()
        .into_iter()
        .filter_map(|(name, field)| {
            let url = scope.expression(&field)?;
            Some(LinkSource { name, url })
        })
        .collect()
}

fn refs(field: &Field<'_>, scope: &Scope) -> Vec<RefSource> {
    named_refs(field)
        .into_iter()
        .filter_map(|(name, field)| {
            let id = scope.expression(&field)?;
            let name = ref_name(name, &field)?;
            Some(RefSource { id, name })
        })
        .collect()
}

/// The references of a source that code reads: `{ticket: annotations.jira}`.
pub(super) fn tag_refs(map: &mut Map<'_>) -> Vec<TagRef> {
    map.get("refs")
        .map(|field| named_refs(&field))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(name, field)| {
            let tag = tag(&field)?;
            let name = ref_name(name, &field)?;
            Some(TagRef { name, tag })
        })
        .collect()
}

fn tag(field: &Field<'_>) -> Option<Tag> {
    let text = field.text()?;
    match text.split_once('.').filter(|(_, tag)| !tag.is_empty()) {
        Some(("labels", tag)) => Some(Tag::Label(tag.to_owned())),
        Some(("annotations", tag)) => Some(Tag::Annotation(tag.to_owned())),
        Some(_) | None => {
            field.expected("a label or an annotation, such as labels.ticket or annotations.ticket");
            None
        }
    }
}

fn named_refs<'f>(field: &Field<'f>) -> Vec<(String, Field<'f>)> {
    let entries = field.entries();
    if entries.len() > MAX_REFS {
        field.fault(format!(
            "{} references; accepted: at most {MAX_REFS}",
            entries.len()
        ));
    }
    entries
}

/// A name of a reference, which destinations and templates use.
fn ref_name(name: String, field: &Field<'_>) -> Option<String> {
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if name.is_empty() || name.len() > MAX_REF_NAME || !is_plain {
        field.fault(format!(
            "{name:?} as a name; accepted: at most {MAX_REF_NAME} lower-case letters, digits and _"
        ));
        return None;
    }
    Some(name)
}

/// `all`, or the fields that the investigation reads.
fn text(field: &Field<'_>, scope: &Scope) -> Option<Vec<Pointer>> {
    if field.is_text() {
        field.word(&["all"]);
        return None;
    }
    Some(
        field
            .list()?
            .iter()
            .filter_map(|field| scope.pointer(field))
            .collect(),
    )
}
