//! Expressions: alternatives of pointers, captured names, templates and literals. They are data, not a language.
//!
//! `/a | @/b | $name | "text" | '{/a}  {/b | /c}'`: the first alternative that has a text is taken.

use std::fmt;

use super::pointer::{Base, Pointer, PointerFault};
use super::view::View;

/// The first of several alternatives that is a text, a number or a bool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression(Vec<Alternative>);

/// A way to get a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Alternative {
    Pointer(Pointer),
    /// A named group of the capture.
    Captured(String),
    Template(Vec<Piece>),
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Hole(Expression),
}

/// The reason why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionFault {
    #[error("{0}")]
    Pointer(#[from] PointerFault),
    #[error("an alternative is empty; accepted: /a | /b | $name")]
    EmptyAlternative,
    #[error("\"{{\" without its \"}}\"; a plain brace is written {{{{ or }}}}")]
    Unclosed,
    #[error("\"}}\" without its \"{{\"; a plain brace is written {{{{ or }}}}")]
    Unopened,
    #[error("a hole has no hole in it; accepted: {{/a | $name}}")]
    Nested,
    #[error("a literal has no end; accepted: \"text\"")]
    UnclosedLiteral,
    #[error("$ without a name of a group; accepted: $name")]
    Name,
    #[error("an expression has at most 1,024 bytes")]
    Long,
}

/// A text that an expression gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub text: String,
    /// The alternative that gave it, as written.
    pub from: String,
    /// The last key of its pointer, or the name of its group, for people.
    pub name: String,
}

const MAX_BYTES: usize = 1_024;

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// When it has another form.
    pub fn parse(text: &str) -> Result<Self, ExpressionFault> {
        if text.len() > MAX_BYTES {
            return Err(ExpressionFault::Long);
        }
        split(text)?
            .into_iter()
            .map(|part| alternative(part.trim()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The pointer of each alternative, or the text of one that is none: a key may be an object or a list.
    pub(super) fn alternatives(&self) -> &[Alternative] {
        &self.0
    }

    /// The first alternative with a text.
    pub fn find(&self, view: &View<'_>) -> Option<Found> {
        self.each(view).next()
    }

    /// Every alternative with a text, in order.
    pub fn each<'v>(&'v self, view: &'v View<'_>) -> impl Iterator<Item = Found> + 'v {
        self.0.iter().filter_map(|alternative| {
            let text = alternative.text(view)?;
            Some(Found {
                text,
                from: alternative.to_string(),
                name: alternative.name(),
            })
        })
    }

    /// Whether a pointer leads into the element of `each`.
    pub fn uses_element(&self) -> bool {
        self.pointers()
            .iter()
            .any(|pointer| pointer.base() == Base::Element)
    }

    /// All pointers, those of holes among them.
    pub fn pointers(&self) -> Vec<&Pointer> {
        self.leaves()
            .into_iter()
            .filter_map(|leaf| match leaf {
                Alternative::Pointer(pointer) => Some(pointer),
                Alternative::Captured(_) | Alternative::Template(_) => None,
            })
            .collect()
    }

    /// The names of the groups that it uses.
    pub fn captured(&self) -> Vec<&str> {
        self.leaves()
            .into_iter()
            .filter_map(|leaf| match leaf {
                Alternative::Captured(name) => Some(name.as_str()),
                Alternative::Pointer(_) | Alternative::Template(_) => None,
            })
            .collect()
    }

    /// The alternatives, and those of the holes in place of a template.
    fn leaves(&self) -> Vec<&Alternative> {
        let mut leaves = Vec::new();
        for alternative in &self.0 {
            match alternative {
                Alternative::Pointer(_) | Alternative::Captured(_) => leaves.push(alternative),
                Alternative::Template(pieces) => {
                    leaves.extend(pieces.iter().filter_map(Piece::hole).flat_map(Self::leaves));
                }
            }
        }
        leaves
    }
}

impl Alternative {
    fn name(&self) -> String {
        match self {
            Self::Pointer(pointer) => pointer.name().to_owned(),
            Self::Captured(name) => name.clone(),
            Self::Template(_) => "text".to_owned(),
        }
    }

    /// A text that is not empty.
    pub(super) fn text(&self, view: &View<'_>) -> Option<String> {
        match self {
            Self::Pointer(pointer) => view.text(pointer),
            Self::Captured(name) => view.captured(name),
            Self::Template(pieces) => fill(pieces, view),
        }
    }
}

impl Piece {
    fn hole(&self) -> Option<&Expression> {
        match self {
            Self::Hole(expression) => Some(expression),
            Self::Text(_) => None,
        }
    }
}

/// `None` when the template has holes and all of them are empty.
fn fill(pieces: &[Piece], view: &View<'_>) -> Option<String> {
    let mut out = String::new();
    let mut holes = 0_usize;
    let mut filled = 0_usize;

    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Hole(expression) => {
                holes += 1;
                if let Some(found) = expression.find(view) {
                    filled += 1;
                    out.push_str(&found.text);
                }
            }
        }
    }
    let out = out.trim();
    (!out.is_empty() && (holes == 0 || filled > 0)).then(|| out.to_owned())
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer(pointer) => pointer.fmt(f),
            Self::Captured(name) => write!(f, "${name}"),
            Self::Template(pieces) => match pieces.as_slice() {
                [Piece::Text(text)] if !text.contains('"') => write!(f, "\"{text}\""),
                pieces => pieces.iter().try_for_each(|piece| piece.fmt(f)),
            },
        }
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Self::Hole(expression) => write!(f, "{{{expression}}}"),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, alternative) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { " | " };
            write!(f, "{between}{alternative}")?;
        }
        Ok(())
    }
}

/// Splits at each `|` outside of braces and literals.
fn split(text: &str) -> Result<Vec<String>, ExpressionFault> {
    let mut parts = Vec::new();
    let mut part = String::new();

    let mut chars = text.chars().peekable();
    let mut in_hole = false;
    let mut in_literal = false;

    while let Some(c) = chars.next() {
        match c {
            '|' if !in_hole && !in_literal => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            '"' if in_literal => in_literal = false,
            '"' if part.trim().is_empty() => in_literal = true,
            '{' if !in_literal && !in_hole => {
                if chars.next_if_eq(&'{').is_some() {
                    part.push('{');
                } else {
                    in_hole = true;
                }
            }
            '}' if !in_literal => in_hole = false,
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    match (in_literal, in_hole) {
        (true, _) => Err(ExpressionFault::UnclosedLiteral),
        (false, true) => Err(ExpressionFault::Unclosed),
        (false, false) => Ok(parts),
    }
}

fn alternative(part: &str) -> Result<Alternative, ExpressionFault> {
    if part.is_empty() {
        return Err(ExpressionFault::EmptyAlternative);
    }
    if let Some(rest) = part.strip_prefix('"') {
        let literal = rest
            .strip_suffix('"')
            .filter(|literal| !literal.contains('"'));
        let literal = literal.ok_or(ExpressionFault::UnclosedLiteral)?;
        return Ok(Alternative::Template(vec![Piece::Text(literal.to_owned())]));
    }
    if part.contains(['{', '}']) {
        return template(part).map(Alternative::Template);
    }
    if let Some(name) = part.strip_prefix('$') {
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        return if is_name {
            Ok(Alternative::Captured(name.to_owned()))
        } else {
            Err(ExpressionFault::Name)
        };
    }
    Ok(Alternative::Pointer(Pointer::parse(part)?))
}

fn template(text: &str) -> Result<Vec<Piece>, ExpressionFault> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' if chars.next_if_eq(&c).is_some() => plain.push(c),
            '}' => return Err(ExpressionFault::Unopened),
            '{' => {
                let mut hole = String::new();
                loop {
                    match chars.next() {
                        None => return Err(ExpressionFault::Unclosed),
                        Some('}') => break,
                        Some('{') => return Err(ExpressionFault::Nested),
                        Some(c) => hole.push(c),
                    }
                }
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(Piece::Hole(Expression::parse(&hole)?));
            }
            c => plain.push(c),
        }
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(expression: &str) -> Option<String> {
        let body = json!({
            "a": "", "b": " two ", "c": 3, "d": true, "e": null, "f": ["x"], "g": {"h": "deep"}, "p|q": 1
        });
        let view =
            View::new(&body, None).with_captures(vec![("name".to_owned(), "disk".to_owned())]);
        Expression::parse(expression)
            .unwrap()
            .find(&view)
            .map(|found| found.text)
    }

    #[test]
    fn the_first_alternative_with_a_text_is_taken() {
        for (expression, expected) in [
            ("/a | /b", Some("two")),
            ("/c|/b", Some("3")),
            ("/e | /f | /g | /d", Some("true")),
            ("/g/h", Some("deep")),
            ("/f/0", Some("x")),
            ("/none | $name", Some("disk")),
            ("$other | \"by | default\"", Some("by | default")),
            ("/none", None),
        ] {
            assert_eq!(read(expression).as_deref(), expected, "{expression}");
        }
    }

    #[test]
    fn a_template_needs_one_hole_with_a_text() {
        for (expression, expected) in [
            ("{/b}  {/none | /c}", Some("two  3")),
            ("{/b}  {/none}", Some("two")),
            ("{/none} of {/a} | /c", Some("3")),
            ("{{{/c}}}", Some("{3}")),
            ("{$name} {{x}}", Some("disk {x}")),
        ] {
            assert_eq!(read(expression).as_deref(), expected, "{expression}");
        }
    }

    #[test]
    fn an_expression_shows_as_it_was_written() {
        for text in ["/a | @/b | $c", "{/a}  {/b | $c} {{x}}", "/a | \"text\""] {
            assert_eq!(Expression::parse(text).unwrap().to_string(), text);
        }
        let expression = Expression::parse("{@/a | $x} | $y | /b").unwrap();
        assert_eq!(
            (expression.uses_element(), expression.captured()),
            (true, vec!["x", "y"])
        );
        assert_eq!(expression.pointers().len(), 2);
    }

    #[test]
    fn every_fault_has_its_own_text() {
        for (text, fault) in [
            ("", ExpressionFault::EmptyAlternative),
            ("/a | ", ExpressionFault::EmptyAlternative),
            ("a", ExpressionFault::Pointer(PointerFault::Start)),
            ("/a | /b~", ExpressionFault::Pointer(PointerFault::Escape)),
            ("{/a", ExpressionFault::Unclosed),
            ("x /a}", ExpressionFault::Unopened),
            ("{/a {/b}}", ExpressionFault::Nested),
            ("{}", ExpressionFault::EmptyAlternative),
            ("\"text", ExpressionFault::UnclosedLiteral),
            ("$", ExpressionFault::Name),
            ("$a-b", ExpressionFault::Name),
            (&"/a".repeat(600), ExpressionFault::Long),
        ] {
            assert_eq!(Expression::parse(text), Err(fault), "{text}");
        }
    }
}
