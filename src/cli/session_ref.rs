//! Parses references to a session: its id, or a part of the id.

use std::str::FromStr;

use tarsy_core::ids::SessionId;

/// The shortest part of an id that is accepted, in characters.
const MIN_CHARACTERS: usize = 6;

/// A session's id, or at least six characters of its beginning or end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRef(String);

impl SessionRef {
    /// Whether the reference matches `session`. The caller refuses a reference that matches several.
    pub fn matches(&self, session: SessionId) -> bool {
        let hex = session.0.simple().to_string();
        hex.starts_with(&self.0) || hex.ends_with(&self.0)
    }

    /// The id, if the reference is a whole id.
    pub fn whole(&self) -> Option<SessionId> {
        SessionId::parse(&self.0)
    }

    /// The hexadecimal digits of the reference, without hyphens.
    pub fn digits(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: String = text
            .trim()
            .chars()
            .filter(|c| *c != '-')
            .map(|c| c.to_ascii_lowercase())
            .collect();
        if !digits.chars().all(|c| c.is_ascii_hexdigit()) || digits.len() > 32 {
            return Err(format!(
                "accepted: an id, or at least {MIN_CHARACTERS} characters of its beginning or end (0-9, a-f)"
            ));
        }
        if digits.len() < MIN_CHARACTERS {
            return Err(format!(
                "at least {MIN_CHARACTERS} characters of the id's beginning or end"
            ));
        }
        Ok(Self(digits))
    }
}

/// Parses a whole session id.
///
/// # Errors
/// When the text is not a UUID of version 7.
pub fn session_id(text: &str) -> Result<SessionId, String> {
    SessionId::parse(text).ok_or_else(|| "accepted: a UUID of version 7".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_characters_from_either_end_name_a_session() {
        let session = SessionId::parse("0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa").unwrap();
        for text in [
            "0198b2",
            "0198b2c4-5d6e",
            "77D0B3AA",
            "d0b3aa",
            "0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa",
        ] {
            assert!(
                text.parse::<SessionRef>().unwrap().matches(session),
                "{text}"
            );
        }
        assert!(!"5d6e7f".parse::<SessionRef>().unwrap().matches(session));
        assert_eq!(
            session.to_string().parse::<SessionRef>().unwrap().whole(),
            Some(session)
        );
        assert_eq!("77d0b3aa".parse::<SessionRef>().unwrap().whole(), None);
    }

    #[test]
    fn text_that_cannot_be_a_part_of_an_id_is_refused() {
        for text in [
            "",
            "d0b3a",
            "checkout",
            "0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa0",
        ] {
            assert!(text.parse::<SessionRef>().is_err(), "{text:?}");
        }
    }
}
