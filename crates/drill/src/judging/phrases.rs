//! Compares texts of models with phrases: case, white space, Markdown and typographic signs do not matter.

const NEGATIONS: [&str; 9] = [
    "no", "not", "don't", "never", "without", "avoid", "instead", "nor", "cannot",
];
/// A negation counts for so many words after it.
const NEGATED_WORDS: usize = 5;

/// The text in the form in which phrases are searched.
pub(super) fn folded(text: &str) -> String {
    let text: String = text
        .chars()
        .filter_map(|c: char| match c {
            '\u{2018}' | '\u{2019}' => Some('\''),
            '\u{201c}' | '\u{201d}' => Some('"'),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
            '*' | '`' => None,
            other => Some(other),
        })
        .collect();
    text.to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The first phrase that a folded text contains.
pub(super) fn first_in<'p>(folded_text: &str, phrases: &'p [String]) -> Option<&'p str> {
    phrases
        .iter()
        .map(String::as_str)
        .find(|phrase| folded_text.contains(&folded(phrase)))
}

/// The first phrase that a folded text advises: one that no word close before it negates.
pub(super) fn first_advised<'p>(folded_text: &str, phrases: &'p [String]) -> Option<&'p str> {
    phrases.iter().map(String::as_str).find(|phrase| {
        let phrase = folded(phrase);
        let mut before = folded_text
            .match_indices(&phrase)
            .map(|(at, _)| folded_text.get(..at));
        before.any(|before| !before.is_some_and(is_negated))
    })
}

/// Whether one of the last words of the clause negates what follows.
fn is_negated(before: &str) -> bool {
    let clause = before
        .rsplit([',', ';', '.', ':'])
        .next()
        .unwrap_or_default();
    let words = clause
        .rsplit(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty());
    words
        .take(NEGATED_WORDS)
        .any(|word| NEGATIONS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_hide_a_phrase() {
        let phrases = ["can't log in".to_owned(), "Tax_Class".to_owned()];
        assert_eq!(
            first_in(&folded("It **can\u{2019}t\n  log in**"), &phrases),
            Some("can't log in")
        );
        assert_eq!(
            first_in(&folded("column `p.tax_class`"), &phrases),
            Some("Tax_Class")
        );
        assert_eq!(first_in(&folded("tax class"), &phrases), None);
    }

    #[test]
    fn a_warning_is_no_advice() {
        let phrases = ["restart postgres".to_owned()];
        for (text, found) in [
            ("restart postgres", true),
            ("do not restart postgres", false),
            ("roll it back without trying to restart postgres", false),
            ("do not wait, restart postgres", true),
            ("never restart postgres. then restart postgres", true),
        ] {
            assert_eq!(first_advised(text, &phrases).is_some(), found, "{text}");
        }
    }
}
