//! Parses a person's search text into a database query.

use super::MAX_QUERY_WORDS;
use super::words::{segments, word};

/// The `tsquery` of a search in the syntax of web searches: all words have to occur, those after `-` must not, and `or`
/// stands between alternatives. A phrase in quotes is found by its words, in any order. `None` when the search has no
/// word: it finds nothing.
pub fn query(search: &str) -> Option<String> {
    let mut alternatives = vec![Vec::new()];
    let mut room = MAX_QUERY_WORDS;
    let mut sign = Sign::Wanted;
    for (number, part) in search.split('"').enumerate() {
        if number % 2 == 1 {
            push(&mut alternatives, term(part, sign, &mut room));
            continue;
        }
        for token in part.split_whitespace() {
            if token.eq_ignore_ascii_case("or") {
                alternatives.push(Vec::new());
                continue;
            }
            let (token, sign) = Sign::split(token);
            push(&mut alternatives, term(token, sign, &mut room));
        }
        // `-"` negates the phrase that follows.
        let is_alone = part.split_whitespace().next_back() == Some("-");
        sign = if is_alone && part.ends_with('-') {
            Sign::Unwanted
        } else {
            Sign::Wanted
        };
    }
    let all = alternatives
        .iter()
        .filter(|terms| !terms.is_empty())
        .map(|terms| terms.join(" & "));
    let query = all.collect::<Vec<_>>().join(" | ");
    (!query.is_empty()).then_some(query)
}

/// The `tsquery` of the first `max` words of a text, all of which have to occur; no character of it has a meaning.
/// `None` when it has no word.
pub fn all_of(text: &str, max: usize) -> Option<String> {
    let mut room = max;
    term(text, Sign::Wanted, &mut room)
}

/// Whether a term has to occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Wanted,
    Unwanted,
}

impl Sign {
    /// The sign of a token, and the token without it.
    fn split(token: &str) -> (&str, Self) {
        token
            .strip_prefix('-')
            .map_or((token, Self::Wanted), |token| (token, Self::Unwanted))
    }
}

fn push(alternatives: &mut [Vec<String>], term: Option<String>) {
    if let Some(last) = alternatives.last_mut() {
        last.extend(term);
    }
}

/// The words of a text, all of which have to occur; of an unwanted one, they must not all occur. A word has no quote
/// and no backslash, so it needs no escape.
fn term(text: &str, sign: Sign, room: &mut usize) -> Option<String> {
    let words: Vec<String> = segments(text)
        .filter_map(word)
        .take(*room)
        .map(|word| format!("'{word}'"))
        .collect();
    *room -= words.len();
    let all = words.join(" & ");
    match sign {
        Sign::Wanted => Some(all).filter(|all| !all.is_empty()),
        Sign::Unwanted => (!all.is_empty()).then(|| format!("!({all})")),
    }
}
