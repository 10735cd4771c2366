//! `destinations`: where notes about investigations are written back to, as data. The same reader reads the built-in
//! destinations.
//!
//! `text` has the texts with values, `declaration` the values of a destination; `body`, `call` and `read` read them.
//! `builtin` has the table of the built-in destinations, `schema` the keys for editors.

mod text;
mod declaration;
mod body;
mod call;
mod read;
mod builtin;
mod schema;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Serialize, Serializer};
use serde_json::Value;

pub use self::builtin::{
    BUILTIN_DESTINATION_NAMES, BUILTIN_DESTINATIONS, BuiltinDestination, builtin_destinations,
};
pub use self::declaration::{
    Body, Call, Destination, Equal, Find, Form, Lookup, Member, Method, NamedText, Need, Node,
    Part, RefForm, Render, Take,
};
pub(crate) use self::schema::schema;
pub use self::text::{AM_GROUP, Name, Piece, Text};
use crate::read::reader::{Field, Map};
use crate::sections::notifications::{NotificationRoute, RouteKind};

/// In seconds. A lease has to last while the notes before it are sent, one a second.
const TIMEOUT: RangeInclusive<u64> = 5..=60;
const MAX_NAME_BYTES: usize = 40;
/// The places of requests in the text of a destination, and the keys of each that hold values.
const REQUESTS: [&str; 3] = ["", "/find", "/lookup"];
const VALUES: [&str; 5] = ["with", "headers", "query", "form", "json"];
const NAME: &str = "at most 40 lower-case letters, digits, - and _";

/// A destination of the file. It is a route of the outbox as those of `notifications` are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredDestination {
    pub route: NotificationRoute,
    /// The text of the file, for `config show`.
    written: Value,
}

impl Serialize for ConfiguredDestination {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

impl ConfiguredDestination {
    /// Reads the section. `chains` are the names of the defined chains.
    pub(crate) fn read_all(map: &mut Map<'_>, chains: &[String]) -> BTreeMap<String, Self> {
        let routes = map.field().get("notifications");
        let entries = map
            .get("destinations")
            .map(|field| field.entries())
            .unwrap_or_default();
        entries
            .into_iter()
            .filter_map(|(name, field)| {
                if let Some(problem) = name_fault(&name) {
                    field.fault(problem);
                    return None;
                }
                if routes.as_ref().is_some_and(|routes| routes.has(&name)) {
                    field.fault(format!(
                        "{name:?} is also a route of notifications; accepted: another name"
                    ));
                }
                let destination = Self::read(&name, &field, chains)?;
                Some((name, destination))
            })
            .collect()
    }

    fn read(name: &str, field: &Field<'_>, chains: &[String]) -> Option<Self> {
        field.section(|map| {
            let names: Vec<String> = BUILTIN_DESTINATION_NAMES
                .iter()
                .map(|name| (*name).to_owned())
                .collect();
            let like = match map.get("like") {
                Some(field) => Some(field.reference(&names)),
                None => Some(name.to_owned())
                    .filter(|name| names.contains(name))
                    .map(Some),
            };
            let base = match like {
                // The fault is reported, and no key is reported as missing.
                Some(None) => return None,
                Some(Some(like)) => builtin::builtin(&like),
                None => None,
            };
            let filter = NotificationRoute::read_filter(map, chains);
            let timeout = NotificationRoute::read_timeout(map, TIMEOUT);
            let destination = read::read(map, base)?;
            left_to_the_user(map, &destination);
            let kind = RouteKind::Destination(Box::new(destination));
            Some(Self {
                route: NotificationRoute {
                    timeout: timeout.unwrap_or_else(|| kind.default_timeout()),
                    kind,
                    filter,
                    template: None,
                    started_template: None,
                },
                written: field.written(),
            })
        })
    }

    /// Shows `text` in the place of each parameter, header, and value of a request: an operator may have written a
    /// secret there.
    pub fn hide_values(&mut self, text: &str) {
        for part in REQUESTS {
            for key in VALUES {
                if let Some(value) = self.written.pointer_mut(&format!("{part}/{key}")) {
                    hide(value, text);
                }
            }
        }
    }

    /// Shows what `replace` makes of a text in the values of a request, which it gets after the name of the text's key;
    /// `None` leaves the text.
    pub fn replace_texts(&mut self, replace: &dyn Fn(&str, &str) -> Option<String>) {
        for part in REQUESTS {
            for key in VALUES {
                if let Some(value) = self.written.pointer_mut(&format!("{part}/{key}")) {
                    replace_in(key, value, replace);
                }
            }
        }
    }

    /// The declaration, with the values of the destination that it is like.
    pub fn destination(&self) -> Option<&Destination> {
        match &self.route.kind {
            RouteKind::Destination(destination) => Some(destination),
            RouteKind::SlackWebhook { .. }
            | RouteKind::SlackBot { .. }
            | RouteKind::Teams { .. }
            | RouteKind::Webhook { .. }
            | RouteKind::Email(_) => None,
        }
    }
}

fn replace_in(name: &str, value: &mut Value, replace: &dyn Fn(&str, &str) -> Option<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                replace_in(name, value, replace);
            }
        }
        Value::Array(items) => {
            for value in items {
                replace_in(name, value, replace);
            }
        }
        Value::String(text) => {
            if let Some(replaced) = replace(name, text) {
                *text = replaced;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Shows `text` in the place of each leaf.
fn hide(value: &mut Value, text: &str) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| hide(value, text)),
        Value::Array(items) => items.iter_mut().for_each(|value| hide(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            *value = Value::from(text);
        }
    }
}

/// Reports what a declaration leaves to the user, and the user has not given.
fn left_to_the_user(map: &Map<'_>, destination: &Destination) {
    if destination.base.is_empty() && !map.has("base") {
        map.missing("base", "the address, such as https://example.atlassian.net");
    }
    for name in destination
        .with
        .iter()
        .filter(|(_, value)| value.is_empty())
        .map(|(name, _)| name)
    {
        map.missing(&format!("with.{name}"), "a text");
    }
    let has_secret = destination
        .headers
        .iter()
        .any(|header| header.text.has(&[Name::Secret]));
    if has_secret
        && destination.secret.is_none()
        && !map.has("secret_file")
        && !map.has("secret_env")
    {
        map.missing(
            "secret_file",
            "secret_file, or secret_env with the name of a variable",
        );
    }
}

fn name_fault(name: &str) -> Option<String> {
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'));
    let is_name = !name.is_empty() && name.len() <= MAX_NAME_BYTES && is_plain;
    (!is_name).then(|| format!("{name:?} as a name; accepted: {NAME}"))
}

#[cfg(test)]
mod tests;
