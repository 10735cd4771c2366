//! Keys and values without quotes: numbers that JSON does not have, words of other languages, macros.

use super::Repairer;
use super::cursor::is_key_byte;
use crate::sources::Repair;

/// A longer one is no number.
const MAX_NUMBER_BYTES: usize = 64;

impl Repairer<'_> {
    /// A key without quotes; `None` for anything else, which no template writes as a key.
    pub(super) fn key(&mut self) -> Option<()> {
        let key = self.cursor.take_until(|byte| !is_key_byte(byte));
        if key.is_empty() {
            return None;
        }
        self.repairs.insert(Repair::Words);
        self.quoted(key);
        Some(())
    }

    /// A value without quotes: up to the next comma, bracket or line break.
    pub(super) fn word(&mut self) {
        let start = self.cursor.rest();
        loop {
            self.cursor.take_until(|byte| b",]}{\r\n".contains(&byte));
            if self.cursor.peek() != Some(b'{') {
                break;
            }
            self.cursor.skip_braces();
        }
        let length = start.len() - self.cursor.rest().len();
        let word = start.get(..length).unwrap_or_default().trim();
        match word.to_lowercase().as_str() {
            "true" => self.out.push_str("true"),
            "false" => self.out.push_str("false"),
            "null" | "none" | "nil" | "undefined" | "" => self.out.push_str("null"),
            _ if is_number(word) => {
                self.out.push_str(word);
                return;
            }
            _ => self.quoted(word),
        }
        if matches!(word, "true" | "false" | "null") {
            return;
        }
        let is_number = word
            .trim_start_matches(['-', '+', '.'])
            .starts_with(|c: char| c.is_ascii_digit())
            && !word.contains(' ')
            || ["nan", "inf", "infinity"]
                .contains(&word.trim_start_matches(['-', '+']).to_lowercase().as_str());
        if !is_number {
            self.words += 1;
        }
        self.repairs.insert(if is_number {
            Repair::Numbers
        } else {
            Repair::Words
        });
    }

    fn quoted(&mut self, text: &str) {
        self.out
            .push_str(&serde_json::Value::from(text).to_string());
    }
}

/// A number that JSON has and that is finite.
fn is_number(word: &str) -> bool {
    word.len() <= MAX_NUMBER_BYTES
        && word.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && serde_json::from_str::<f64>(word).is_ok_and(f64::is_finite)
}
