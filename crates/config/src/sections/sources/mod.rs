//! `sources`: the systems that send alerts, and the form of their bodies. The same reader reads the built-in sources.
//!
//! `fields` reads pointers, expressions and words, `declaration` the keys of a source, `auth` the proof of its sender.
//! `builtin` has the table of the built-in sources, `schema` the keys for editors.

mod fields;
mod declaration;
mod auth;
mod builtin;
mod schema;

use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

pub use self::auth::SourceAuth;
pub use self::builtin::{BUILTIN, BUILTIN_SOURCE_NAMES, builtin_sources, parse_source};
use self::declaration::Origin;
pub(crate) use self::schema::schema;
use crate::read::reader::{Field, Map};
use tarsy_core::sources::{NamedSource, Reader, Source, Sources};

/// Names that read as another form of fingerprints, or as another path.
const RESERVED: [&str; 6] = ["header", "json", "text", "question", "generic", "alert"];
const MAX_NAME_BYTES: usize = 40;
/// No receiver reads more.
const MAX_BODY_BYTES: u64 = 32 * 1024 * 1024;
const NAME: &str =
    "a name of at most 40 lower-case letters, digits, - and _ that begins with a letter or digit";

/// The sources of the user, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfiguredSources(Vec<ConfiguredSource>);

/// A source of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredSource {
    pub source: NamedSource,
    /// The authentication of its senders; `None`: as the receiver demands it from everybody.
    pub auth: Option<SourceAuth>,
    /// The largest body on its path, in bytes.
    pub max_body: Option<u64>,
    /// The text of the file, for `config show`.
    written: Value,
}

impl ConfiguredSources {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        let entries = map
            .get("sources")
            .map(|field| field.entries())
            .unwrap_or_default();
        Self(
            entries
                .iter()
                .filter_map(|(name, field)| read(name, field))
                .collect(),
        )
    }

    pub fn iter(&self) -> impl Iterator<Item = &ConfiguredSource> {
        self.0.iter()
    }

    /// Returns these and the built-in sources, as the intake needs them.
    pub fn all(&self) -> Arc<Sources> {
        let users = self
            .0
            .iter()
            .map(|configured| configured.source.clone())
            .collect();
        Arc::new(Sources::new(users, builtin_sources().to_vec()))
    }

    /// The proof that a source demands.
    pub fn auth(&self, name: &str) -> Option<&SourceAuth> {
        self.0
            .iter()
            .find(|configured| configured.source.name == name)?
            .auth
            .as_ref()
    }
}

impl Serialize for ConfiguredSources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|configured| {
            map.serialize_entry(&configured.source.name, &configured.written)
        })?;
        map.end()
    }
}

fn read(name: &str, field: &Field<'_>) -> Option<ConfiguredSource> {
    if let Some(problem) = source_name_fault(name) {
        field.fault(problem);
        return None;
    }
    field.section(|map| {
        let names: Vec<String> = BUILTIN_SOURCE_NAMES
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        let like = map.get("like").map(|field| field.reference(&names));
        let is_same = names.iter().any(|known| known == name);
        if let (Some(Some(like)), true) = (&like, is_same)
            && like != name
        {
            map.missing(
                "like",
                &format!("no other source than {name}, which is built in; choose another name"),
            );
        }
        let base = match like {
            // The fault is reported, and its keys are not reported as missing.
            Some(None) => Some(Reader::Declared(Box::default())),
            Some(Some(like)) => builtin(&like),
            None if is_same => builtin(name),
            None => None,
        };
        let reader = match base {
            Some(Reader::Alertmanager(_)) => Reader::Alertmanager(declaration::tag_refs(map)),
            Some(Reader::Grafana(_)) => Reader::Grafana(declaration::tag_refs(map)),
            Some(Reader::Declared(base)) => {
                declared(map, if is_same { *base } else { unnamed(*base) })
            }
            None => declared(map, Source::default()),
        };
        let auth = map.get("auth").and_then(|field| SourceAuth::read(&field));
        let max_body = map
            .get("max_body")
            .and_then(|field| field.bytes(1_024..=MAX_BODY_BYTES));
        let source = NamedSource {
            name: name.to_owned(),
            reader,
        };
        Some(ConfiguredSource {
            source,
            auth,
            max_body,
            written: field.written(),
        })
    })
}

fn builtin(name: &str) -> Option<Reader> {
    builtin_sources()
        .iter()
        .find(|source| source.name == name)
        .map(|source| source.reader.clone())
}

/// A source like another one is reached by its name, or by a separate rule.
fn unnamed(source: Source) -> Source {
    Source {
        recognise: Vec::new(),
        ..source
    }
}

fn declared(map: &mut Map<'_>, base: Source) -> Reader {
    Reader::Declared(Box::new(declaration::read(map, base, Origin::User)))
}

/// The reason why a text is no name of a source. It is a part of a path and of subjects.
pub fn source_name_fault(name: &str) -> Option<String> {
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'));
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !begins || name.len() > MAX_NAME_BYTES || !is_plain {
        return Some(format!("{name:?} as a name; accepted: {NAME}"));
    }
    RESERVED.contains(&name).then(|| {
        format!(
            "{name:?} is reserved; accepted: another name than {}",
            RESERVED.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
