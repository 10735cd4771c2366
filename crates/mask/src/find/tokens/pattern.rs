//! Patterns of `formats.txt`: rows of parts that are matched without going back, so in linear time.

use crate::bytes::{CharCounts, back, byte, part, rest, skip_near};

/// More letters of one part are not read before the token counts as one; the rest of it is skipped as a whole.
const MAX_LOOKAHEAD: usize = 160;

/// The letters of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letters {
    Digit,
    Hex,
    /// Small letters and digits.
    Lower,
    /// Capitals and digits.
    Upper,
    Alnum,
    /// Small letters and digits, both of them.
    Code,
    Word,
    Token,
    /// The letters of `Token`, with digits and capitals among them: the text before it is not specific.
    Random,
    Uuid,
    Base64,
    /// The letters of `Base64`, up to a colon.
    Hash,
}

impl Letters {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "digit" => Self::Digit,
            "hex" => Self::Hex,
            "lower" => Self::Lower,
            "upper" => Self::Upper,
            "alnum" => Self::Alnum,
            "code" => Self::Code,
            "word" => Self::Word,
            "token" => Self::Token,
            "random" => Self::Random,
            "uuid" => Self::Uuid,
            "base64" => Self::Base64,
            "hash" => Self::Hash,
            _ => return None,
        })
    }

    fn have(self, b: u8) -> bool {
        match self {
            Self::Digit => b.is_ascii_digit(),
            Self::Hex => b.is_ascii_hexdigit(),
            Self::Lower | Self::Code => b.is_ascii_lowercase() || b.is_ascii_digit(),
            Self::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Self::Alnum => b.is_ascii_alphanumeric(),
            Self::Word => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
            Self::Token | Self::Random => {
                b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
            }
            Self::Uuid => b.is_ascii_hexdigit() || b == b'-',
            Self::Base64 => b == b':' || Self::Hash.have(b),
            Self::Hash => b.is_ascii_alphanumeric() || b"$./+=,_-}".contains(&b),
        }
    }

    /// Whether these letters look like a part of a token, and not like words.
    fn accept(self, letters: &str) -> bool {
        let kinds = CharCounts::count(letters);
        match self {
            Self::Digit | Self::Hex | Self::Upper | Self::Uuid => true,
            Self::Code => kinds.digits > 1 && kinds.lower > 1,
            Self::Random => kinds.digits > 0 && (kinds.upper > 1 || kinds.digits > 5),
            Self::Lower | Self::Alnum | Self::Word | Self::Token | Self::Base64 | Self::Hash => {
                kinds.digits > 0 || letters.len() < 16 || kinds.has_both_cases()
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    Text(&'static str),
    Run {
        letters: Letters,
        min: usize,
        max: usize,
    },
}

impl PatternPart {
    fn least(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Run { min, .. } => *min,
        }
    }
}

/// The format of one kind of token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    parts: Vec<PatternPart>,
    /// Index of the text that is searched for; `None` for a pattern that is tried at each long word.
    pub(super) anchor: Option<usize>,
    /// The length of the parts up to a colon, which ends a word, in bytes.
    least: usize,
}

impl Pattern {
    /// Reads a pattern as `formats.txt` writes it; `None` if it is malformed.
    pub(super) fn parse(written: &'static str) -> Option<Self> {
        let (is_searched, written) = match written.strip_prefix("@ ") {
            Some(rest) => (false, rest),
            None => (true, written),
        };
        let parts: Vec<PatternPart> = written
            .split_whitespace()
            .map(read_part)
            .collect::<Option<_>>()?;
        let first = parts
            .iter()
            .position(|part| matches!(part, PatternPart::Text(_)));
        let anchor = if is_searched { Some(first?) } else { None };
        let in_word = parts
            .iter()
            .take_while(|part| !matches!(part, PatternPart::Text(text) if text.contains(':')));
        let least = in_word.map(PatternPart::least).sum();
        (!parts.is_empty()).then_some(Self {
            parts,
            anchor,
            least,
        })
    }

    /// A word in which the token begins has at least this length.
    pub(super) fn least(&self) -> usize {
        self.least
    }

    /// The text that is searched for.
    pub(super) fn text(&self) -> Option<&'static str> {
        match self.parts.get(self.anchor?)? {
            PatternPart::Text(text) => Some(text),
            PatternPart::Run { .. } => None,
        }
    }

    /// The token around an occurrence of the text of the pattern: its start and end.
    pub(super) fn around(&self, text: &str, found: usize) -> Option<(usize, usize)> {
        let anchor = self.anchor?;
        let mut start = found;
        for before in self.parts.get(..anchor)?.iter().rev() {
            start = backwards(text, start, before)?;
        }
        Some((start, self.forwards(text, found, anchor)?))
    }

    /// The end of the token that begins here.
    pub(super) fn at(&self, text: &str, start: usize) -> Option<usize> {
        self.forwards(text, start, 0)
    }

    fn forwards(&self, text: &str, start: usize, first: usize) -> Option<usize> {
        let mut at = start;
        for (index, expected) in self.parts.iter().enumerate().skip(first) {
            match expected {
                PatternPart::Text(expected) => {
                    at = rest(text, at)
                        .starts_with(expected)
                        .then_some(at + expected.len())?;
                }
                PatternPart::Run { letters, min, max } => {
                    let reach = if *max == usize::MAX {
                        MAX_LOOKAHEAD
                    } else {
                        max + 1
                    };
                    let end = skip_near(text, at, reach, |b| letters.have(b));
                    let run = part(text, at, end);
                    let is_last = index + 1 == self.parts.len();
                    // A token of a known length that continues is another word.
                    let goes_on =
                        is_last && *max != usize::MAX && byte(text, end).is_ascii_alphanumeric();
                    let fits =
                        run.len() >= *min && run.len() <= *max && !goes_on && letters.accept(run);
                    at = fits.then_some(end)?;
                }
            }
        }
        Some(match self.parts.last() {
            Some(PatternPart::Run {
                letters,
                max: usize::MAX,
                ..
            }) => skip_near(text, at, usize::MAX, |b| letters.have(b)),
            Some(PatternPart::Run { .. } | PatternPart::Text(_)) | None => at,
        })
    }
}

fn backwards(text: &str, end: usize, expected: &PatternPart) -> Option<usize> {
    match expected {
        PatternPart::Text(expected) => {
            let start = end.checked_sub(expected.len())?;
            (part(text, start, end) == *expected).then_some(start)
        }
        PatternPart::Run { letters, min, max } => {
            let reach = if *max == usize::MAX { 160 } else { max + 1 };
            let start = back(text, end.saturating_sub(reach), end, |b| letters.have(b));
            let run = part(text, start, end);
            (run.len() >= *min && run.len() <= *max && letters.accept(run)).then_some(start)
        }
    }
}

fn read_part(written: &'static str) -> Option<PatternPart> {
    let run = written
        .split_once('{')
        .and_then(|(name, count)| Some((Letters::named(name)?, count.strip_suffix('}')?)));
    let Some((letters, count)) = run else {
        return Some(PatternPart::Text(written));
    };
    let (min, max) = match count.split_once(',') {
        None => (count.parse().ok()?, count.parse().ok()?),
        Some((min, "")) => (min.parse().ok()?, usize::MAX),
        Some((min, max)) => (min.parse().ok()?, max.parse().ok()?),
    };
    Some(PatternPart::Run { letters, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_its_parts_in_their_order() {
        let found = |pattern: &'static str, text: &'static str| {
            let pattern = Pattern::parse(pattern).unwrap();
            let (start, end) = match pattern.text() {
                Some(anchor) => pattern.around(text, text.find(anchor)?)?,
                None => (0, pattern.at(text, 0)?),
            };
            text.get(start..end)
        };
        assert_eq!(found("ab_ hex{4}", "x ab_01af."), Some("ab_01af"));
        assert_eq!(found("ab_ hex{4}", "x ab_01af2"), None, "longer");
        assert_eq!(found("ab_ word{4,}", "ab_0x-1_2.z"), Some("ab_0x-1_2"));
        assert_eq!(found("digit{2} :AA word{2,}", "17:AAx9 y"), Some("17:AAx9"));
        assert_eq!(
            found("digit{2} :AA word{2,}", "7:AAx9 y"),
            None,
            "too short before it"
        );
        assert_eq!(found("@ hex{4} - hex{2}", "0a1b-2c d"), Some("0a1b-2c"));
        assert_eq!(
            found("ab random{20,}", "abcdefghijklmnopqrstuvwxyz"),
            None,
            "words"
        );
        assert_eq!(Pattern::parse("ab hex{x}"), None);
    }
}
