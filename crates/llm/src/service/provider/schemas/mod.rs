//! The schemas of tools as each provider accepts them.
//!
//! A provider refuses the whole request because of one schema that it does not like, so a schema is rewritten to one
//! that means the same. What a provider has no form for becomes a sentence of the tool's description. A schema that
//! every provider accepts stays as it is.

mod names;
mod nested;
mod references;
mod top;

use serde_json::{Map, Value, json};

pub(crate) use self::names::Renamed;

/// The subset of JSON Schema that a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    names: PropertyNames,
    references: References,
}

/// The names that a property may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PropertyNames {
    Any,
    /// 1 to 64 letters, digits, `_`, `.` and `-`.
    Plain,
}

/// Whether a schema may refer to its definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum References {
    Kept,
    /// Each reference is replaced by its definition, as far as that ends.
    Replaced,
}

const OPENAI: Dialect = Dialect {
    names: PropertyNames::Any,
    references: References::Kept,
};
const ANTHROPIC: Dialect = Dialect {
    names: PropertyNames::Plain,
    references: References::Kept,
};
const STRICTEST: Dialect = Dialect {
    names: PropertyNames::Plain,
    references: References::Replaced,
};

/// The known dialects of providers. A server that may pass a request on to any other one gets the strictest form.
const DIALECTS: [(&str, Dialect); 3] = [
    ("openai", OPENAI),
    ("azure", OPENAI),
    ("anthropic", ANTHROPIC),
];

impl Dialect {
    pub(crate) fn for_provider(provider: &str) -> Self {
        DIALECTS
            .iter()
            .find(|(name, _)| *name == provider)
            .map_or(STRICTEST, |(_, dialect)| *dialect)
    }
}

/// A schema that was rewritten.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Rewritten {
    pub schema: Map<String, Value>,
    /// The rules that the schema lost, for the description of the tool; empty without any.
    pub notes: String,
    /// The names of properties that were changed.
    pub(crate) renamed: Renamed,
}

/// The schema of a tool's arguments for a provider.
pub(crate) fn rewritten(schema: Map<String, Value>, dialect: Dialect) -> Rewritten {
    let mut notes = Vec::new();
    let root = Value::Object(schema.clone());
    let mut schema = top::object(schema, &root, &mut notes);
    if dialect.references == References::Replaced {
        schema = references::replaced(schema, &root);
    }
    let mut schema = nested::completed(schema, &root);
    let mut renamed = Renamed::default();
    if dialect.names == PropertyNames::Plain {
        schema = renamed.rename(schema);
    }
    if schema.get("type").is_some_and(|word| word != "object") {
        schema.insert("type".to_owned(), json!("object"));
    }
    if schema
        .get("properties")
        .is_some_and(|properties| !properties.is_object())
    {
        schema.insert("properties".to_owned(), json!({}));
    }
    notes.extend(renamed.note());
    Rewritten {
        schema,
        notes: notes.join(" "),
        renamed,
    }
}

/// A description with what the schema lost.
pub fn described(description: &str, notes: &str) -> String {
    match (description.trim().is_empty(), notes.is_empty()) {
        (_, true) => description.to_owned(),
        (true, false) => notes.to_owned(),
        (false, false) => format!("{description}\n\n{notes}"),
    }
}

/// The subschema at a reference like `#/$defs/pod`.
fn target<'s>(root: &'s Value, reference: &Value) -> Option<&'s Value> {
    root.pointer(reference.as_str()?.strip_prefix('#')?)
}

#[cfg(test)]
mod tests;
