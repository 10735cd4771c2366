//! The model's stated confidence in its analysis. It is stored as the model wrote it; nothing here checks it.

use serde::Serialize;

/// The confidence of a model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Sure {
    Certain,
    Likely,
    Unsure,
}

crate::words!(pub Sure, pub ALL);

/// A percentage from which a cause is certain, and from which it is likely.
const CERTAIN_PERCENT: u32 = 95;
const LIKELY_PERCENT: u32 = 70;

const UNSURE: [&str; 11] = [
    "not certain",
    "not sure",
    "not very",
    "unsure",
    "uncertain",
    "unlikely",
    "low",
    "possible",
    "possibly",
    "weak",
    "unknown",
];
const LIKELY: [&str; 8] = [
    "likely",
    "very likely",
    "most likely",
    "probable",
    "probably",
    "medium",
    "moderate",
    "fairly",
];
const CERTAIN: [&str; 8] = [
    "certain",
    "sure",
    "very sure",
    "high",
    "very high",
    "confirmed",
    "definite",
    "proven",
];

impl Sure {
    /// The word at the beginning of a text, and what stands after it.
    pub(super) fn parse(text: &str) -> (Option<Self>, &str) {
        let text = text.trim().trim_start_matches(['*', '_', '`', ' ']);
        let lower = text.to_ascii_lowercase();
        let words = [
            (Self::Unsure, &UNSURE[..]),
            (Self::Likely, &LIKELY[..]),
            (Self::Certain, &CERTAIN[..]),
        ];
        for (sure, spellings) in words {
            let longest = spellings
                .iter()
                .filter(|word| is_word_of(&lower, word))
                .max_by_key(|word| word.len());
            if let Some(word) = longest {
                return (Some(sure), rest(text, word.len()));
            }
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let behind = text.get(digits..).unwrap_or_default().trim_start();
        let percent = text.get(..digits).and_then(|number| number.parse().ok());
        let is_percent = behind.starts_with('%') || behind.starts_with("percent");
        match percent {
            Some(percent @ 0..=100) if is_percent => (Some(Self::of_percent(percent)), text),
            Some(_) | None => (None, text),
        }
    }

    fn of_percent(percent: u32) -> Self {
        match percent {
            CERTAIN_PERCENT.. => Self::Certain,
            LIKELY_PERCENT.. => Self::Likely,
            _ => Self::Unsure,
        }
    }
}

fn is_word_of(text: &str, word: &str) -> bool {
    text.strip_prefix(word)
        .is_some_and(|behind| !behind.starts_with(|c: char| c.is_alphanumeric()))
}

fn rest(text: &str, from: usize) -> &str {
    text.get(from..)
        .unwrap_or_default()
        .trim_start_matches(|c: char| {
            matches!(
                c,
                '*' | '_' | '`' | ',' | ';' | ':' | '.' | '-' | '–' | '—' | ' '
            )
        })
        .trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_percentages_of_models_are_read() {
        for (text, sure, why) in [
            (
                "certain, the log says so [5]",
                Some(Sure::Certain),
                "the log says so [5]",
            ),
            ("Likely: two facts fit", Some(Sure::Likely), "two facts fit"),
            ("**unsure** — no logs", Some(Sure::Unsure), "no logs"),
            (
                "Very high (three sources)",
                Some(Sure::Certain),
                "(three sources)",
            ),
            ("not certain", Some(Sure::Unsure), ""),
            ("95%", Some(Sure::Certain), "95%"),
            (
                "80 % because of [5]",
                Some(Sure::Likely),
                "80 % because of [5]",
            ),
            ("40 percent", Some(Sure::Unsure), "40 percent"),
            (
                "certainly not what it looks like",
                None,
                "certainly not what it looks like",
            ),
            ("999%", None, "999%"),
            ("", None, ""),
        ] {
            assert_eq!(Sure::parse(text), (sure, why), "{text}");
        }
    }
}
