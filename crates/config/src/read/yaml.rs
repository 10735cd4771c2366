//! Parses YAML into JSON values, or into a tree of nodes with their lines.

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, ScanError, YamlData};
use serde_json::Value;

/// A text that is not YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct YamlError {
    /// Counted from 1.
    pub line: usize,
    /// The parser's message.
    pub message: String,
}

/// A value with its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Counted from 1.
    pub line: usize,
    pub data: Data,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// An empty value, or `~`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    Text(String),
    List(Vec<Node>),
    /// Keys in the order of the file; each key occurs once.
    Map(Vec<(Node, Node)>),
}

/// Parses the first document of `text` into a tree; an empty text is `Null`.
///
/// # Errors
/// When the text is not YAML, or a key occurs twice.
pub fn to_node(text: &str) -> Result<Node, YamlError> {
    let documents = MarkedYaml::load_from_str(text).map_err(|error| fault(&error, text))?;
    Ok(documents.first().map_or(
        Node {
            line: 1,
            data: Data::Null,
        },
        node,
    ))
}

fn node(marked: &MarkedYaml<'_>) -> Node {
    Node {
        line: marked.span.start.line(),
        data: data(&marked.data),
    }
}

impl super::reader::Field<'_> {
    /// The value as JSON, whatever it is. Variables in it are not resolved.
    pub(crate) fn json(&self) -> Value {
        self.data().json()
    }
}

impl Data {
    /// The value as JSON.
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Flag(yes) => Value::Bool(*yes),
            Self::Integer(number) => Value::from(*number),
            Self::Number(number) => Value::from(*number),
            Self::Text(text) => Value::from(text.as_str()),
            Self::List(items) => items.iter().map(|item| item.data.json()).collect(),
            Self::Map(pairs) => pairs
                .iter()
                .map(|(key, item)| (super::reader::key_text(key), item.data.json()))
                .collect(),
        }
    }
}

fn data<'a>(data: &YamlData<'a, MarkedYaml<'a>>) -> Data {
    match data {
        YamlData::Value(Scalar::Null) | YamlData::Alias(_) | YamlData::BadValue => Data::Null,
        YamlData::Value(Scalar::Boolean(yes)) => Data::Flag(*yes),
        YamlData::Value(Scalar::Integer(number)) => Data::Integer(*number),
        YamlData::Value(Scalar::FloatingPoint(number)) => Data::Number(**number),
        YamlData::Value(Scalar::String(text)) => Data::Text(text.to_string()),
        YamlData::Representation(text, ..) => Data::Text(text.to_string()),
        YamlData::Sequence(items) => Data::List(items.iter().map(node).collect()),
        YamlData::Mapping(pairs) => Data::Map(
            pairs
                .iter()
                .map(|(key, item)| (node(key), node(item)))
                .collect(),
        ),
        YamlData::Tagged(_, inner) => self::data(&inner.data),
    }
}

fn fault(error: &ScanError, text: &str) -> YamlError {
    let at = error.marker();
    let line = text
        .lines()
        .nth(at.line().saturating_sub(1))
        .unwrap_or_default();
    let message = if error.info() == DUPLICATE {
        let key: String = line
            .chars()
            .skip(at.col())
            .take_while(|c| *c != ':')
            .collect();
        format!(
            "the key {} occurs twice: write what belongs to it below one of them",
            key.trim()
        )
    } else {
        error.info().to_owned()
    };
    YamlError {
        line: at.line(),
        message,
    }
}

/// The message of the parser about a key that occurs twice in one mapping.
const DUPLICATE: &str = "duplicated key in mapping";

/// Parses the first document of `text` into a JSON value; an empty text is `Null`.
///
/// # Errors
/// When the text is not YAML, or a key occurs twice.
pub fn to_json(text: &str) -> Result<Value, YamlError> {
    to_node(text).map(value)
}

fn value(node: Node) -> Value {
    data_value(node.data)
}

/// The value of a node as JSON.
pub(super) fn data_value(data: Data) -> Value {
    match data {
        Data::Null => Value::Null,
        Data::Flag(yes) => yes.into(),
        Data::Integer(number) => number.into(),
        Data::Number(number) => number.into(),
        Data::Text(text) => text.into(),
        Data::List(items) => items.into_iter().map(value).collect(),
        Data::Map(pairs) => pairs
            .into_iter()
            .map(|(key, item)| (key_text(key), value(item)))
            .collect(),
    }
}

fn key_text(key: Node) -> String {
    let key = value(key);
    key.as_str().map_or_else(|| key.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_becomes_the_same_json() {
        assert_eq!(
            to_json("a: 1\nb: [x, true, 1.5, ~]\nc: |\n  two\n  lines\n").unwrap(),
            serde_json::json!({"a": 1, "b": ["x", true, 1.5, null], "c": "two\nlines\n"})
        );
        assert_eq!(to_json("").unwrap(), Value::Null);
    }

    #[test]
    fn every_node_of_the_tree_has_its_line() {
        let text = |line, text: &str| Node {
            line,
            data: Data::Text(text.to_owned()),
        };
        let list = Node {
            line: 3,
            data: Data::List(vec![
                text(3, "x"),
                Node {
                    line: 4,
                    data: Data::Integer(2),
                },
            ]),
        };
        let inner = Node {
            line: 2,
            data: Data::Map(vec![(text(2, "b"), list)]),
        };
        let expected = Node {
            line: 1,
            data: Data::Map(vec![(text(1, "a"), inner)]),
        };
        assert_eq!(to_node("a:\n  b:\n  - x\n  - 2\n").unwrap(), expected);
    }

    #[test]
    fn a_duplicate_key_is_a_fault_that_names_it() {
        for (text, line, key) in [
            ("a: 1\nb: 2\na: 3\n", 3, "a"),
            ("a:\n  'b c': 1\n  'b c': 2\n", 3, "'b c'"),
            ("a: {b: 1, b: 2}", 1, "b"),
        ] {
            let message =
                format!("the key {key} occurs twice: write what belongs to it below one of them");
            assert_eq!(to_node(text), Err(YamlError { line, message }));
        }
    }

    #[test]
    fn a_fault_has_its_line() {
        assert_eq!(to_json("a: 1\nb: [\n").unwrap_err().line, 3);
    }
}
