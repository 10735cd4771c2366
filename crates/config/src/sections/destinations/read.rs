//! Reads the keys of a declaration. An absent key has the value of the destination that `like` names.

use std::collections::BTreeMap;

use regex::RegexBuilder;
use url::Url;

use super::body;
use super::call;
use super::declaration::{Call, Destination, Equal, Find, Lookup, NamedText, Need, RefForm, Take};
use super::text::{Name, Place, Scope, Text, is_taken};
use crate::read::reader::{Field, Map};
use crate::sections::notifications::own_secret;

/// The limit of a compiled form, in bytes.
const MAX_REGEX_BYTES: usize = 256 * 1024;
/// With fewer a lease could expire while the notes of a destination wait for their turns.
const PER_MINUTE: std::ops::RangeInclusive<u32> = 60..=6_000;
const DEFAULT_PER_MINUTE: u32 = 60;
const MAX_NAME: usize = 40;
/// Headers that the client sets, or that would change where a request goes.
const OWN_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

/// Reads all keys of a declaration. A method that returns `None` has reported the fault.
pub(super) fn read(map: &mut Map<'_>, base: Option<Destination>) -> Option<Destination> {
    let allow_http = map.get("allow_http").and_then(|field| field.flag());
    let address_field = map.get("base");
    let address = address_field.as_ref().and_then(address);
    if let (Some(field), Some(address)) = (&address_field, &address)
        && address.starts_with("http://")
        && allow_http != Some(true)
    {
        let accepted = "https://, or allow_http: true beside it";
        field.fault(format!("an address without TLS; accepted: {accepted}"));
    }
    let based = base.as_ref();
    let with = with(map, based);
    let needs = needs(map, based);
    let scope = Scope {
        references: needs.iter().map(|need| need.name.clone()).collect(),
        with: with.keys().cloned().collect(),
    };
    let find = map.get("find").map(|field| find(&field, &scope));
    let lookup = map.get("lookup").map(|field| lookup(&field, &scope));
    let note = call::read_note(map, &scope, based.map(|base| base.note.clone()));
    let headers = map.get("headers").map(|field| headers(&field, &scope));
    let accepted = map.list("accepted", |field| field.number(200..=299));
    let failed = map.get("failed").map(|field| pointer(&field));
    let per_minute = map
        .get("per_minute")
        .and_then(|field| field.number(PER_MINUTE));
    let idempotent = map.get("idempotent").and_then(|field| field.flag());
    let destination = Destination {
        base: address.unwrap_or_else(|| based.map(|base| base.base.clone()).unwrap_or_default()),
        with,
        needs,
        lookup: lookup.unwrap_or_else(|| based.and_then(|base| base.lookup.clone())),
        find: find.unwrap_or_else(|| based.and_then(|base| base.find.clone())),
        note: note?,
        headers: headers
            .unwrap_or_else(|| based.map(|base| base.headers.clone()).unwrap_or_default()),
        accepted: accepted.map_or_else(
            || based.map_or_else(|| vec![200, 201, 202, 204], |base| base.accepted.clone()),
            |statuses| {
                statuses
                    .into_iter()
                    .filter_map(|each| each.try_into().ok())
                    .collect()
            },
        ),
        failed: failed.unwrap_or_else(|| based.and_then(|base| base.failed.clone())),
        per_minute: per_minute
            .unwrap_or_else(|| based.map_or(DEFAULT_PER_MINUTE, |base| base.per_minute)),
        idempotent: idempotent.unwrap_or_else(|| based.is_some_and(|base| base.idempotent)),
        secret: own_secret(map),
    };
    check(map, &destination);
    Some(destination)
}

/// Reports keys that do not fit together.
fn check(map: &Map<'_>, destination: &Destination) {
    let has_marker = |text: &Text| text.has(&[Name::Marker]);
    let Call { query, body, .. } = &destination.note;
    let is_marked = body.any(has_marker) || query.iter().any(|each| has_marker(&each.text));
    if destination.find.is_some() && !is_marked {
        map.missing(
            "json",
            "a render or {marker} in the note, without which find has nothing to search for",
        );
    }
    let has_secret = destination
        .headers
        .iter()
        .any(|header| header.text.has(&[Name::Secret]));
    if destination.secret.is_some() && !has_secret {
        map.missing(
            "headers",
            "a header with {secret}, beside secret_file or secret_env",
        );
    }
}

/// An address without a placeholder, so that no alert and no model chooses where a request goes.
fn address(field: &Field<'_>) -> Option<String> {
    let text = field.url()?;
    if text.contains(['{', '}']) {
        field.fault("a placeholder in an address; scheme, host and port stand in the file".into());
        return None;
    }
    if Url::parse(&text).is_err() {
        field.expected("a URL with a host, such as https://api.example.com");
        return None;
    }
    Some(text.trim_end_matches('/').to_owned())
}

/// The parameters: those of the base with the values of the user.
fn with(map: &mut Map<'_>, base: Option<&Destination>) -> BTreeMap<String, String> {
    let mut with = base.map(|base| base.with.clone()).unwrap_or_default();
    let entries = map
        .get("with")
        .map(|field| field.entries())
        .unwrap_or_default();
    for (name, field) in entries {
        if base.is_some() && !with.contains_key(&name) {
            let known: Vec<&str> = with.keys().map(String::as_str).collect();
            field.fault(format!(
                "{name:?} is no parameter of it; accepted: {}",
                known.join(", ")
            ));
        } else if is_name(&name, &field)
            && let Some(text) = field.text()
        {
            with.insert(name, text);
        }
    }
    with
}

fn needs(map: &mut Map<'_>, base: Option<&Destination>) -> Vec<Need> {
    let mut needs = base.map(|base| base.needs.clone()).unwrap_or_default();
    let entries = map
        .get("needs")
        .map(|field| field.entries())
        .unwrap_or_default();
    for (name, field) in entries {
        if is_taken(&name) {
            field.fault(format!(
                "{name:?} is the name of a value that every note has"
            ));
        } else if is_name(&name, &field)
            && let Some(form) = ref_form(&field)
        {
            needs.retain(|need| need.name != name);
            needs.push(Need { name, form });
        }
    }
    needs
}

fn is_name(name: &str, field: &Field<'_>) -> bool {
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_name = !name.is_empty() && name.len() <= MAX_NAME && is_plain;
    if !is_name {
        field.fault(format!(
            "{name:?} as a name; accepted: at most {MAX_NAME} lower-case letters, digits and _"
        ));
    }
    is_name
}

/// The form has to fit the whole reference.
fn ref_form(field: &Field<'_>) -> Option<RefForm> {
    let text = field.text()?;
    if !text.starts_with('^') || !text.ends_with('$') {
        field.fault(format!(
            "{text:?}; accepted: a regular expression from ^ to $"
        ));
        return None;
    }
    // In `^a|b$` each end belongs to one branch only.
    let whole = format!("^(?:{text})$");
    let regex = RegexBuilder::new(&text)
        .size_limit(MAX_REGEX_BYTES)
        .build()
        .and_then(|_| {
            RegexBuilder::new(&whole)
                .size_limit(MAX_REGEX_BYTES)
                .build()
        });
    let Ok(regex) = regex else {
        field.expected("a regular expression, such as '^[A-Z0-9]{6,20}$'");
        return None;
    };
    Some(RefForm { regex })
}

fn lookup(field: &Field<'_>, scope: &Scope) -> Option<Lookup> {
    field.section(|map| {
        let call = call::read(map, scope, Place::Elsewhere);
        let take = map.required("take", "{incident: /incidents/0/id}")?;
        let take = take
            .entries()
            .into_iter()
            .filter_map(|(name, field)| {
                if !scope.references.contains(&name) {
                    let known = scope.references.join(", ");
                    field.fault(format!("{name:?} is not named in needs; named: {known}"));
                    return None;
                }
                let pointer = pointer(&field)?;
                Some(Take { name, pointer })
            })
            .collect();
        let equals = map
            .get("equals")
            .map(|field| equals(&field, scope))
            .unwrap_or_default();
        Some(Lookup {
            call: call?,
            take,
            equals,
        })
    })
}

fn equals(field: &Field<'_>, scope: &Scope) -> Vec<Equal> {
    field
        .entries()
        .into_iter()
        .filter_map(|(pointer, field)| {
            if !pointer.starts_with('/') {
                field.fault(format!(
                    "{pointer:?} is no JSON pointer; accepted: /incidents/0/key"
                ));
                return None;
            }
            let text = body::text(&field, scope, Place::Elsewhere)?;
            Some(Equal { pointer, text })
        })
        .collect()
}

fn find(field: &Field<'_>, scope: &Scope) -> Option<Find> {
    field.section(|map| {
        let call = call::read(map, scope, Place::List);
        let items = map.required("items", "the pointer to the list, such as /notes");
        let text = map.required(
            "text",
            "the pointer to the text in an item, such as /content",
        );
        let size = map.get("size").and_then(|field| field.number(1..=1_000));
        Some(Find {
            call: call?,
            items: pointer(&items?)?,
            text: pointer(&text?)?,
            size,
        })
    })
}

fn headers(field: &Field<'_>, scope: &Scope) -> Vec<NamedText> {
    field
        .entries()
        .into_iter()
        .filter_map(|(name, field)| {
            let is_token = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if name.is_empty() || !is_token || OWN_HEADERS.contains(&name.to_lowercase().as_str()) {
                field.fault(format!("{name:?} as a header; accepted: letters, digits and -, no header of the connection"));
                return None;
            }
            let text = body::text(&field, scope, Place::Header)?;
            Some(NamedText { name, text })
        })
        .collect()
}

/// A JSON pointer; empty for the whole answer.
fn pointer(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    if text.is_empty() || text.starts_with('/') {
        return Some(text);
    }
    field.expected("a JSON pointer, such as /incidents/0/id; empty for the whole answer");
    None
}
