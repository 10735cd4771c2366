//! The pieces of a word: `ALERT_RECOVERY` is `alert` and `recovery`, `ResolvedCritical` is `resolved` and `critical`.

use super::WordList;

/// More pieces are a sentence and no word.
const MAX_PIECES: usize = 12;

/// Words of keys without separators, a longer one before one that it begins with.
const WORDS: WordList = WordList::new(
    "notification description service host server monitor alert alarm incident problem event message trigger policy \
     condition rule check sensor device last previous current new old display name desc state status severity type \
     action output number id key url short long date time address alias group command comment author perf data node \
     resource attempt",
);

/// The pieces of a text in lower case: letters and digits, split where an upper-case letter begins a word. Empty for a
/// text of more than twelve.
pub fn pieces(text: &str) -> Vec<String> {
    let mut pieces = all(text);
    if pieces.len() > MAX_PIECES {
        pieces.clear();
    }
    pieces
}

/// The pieces of a text of any length.
fn all(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        push_run(run, &mut pieces);
    }
    pieces
}

/// The pieces of a key of an object. Some senders write keys in capital letters only: `SERVICESTATE`.
pub fn key_pieces(key: &str) -> Vec<String> {
    all(key)
        .into_iter()
        .flat_map(|piece| cut(&piece).unwrap_or_else(|| vec![piece]))
        .collect()
}

/// A piece in words of such keys, if it consists of them.
fn cut(piece: &str) -> Option<Vec<String>> {
    if piece.is_empty() {
        return Some(Vec::new());
    }
    WORDS.iter().find_map(|word| {
        let mut rest = cut(piece.strip_prefix(word)?)?;
        rest.insert(0, word.to_owned());
        Some(rest)
    })
}

fn push_run(run: &str, pieces: &mut Vec<String>) {
    let letters: Vec<char> = run.chars().collect();
    let mut piece = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(at + 1);
        // `nodeNot` begins a word at `N`, and `HTTPError` at the last upper-case letter.
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase()
                    || after.is_some_and(|after| after.is_lowercase()) && !before.is_numeric()
            });
        if begins && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
        }
        piece.extend(letter.to_lowercase());
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_pieces_that_a_person_reads() {
        for (text, expected) in [
            ("ALERT_RECOVERY", "alert recovery"),
            ("ResolvedCritical", "resolved critical"),
            ("HTTPError", "http error"),
            ("NodeNotReady", "node not ready"),
            ("sev-1", "sev 1"),
            ("P1 - Critical", "p1 critical"),
            ("🔴 Down", "down"),
            ("Störung behoben", "störung behoben"),
            ("", ""),
        ] {
            assert_eq!(pieces(text).join(" "), expected, "{text}");
        }
        assert_eq!(pieces(&"word ".repeat(13)), Vec::<String>::new());
        for (key, expected) in [
            ("SERVICESTATE", "service state"),
            ("LASTSERVICESTATE", "last service state"),
            ("hostname", "host name"),
            ("hostnamen", "hostnamen"),
            ("alert_id", "alert id"),
        ] {
            assert_eq!(key_pieces(key).join(" "), expected, "{key}");
        }
    }
}
