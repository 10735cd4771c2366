//! A text that is searched as it is, without regard to upper and lower case.
//!
//! A database compares letters by its collation, and each one has other letters. So upper and lower case are paired
//! here: a statement gets the pairs of the letters that the searched text has, and both compare alike.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Serialize;

/// Bytes of a searched text.
pub const MAX_LITERAL_BYTES: usize = 200;

/// The last character for which Unicode has two cases precedes this one.
const AFTER_LAST_CASED: char = '\u{20000}';

/// The characters beyond ASCII that are equal to another one, by that other one.
static VARIANTS: LazyLock<BTreeMap<char, Vec<char>>> = LazyLock::new(|| {
    let mut variants: BTreeMap<char, Vec<char>> = BTreeMap::new();
    for c in '\u{80}'..AFTER_LAST_CASED {
        let equal = folded(c);
        if equal != c {
            variants.entry(equal).or_default().push(c);
        }
    }
    variants
});

/// A searched text, which is not blank. It is no pattern: every character stands for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    folded: String,
    /// The characters beyond ASCII that are replaced before a text is compared.
    from: String,
    /// Their replacements, in the same order.
    to: String,
}

/// A searched text that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text to search has more than {MAX_LITERAL_BYTES} bytes")]
pub struct TooLong;

/// A part of a text, for its marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    pub text: String,
    /// Whether it is the searched text.
    pub is_match: bool,
}

impl Literal {
    /// The searched text without spaces around it; `None` if it is blank.
    ///
    /// # Errors
    /// When it is longer than [`MAX_LITERAL_BYTES`].
    pub fn parse(text: &str) -> Result<Option<Self>, TooLong> {
        let text = text.trim();
        if text.len() > MAX_LITERAL_BYTES {
            return Err(TooLong);
        }
        if text.is_empty() {
            return Ok(None);
        }
        // A stored text has U+FFFD in the place of NUL.
        let folded: String = text.replace('\0', "\u{fffd}").chars().map(folded).collect();
        let mut from = String::new();
        let mut to = String::new();
        for c in folded.chars() {
            if to.contains(c) {
                continue;
            }
            for variant in VARIANTS.get(&c).into_iter().flatten() {
                from.push(*variant);
                to.push(c);
            }
        }
        Ok(Some(Self { folded, from, to }))
    }

    /// The text in lower case.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// The characters beyond ASCII that a statement replaces before it compares.
    pub fn replaced(&self) -> &str {
        &self.from
    }

    /// The replacements, a character for each of [`Self::replaced`].
    pub fn replacements(&self) -> &str {
        &self.to
    }

    /// A text in pieces, the matches among them. Matches do not overlap. The pieces together are the text.
    pub fn pieces(&self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut between = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some(after) = self.after_match(rest) {
                push(&mut pieces, std::mem::take(&mut between));
                let length = rest.len() - after.len();
                pieces.push(Piece {
                    text: rest.get(..length).unwrap_or_default().to_owned(),
                    is_match: true,
                });
                rest = after;
            } else {
                between.push(c);
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
        push(&mut pieces, between);
        pieces
    }

    /// The rest of a text that begins with the searched one.
    fn after_match<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut found = text.chars();
        for wanted in self.folded.chars() {
            if folded(found.next()?) != wanted {
                return None;
            }
        }
        Some(found.as_str())
    }
}

fn push(pieces: &mut Vec<Piece>, text: String) {
    if !text.is_empty() {
        pieces.push(Piece {
            text,
            is_match: false,
        });
    }
}

/// The character that stands for all that differ from it by case alone. A character beyond ASCII never stands for one
/// of ASCII, although Unicode has such pairs: the sign of kelvin is not the letter k.
fn folded(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let upper = single(c.to_uppercase()).unwrap_or(c);
    match single(upper.to_lowercase()) {
        Some(lower) if !lower.is_ascii() => lower,
        _ => c,
    }
}

fn single(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Literal {
        Literal::parse(text).unwrap().unwrap()
    }

    /// The text with its matches in square brackets.
    fn marked(search: &str, text: &str) -> String {
        let pieces = literal(search).pieces(text);
        pieces
            .iter()
            .map(|piece| match piece.is_match {
                true => format!("[{}]", piece.text),
                false => piece.text.clone(),
            })
            .collect()
    }

    #[test]
    fn a_text_is_found_in_any_case_and_every_character_stands_for_itself() {
        for (search, text, expected) in [
            ("oom", "OOMKilled: oom, Oom", "[OOM]Killed: [oom], [Oom]"),
            ("aa", "aaaaa", "[aa][aa]a"),
            ("100%", "100 of 100% and 1000", "100 of [100%] and 1000"),
            ("a_b", "axb A_B", "axb [A_B]"),
            (r"c:\tmp", r"C:\TMP c:tmp", r"[C:\TMP] c:tmp"),
            ("a.*b", "axxb a.*b", "axxb [a.*b]"),
            ("größe", "GRÖSSE GRÖßE Größe", "GRÖSSE [GRÖßE] [Größe]"),
            ("ΟΔΟΣ", "οδος οδοσ", "[οδος] [οδοσ]"),
            ("ǆ", "Ǆ ǅ ǆ", "[Ǆ] [ǅ] [ǆ]"),
            ("k", "\u{212a} K k", "\u{212a} [K] [k]"),
            ("i", "İ I ı i", "İ [I] ı [i]"),
            ("  x y ", "ax yb", "a[x y]b"),
            ("none", "text", "text"),
        ] {
            assert_eq!(marked(search, text), expected, "{search}");
        }
    }

    #[test]
    fn a_blank_text_is_no_search_and_a_long_one_is_refused() {
        assert_eq!(Literal::parse(" \t\n"), Ok(None));
        assert!(Literal::parse(&"x".repeat(MAX_LITERAL_BYTES)).is_ok());
        assert_eq!(
            Literal::parse(&"x".repeat(MAX_LITERAL_BYTES + 1)),
            Err(TooLong)
        );
        assert_eq!(literal("a\0b").folded(), "a\u{fffd}b");
    }

    #[test]
    fn a_statement_gets_the_pairs_of_the_letters_beyond_ascii() {
        let literal = literal("ÄbÄσ");
        assert_eq!(literal.folded(), "äbäσ");
        assert_eq!(literal.replaced(), "ÄΣς");
        assert_eq!(literal.replacements(), "äσσ");
    }

    #[test]
    fn a_folded_character_stands_for_itself() {
        let unstable: Vec<char> = ('\0'..=char::MAX)
            .filter(|c| folded(folded(*c)) != folded(*c))
            .collect();
        assert_eq!(unstable, Vec::<char>::new());
        let beyond: Vec<char> = (AFTER_LAST_CASED..=char::MAX)
            .filter(|c| folded(*c) != *c)
            .collect();
        assert_eq!(beyond, Vec::<char>::new());
    }
}
