//! A text with values in braces. The place in which it stands decides how a value is written there.

use tarsy_core::notification::template::NAMES;

/// The hash of the group of an alert, a reference that code makes: 64 hexadecimal digits.
pub const AM_GROUP: &str = "am_group";

/// A text of literal parts and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub Vec<Piece>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A part that the declaration has.
    Literal(String),
    Value(Name),
}

/// The name of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A value of every notification, by a name of its templates.
    Notification(&'static str),
    /// The id by which a note is found again.
    Marker,
    /// A time shortly before the investigation began, as in RFC 3339.
    Since,
    /// The page of a list, from 1.
    Page,
    /// The number of items on the pages before it.
    Offset,
    /// A reference of the alert.
    Reference(String),
    /// A value of `with`.
    With(String),
    Secret,
}

/// The place of a text, which permits some values only there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A header: the only place of the secret.
    Header,
    /// The request for a list of notes, which has pages.
    List,
    Elsewhere,
}

/// The names that a declaration defines.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) references: Vec<String>,
    pub(super) with: Vec<String>,
}

impl Text {
    /// Whether the text has one of these values.
    pub(super) fn has(&self, names: &[Name]) -> bool {
        self.0
            .iter()
            .any(|piece| matches!(piece, Piece::Value(name) if names.contains(name)))
    }

    /// Parses a text. `{{` and `}}` are braces.
    ///
    /// # Errors
    /// With the reason, when a brace is open or a name is unknown or out of place.
    pub(super) fn parse(text: &str, scope: &Scope, place: Place) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;

        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            literal.push_str(before);
            if let Some(after) = from.strip_prefix("{{") {
                literal.push('{');
                rest = after;
                continue;
            }
            if let Some(after) = from.strip_prefix("}}") {
                literal.push('}');
                rest = after;
                continue;
            }
            let named = from
                .strip_prefix('{')
                .and_then(|after| after.split_once('}'));
            let Some((name, after)) = named else {
                return Err("a brace without its other one; write {{ or }} for a plain one".into());
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Value(scope.name(name, place)?));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self(pieces))
    }
}

impl Scope {
    fn name(&self, name: &str, place: Place) -> Result<Name, String> {
        let found = match name {
            "secret" if place == Place::Header => Some(Name::Secret),
            "secret" => {
                return Err("{secret} outside of headers; a header is its only place".into());
            }
            "page" | "offset" if place != Place::List => {
                return Err(format!("{{{name}}} outside of find, which alone has pages"));
            }
            "page" => Some(Name::Page),
            "offset" => Some(Name::Offset),
            "marker" => Some(Name::Marker),
            "since" => Some(Name::Since),
            _ => None,
        };
        found
            .or_else(|| self.of_file(name))
            .or_else(|| {
                NAMES
                    .iter()
                    .find(|known| *known == name)
                    .map(Name::Notification)
            })
            .ok_or_else(|| self.unknown(name))
    }

    /// The name of a parameter or a reference.
    fn of_file(&self, name: &str) -> Option<Name> {
        let with = name.strip_prefix("with.");
        if let Some(with) = with.filter(|with| self.with.iter().any(|known| known == with)) {
            return Some(Name::With(with.to_owned()));
        }
        let is_reference = name == AM_GROUP || self.references.iter().any(|known| known == name);
        is_reference.then(|| Name::Reference(name.to_owned()))
    }

    fn unknown(&self, name: &str) -> String {
        let of_file = self.references.iter().cloned();
        let with = self.with.iter().map(|name| format!("with.{name}"));
        let known: Vec<String> = of_file
            .chain(with)
            .chain([AM_GROUP, "marker", "since"].map(str::to_owned))
            .chain(NAMES.iter().map(str::to_owned))
            .collect();
        let known = known.join(", ");
        format!("{{{name}}} is no value; accepted: {known}. A reference is named in needs")
    }
}

/// Whether a name is that of a value which every declaration has.
pub(super) fn is_taken(name: &str) -> bool {
    ["secret", "page", "offset", "marker", "since"].contains(&name)
        || NAMES.iter().any(|known| known == name)
}
