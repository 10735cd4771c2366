//! Values of a JSON result, by a pointer of RFC 6901 in which `*` stands for every element or member.

use std::fmt::Write as _;

use serde_json::value::RawValue;

use crate::readable::text::beginning;

/// More values of a pointer are not read.
pub(super) const MAX_VALUES: usize = 100_000;
/// The longest key of an object that is shown, in bytes.
const MAX_KEY_BYTES: usize = 80;
/// The keys that an error shows.
const SHOWN_KEYS: usize = 20;

/// A pointer to values of a JSON text.
#[derive(Clone, Debug)]
pub struct Pointer {
    given: String,
    steps: Vec<String>,
}

/// The values that a pointer names: each one is a line.
#[derive(Default)]
pub(super) struct Values {
    pub(super) text: String,
    /// The positions of the values in what the stars of the pointer stand for, from 0; one for each line.
    pub(super) labels: Vec<String>,
}

impl Pointer {
    /// Parses a pointer.
    ///
    /// # Errors
    /// When it does not begin with a slash.
    pub(super) fn parse(given: &str) -> Result<Self, String> {
        let steps = given.strip_prefix('/').ok_or_else(|| {
            format!("pointer {given:?} does not begin with a slash; /items/*/status/phase is one")
        })?;
        Ok(Self {
            given: given.to_owned(),
            steps: steps
                .split('/')
                .map(|step| step.replace("~1", "/").replace("~0", "~"))
                .collect(),
        })
    }

    pub(super) fn given(&self) -> &str {
        &self.given
    }

    /// The values of a result: a JSON text, or a JSON text in each line.
    ///
    /// # Errors
    /// When the result is no JSON, or has no such value; the text tells the model what is there.
    pub(super) fn values(&self, result: &str) -> Result<Values, String> {
        let mut walk = Walk::default();
        if let Ok(root) = serde_json::from_str(result) {
            self.walk(At::root(root), "", &mut walk);
        } else {
            let lines = result.lines().map(serde_json::from_str::<&RawValue>);
            for (number, root) in lines.enumerate() {
                let Ok(root) = root else { continue };
                self.walk(At::root(root), &number.to_string(), &mut walk);
            }
        }
        if !walk.values.labels.is_empty() {
            return Ok(walk.values);
        }
        Err(walk.missing.map_or_else(
            || {
                "the result is no JSON, so it has no pointers; search and pattern read its lines"
                    .to_owned()
            },
            |missing| missing.told(&self.given),
        ))
    }

    fn walk(&self, at: At<'_>, label: &str, walk: &mut Walk) {
        if walk.values.labels.len() >= MAX_VALUES {
            return;
        }
        let Some(step) = self.steps.get(at.depth) else {
            walk.values.push(label, at.value);
            return;
        };
        let depth = at.depth + 1;
        let Children {
            of_object,
            children,
        } = children(at.value);
        if step == "*" {
            for (position, (key, value)) in children.iter().enumerate() {
                let position = if of_object {
                    format!("{position} {}", quoted(key))
                } else {
                    position.to_string()
                };
                let label = if label.is_empty() {
                    position
                } else {
                    format!("{label}/{position}")
                };
                self.walk(At { value, depth }, &label, walk);
            }
            if !children.is_empty() {
                return;
            }
        } else if let Some((_, value)) = children.iter().find(|(key, _)| key == step) {
            self.walk(At { value, depth }, label, walk);
            return;
        }
        let is_deepest = walk
            .missing
            .as_ref()
            .is_none_or(|missing| missing.depth < depth);
        if is_deepest {
            walk.missing = Some(Missing {
                depth,
                step: step.clone(),
                of_object,
                children: children.len(),
                keys: children
                    .iter()
                    .take(SHOWN_KEYS)
                    .map(|(key, _)| quoted(key))
                    .collect(),
            });
        }
    }
}

#[derive(Clone, Copy)]
struct At<'a> {
    value: &'a RawValue,
    /// The number of steps behind it.
    depth: usize,
}

impl<'a> At<'a> {
    fn root(value: &'a RawValue) -> Self {
        Self { value, depth: 0 }
    }
}

/// The finds of a walk along a pointer.
#[derive(Default)]
struct Walk {
    values: Values,
    missing: Option<Missing>,
}

impl Values {
    /// Adds a value as one line: a text as it is where it has no line breaks, all else as JSON without blanks.
    fn push(&mut self, label: &str, value: &RawValue) {
        let label = if label.is_empty() { "0" } else { label };
        self.labels.push(label.to_owned());
        let json = value.get();
        let text = if json.starts_with('"') {
            serde_json::from_str::<String>(json)
                .ok()
                .filter(|text| !text.contains(char::is_control))
        } else {
            None
        };
        let line = text.unwrap_or_else(|| compact(json));
        writeln!(self.text, "{line}").ok();
    }
}

/// JSON on one line, with its numbers and texts as they were written.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut in_text = false;
    let mut is_escaped = false;
    for c in json.chars() {
        if in_text {
            in_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_text = c == '"';
        }
        out.push(c);
    }
    out
}

struct Children<'a> {
    of_object: bool,
    children: Vec<(String, &'a RawValue)>,
}

/// The members of an object or the elements of an array, with their keys; none of other values.
fn children(value: &RawValue) -> Children<'_> {
    let json = value.get();
    let of_object = json.starts_with('{');
    let children = if of_object {
        serde_json::from_str::<Members<'_>>(json).map_or_else(|_| Vec::new(), |members| members.0)
    } else {
        serde_json::from_str::<Vec<&RawValue>>(json)
            .unwrap_or_default()
            .into_iter()
            .enumerate()
            .map(|(position, value)| (position.to_string(), value))
            .collect()
    };
    Children {
        of_object,
        children,
    }
}

/// The members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

/// The deepest value that lacks the next step.
struct Missing {
    /// The number of the step, from 1.
    depth: usize,
    step: String,
    of_object: bool,
    children: usize,
    keys: Vec<String>,
}

impl Missing {
    fn told(&self, pointer: &str) -> String {
        let there = if self.of_object {
            let more = self.children.saturating_sub(self.keys.len());
            let more = if more == 0 {
                String::new()
            } else {
                format!(" and {more} more")
            };
            format!(
                "the object there has the keys {}{more}",
                self.keys.join(", ")
            )
        } else if self.children > 0 {
            format!(
                "the array there has {} elements: give a number from 0, or *",
                self.children
            )
        } else {
            "there is nothing below it".to_owned()
        };
        format!(
            "{pointer} names nothing: step {} ({}) is missing; {there}",
            self.depth,
            quoted(&self.step)
        )
    }
}

fn quoted(key: &str) -> String {
    format!("{:?}", beginning(key, MAX_KEY_BYTES))
}
