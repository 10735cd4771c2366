//! Limits the work of a comparison before it begins, because the validator cannot be interrupted.
//!
//! A small schema can be expensive: when each of thirty definitions refers twice to the next one, the last is visited a
//! billion times. So the visits are counted, with every reference followed, as deep as the arguments are nested.

use serde_json::{Map, Value};

/// The subschemas that one comparison may visit, for each value of the arguments.
const MAX_VISITS: usize = 20_000;
/// The product of the visits and the values of one comparison.
const MAX_WORK: usize = 2_000_000;
/// The limit of nested subschemas and references; each takes some stack.
const MAX_DEPTH: usize = 128;
/// Each pattern is compiled, which takes time and memory.
const MAX_PATTERNS: usize = 32;
/// A value counts once more for each piece of this size.
const VALUE_BYTES: usize = 64;

/// Whether a comparison of `arguments` with `schema` takes little time and memory, and follows no reference that this
/// count does not understand.
pub(super) fn is_bounded(schema: &Value, arguments: &Value) -> bool {
    // The validator compiles the patterns of places that these arguments do not reach, too.
    if patterns(schema) > MAX_PATTERNS {
        return false;
    }
    let values = Values::count(arguments);
    let mut visits = Visits {
        root: schema,
        left: MAX_VISITS,
    };
    let root = SchemaPosition {
        levels: values.levels,
        depth: 0,
    };
    if visits.visit(schema, root).is_none() {
        return false;
    }
    let made = MAX_VISITS - visits.left;
    made.saturating_mul(values.count) <= MAX_WORK
}

/// The patterns in a schema, wherever they are.
fn patterns(schema: &Value) -> usize {
    match schema {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => items.iter().map(patterns).sum(),
        Value::Object(fields) => {
            let is_pattern = fields.get("pattern").is_some_and(Value::is_string);
            let by_name = fields.get("patternProperties").and_then(Value::as_object);
            usize::from(is_pattern)
                + by_name.map_or(0, Map::len)
                + fields.values().map(patterns).sum::<usize>()
        }
    }
}

/// The size of arguments.
#[derive(Debug, Default)]
struct Values {
    count: usize,
    /// The depth of their nesting: 1 for an object of plain values.
    levels: usize,
}

impl Values {
    fn count(value: &Value) -> Self {
        let mut size = Self {
            count: 1,
            levels: 0,
        };
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => size.count += text.len() / VALUE_BYTES,
            Value::Array(items) => size.add_inner(items.iter()),
            Value::Object(fields) => size.add_inner(fields.values()),
        }
        size
    }

    fn add_inner<'v>(&mut self, values: impl Iterator<Item = &'v Value>) {
        for inner in values.map(Self::count) {
            self.count += inner.count;
            self.levels = self.levels.max(inner.levels);
        }
        self.levels += 1;
    }
}

/// A place in a schema whose references are followed.
#[derive(Clone, Copy)]
struct SchemaPosition {
    /// The levels of the arguments below this place.
    levels: usize,
    /// The subschemas and references around this place.
    depth: usize,
}

impl SchemaPosition {
    /// The place of a subschema for the same value.
    fn same_value(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    /// The place of a subschema for the values within this one, if there are any.
    fn inner_values(self) -> Option<Self> {
        let levels = self.levels.checked_sub(1)?;
        Some(Self {
            levels,
            depth: self.depth + 1,
        })
    }
}

struct Visits<'s> {
    root: &'s Value,
    left: usize,
}

impl<'s> Visits<'s> {
    /// `None`: the limit is exceeded, or the schema uses a reference that is not understood.
    fn visit(&mut self, schema: &'s Value, at: SchemaPosition) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if at.depth > MAX_DEPTH {
            return None;
        }
        match schema {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
            Value::Array(schemas) => schemas
                .iter()
                .try_for_each(|schema| self.visit(schema, at.same_value())),
            Value::Object(keywords) => keywords
                .iter()
                .try_for_each(|(keyword, value)| self.keyword(keyword, value, at)),
        }
    }

    fn keyword(&mut self, keyword: &str, value: &'s Value, at: SchemaPosition) -> Option<()> {
        match keyword {
            "$ref" => self.visit(self.target(value)?, at.same_value()),
            "$dynamicRef" | "$recursiveRef" => None,
            "$id" if at.depth > 0 => None,
            // The validator looks at all other keywords again for these.
            "unevaluatedItems" | "unevaluatedProperties" => value.is_boolean().then_some(()),
            "enum" => {
                self.left = self.left.checked_sub(Values::count(value).count)?;
                Some(())
            }
            "properties" | "patternProperties" => self.each(value, at.inner_values()),
            "dependencies" | "dependentSchemas" => self.each(value, Some(at.same_value())),
            "items"
            | "prefixItems"
            | "additionalItems"
            | "additionalProperties"
            | "contains"
            | "propertyNames" => at
                .inner_values()
                .map_or(Some(()), |inner| self.visit(value, inner)),
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => {
                self.visit(value, at.same_value())
            }
            // Definitions count where they are referred to.
            _ => Some(()),
        }
    }

    /// Visits the subschemas of a keyword that has one for each name.
    fn each(&mut self, schemas: &'s Value, at: Option<SchemaPosition>) -> Option<()> {
        let (Some(at), Some(schemas)) = (at, schemas.as_object()) else {
            return Some(());
        };
        schemas
            .values()
            .try_for_each(|schema| self.visit(schema, at))
    }

    /// The subschema at a JSON pointer like `#/$defs/pod`.
    fn target(&self, reference: &Value) -> Option<&'s Value> {
        let pointer = reference
            .as_str()?
            .strip_prefix('#')
            .filter(|pointer| !pointer.contains('%'))?;
        self.root.pointer(pointer)
    }
}
