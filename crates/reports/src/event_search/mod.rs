//! Events of a session that contain a text, each with the text around its first match.

use serde::Serialize;

use tarsy_core::ids::SessionId;
use tarsy_core::search::{Literal, Piece};
use tarsy_core::timeline::TimelineEvent;

/// A text to find, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSearch {
    pub session: SessionId,
    /// The events after this number; 0: from the first.
    pub after: u32,
    /// The largest number of events that are found.
    pub limit: u32,
    pub text: Literal,
}

/// The events that a search has found. One search reads a limited number of bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundEvents {
    /// In order.
    pub events: Vec<FoundEvent>,
    /// The number of the last event that was searched, after which the search can be continued.
    pub searched_to: u32,
    /// Whether all events that are stored were searched.
    pub is_complete: bool,
}

/// An event that contains the text.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundEvent {
    /// The event with its whole content.
    pub event: TimelineEvent,
    pub found: Match,
}

/// The first match of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Match {
    /// The number of the event.
    pub event: u32,
    #[serde(rename = "in")]
    pub place: Place,
    /// The text around the match, in pieces.
    pub excerpt: Vec<Piece>,
    /// Whether the excerpt begins after the beginning of the text.
    pub cut_before: bool,
    /// Whether the excerpt ends before the end of the text.
    pub cut_after: bool,
}

/// The text of an event that contains a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The content of the event.
    Content,
    /// The stored result of the tool call, of which the content may have a part.
    Result,
}

impl Match {
    /// The excerpt as a text from `before` characters before the match on, with three dots where it is cut.
    pub fn text(&self, before: usize) -> String {
        let ahead = self.excerpt.first().filter(|piece| !piece.is_match);
        let characters = ahead.map_or(0, |piece| piece.text.chars().count());
        let skipped = characters.saturating_sub(before);
        let pieces = self.excerpt.iter().flat_map(|piece| piece.text.chars());
        let mut text: String = pieces.skip(skipped).collect();
        if self.cut_before || skipped > 0 {
            text.insert(0, '…');
        }
        if self.cut_after {
            text.push('…');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_match_begins_near_it() {
        let text = Literal::parse("found").unwrap().unwrap();
        let found = |cut: bool| Match {
            event: 1,
            place: Place::Content,
            excerpt: text.pieces("it was Found there"),
            cut_before: cut,
            cut_after: cut,
        };
        assert_eq!(found(false).text(7), "it was Found there");
        assert_eq!(found(false).text(4), "…was Found there");
        assert_eq!(found(true).text(0), "…Found there…");
    }
}
