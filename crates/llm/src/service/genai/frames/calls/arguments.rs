//! The text of a call's arguments while it arrives, and where the JSON value in it ends.

use serde_json::Value;

/// Arguments, as far as they have arrived. A long text of many small pieces is read once.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    text: String,
    progress: Progress,
    depth: usize,
    string: InString,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// Only spaces have arrived.
    #[default]
    Blank,
    Open,
    /// One JSON object, list or text, and spaces.
    Whole,
    /// More than one value has arrived.
    Spoiled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InString {
    #[default]
    No,
    Yes,
    Escaped,
}

impl Arguments {
    pub(super) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        for letter in piece.chars() {
            self.read(letter);
        }
    }

    fn read(&mut self, letter: char) {
        match self.string {
            InString::Escaped => self.string = InString::Yes,
            InString::Yes if letter == '\\' => self.string = InString::Escaped,
            InString::Yes if letter == '"' => {
                self.string = InString::No;
                self.close_at_top();
            }
            InString::Yes => {}
            InString::No if letter.is_ascii_whitespace() => {}
            InString::No => self.read_token(letter),
        }
    }

    fn read_token(&mut self, letter: char) {
        match self.progress {
            Progress::Blank => self.progress = Progress::Open,
            Progress::Whole => self.progress = Progress::Spoiled,
            Progress::Open | Progress::Spoiled => {}
        }
        match letter {
            '"' => self.string = InString::Yes,
            '{' | '[' => self.depth += 1,
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                self.close_at_top();
            }
            _ => {}
        }
    }

    fn close_at_top(&mut self) {
        if self.depth == 0 && self.progress == Progress::Open {
            self.progress = Progress::Whole;
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.progress == Progress::Blank
    }

    /// Whether the text is one value, as far as its brackets say.
    pub(super) fn is_whole(&self) -> bool {
        self.progress == Progress::Whole
    }

    pub(super) fn is_same(&self, other: &str) -> bool {
        self.text.trim() == other.trim()
    }

    /// Whether a call with these arguments may be one without any.
    pub(super) fn is_trivial(&self) -> bool {
        matches!(self.text.trim(), "" | "{}" | "null")
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// The text that a piece adds to the arguments: a text, or an object of a server that does not encode it.
pub(super) fn addition(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Arguments {
        let mut arguments = Arguments::default();
        arguments.push(text);
        arguments
    }

    #[test]
    fn a_value_is_whole_at_its_last_bracket() {
        let whole = [
            "{}",
            " {\"a\": \"}\\\"{\"} \n",
            "[1]",
            "\"{\\\"a\\\":1}\"",
            "{\"a\":{\"b\":[]}}",
        ];
        for text in whole {
            assert!(of(text).is_whole(), "{text}");
            let mut pieces = Arguments::default();
            text.chars()
                .for_each(|letter| pieces.push(&letter.to_string()));
            assert!(pieces.is_whole() && pieces.is_same(text), "{text}");
        }
        for text in ["", " ", "{", "{\"a\":", "{}{", "{} x", "{\"a\":\"}", "1"] {
            assert!(!of(text).is_whole(), "{text}");
        }
        assert!(of(" \n").is_blank() && !of("{").is_blank());
    }
}
