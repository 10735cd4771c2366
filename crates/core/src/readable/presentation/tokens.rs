//! The parts of a record that may differ between repetitions: values, in a skeleton of words.

use super::times::LineTime;

/// A value of a record: a range of bytes in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The word before it, its name; empty if another value or nothing stands there.
    pub(super) name_start: usize,
    pub(super) name_end: usize,
    pub(super) is_record_time: bool,
}

/// Units keep their place in a skeleton: 5 MB and 5 TB are no repetition.
const UNITS: [&str; 34] = [
    "ms", "s", "us", "ns", "m", "h", "d", "b", "B", "k", "K", "kb", "KB", "mb", "MB", "gb", "GB",
    "tb", "TB", "kB", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "KiB", "MiB", "GiB", "TiB", "Kb",
    "Mb",
];

/// In the place of the value's digits in a skeleton.
const PLACE: char = '\0';

/// Reads the record between these bytes of the text. Returns its skeleton and adds its values.
pub(super) fn read(
    text: &str,
    range: std::ops::Range<usize>,
    time: Option<LineTime>,
    values: &mut Vec<Value>,
) -> String {
    let mut reader = Reader {
        text,
        skeleton: String::with_capacity(range.len()),
        values,
        last_word: 0..0,
    };
    let mut at = range.start;
    if let Some(time) = time {
        let start = range.start + time.start;
        reader.plain(at..start);
        at = start + time.stamp.length;
        reader.record_time(start..at);
        reader.skeleton.push(PLACE);
    }
    reader.plain(at..range.end);
    reader.skeleton
}

struct Reader<'a> {
    text: &'a str,
    skeleton: String,
    values: &'a mut Vec<Value>,
    /// The word that stands directly before the next token.
    last_word: std::ops::Range<usize>,
}

impl Reader<'_> {
    fn plain(&mut self, range: std::ops::Range<usize>) {
        let bytes = self.text.as_bytes();
        let mut at = range.start;
        while at < range.end {
            let end = token_end(bytes, at, range.end);
            if end == at {
                let next = next_token(bytes, at, range.end);
                let between = self.text.get(at..next).unwrap_or_default();
                if !joins_name(between) {
                    self.last_word = 0..0;
                }
                self.skeleton.push_str(between);
                at = next;
                continue;
            }
            self.token(at..end);
            at = end;
        }
    }

    fn token(&mut self, range: std::ops::Range<usize>) {
        let token = self.text.get(range.clone()).unwrap_or_default();
        let has_digit = token.bytes().any(|byte| byte.is_ascii_digit());
        let names_id =
            self.text.get(self.last_word.clone()).is_some_and(is_id) && !self.ends_with_blank();
        if names_id || is_uuid(token) {
            self.value(range);
            self.skeleton.push(PLACE);
            return;
        }
        if !has_digit {
            self.skeleton.push_str(token);
            self.last_word = range;
            return;
        }
        for piece in token.split_inclusive(['.', ':', '-', '+', '_']) {
            let word = piece.trim_end_matches(['.', ':', '-', '+', '_']);
            if word.bytes().any(|byte| byte.is_ascii_digit()) {
                self.skeleton.push(PLACE);
                self.skeleton.push_str(unit(word));
                self.skeleton
                    .push_str(piece.get(word.len()..).unwrap_or_default());
            } else {
                self.skeleton.push_str(piece);
            }
        }
        self.value(range);
    }

    /// Whether a blank and no sign of a pair stands before the next token.
    fn ends_with_blank(&self) -> bool {
        let behind = self.skeleton.trim_end_matches([' ', '"']);
        !behind.ends_with([':', '='])
    }

    fn value(&mut self, range: std::ops::Range<usize>) {
        let name = std::mem::replace(&mut self.last_word, 0..0);
        self.values.push(Value {
            start: range.start,
            end: range.end,
            name_start: name.start,
            name_end: name.end,
            is_record_time: false,
        });
    }

    /// The time with which a record begins; no word stands before it.
    fn record_time(&mut self, range: std::ops::Range<usize>) {
        self.values.push(Value {
            start: range.start,
            end: range.end,
            name_start: 0,
            name_end: 0,
            is_record_time: true,
        });
        self.last_word = 0..0;
    }
}

/// Whether the word before these bytes names the value behind them.
fn joins_name(between: &str) -> bool {
    between.len() <= 4
        && !between.contains('\n')
        && between
            .bytes()
            .all(|byte| matches!(byte, b' ' | b'"' | b':' | b'=' | b'\''))
}

/// Whether the values of this name are identifiers: `reqId`, `trace_id`, `spanID`, `uid`.
fn is_id(name: &str) -> bool {
    ["Id", "ID", "_id", "uid", "uuid"]
        .iter()
        .any(|end| name.ends_with(end))
        || name == "id"
}

fn is_uuid(token: &str) -> bool {
    token.len() == 36
        && token.bytes().enumerate().all(|(index, byte)| {
            if matches!(index, 8 | 13 | 18 | 23) {
                byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        })
}

/// The unit behind a number; empty for no known one.
fn unit(word: &str) -> &str {
    let letters = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if UNITS.contains(&letters) {
        letters
    } else {
        ""
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The end of the token that begins at `at`; `at` when none begins there.
fn token_end(bytes: &[u8], at: usize, limit: usize) -> usize {
    let mut end = at;
    while end < limit {
        let Some(byte) = bytes.get(end).copied() else {
            return end;
        };
        let joins = end > at && {
            let before = bytes.get(end - 1).copied().unwrap_or_default();
            let after = if end + 1 < limit {
                bytes.get(end + 1).copied().unwrap_or_default()
            } else {
                0
            };
            match byte {
                b'.' | b'-' => is_word(before) && is_word(after),
                b':' | b'+' => before.is_ascii_digit() && after.is_ascii_digit(),
                _ => false,
            }
        };
        if !is_word(byte) && !joins {
            return end;
        }
        end += 1;
    }
    end
}

fn next_token(bytes: &[u8], at: usize, limit: usize) -> usize {
    bytes
        .get(at..limit)
        .and_then(|rest| rest.iter().position(|byte| is_word(*byte)))
        .map_or(limit, |found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skeleton(text: &str) -> String {
        read(text, 0..text.len(), None, &mut Vec::new()).replace(PLACE, "#")
    }

    #[test]
    fn words_units_and_signs_stay_and_digits_and_identifiers_do_not() {
        for (text, expected) in [
            ("POST /api/v1/charge 200 81ms", "POST /api/#/charge # #ms"),
            ("wrote 5.2 GB, then 5TB", "wrote #.# GB, then #TB"),
            (
                r#"{"reqId":"req-cn","took":-1.5}"#,
                "{\"reqId\":\"#\",\"took\":-#.#}",
            ),
            ("error-12 at node-7", "error-# at node-#"),
            ("id 3f0bdcae-abcd-abcd-abcd-3f0bdcaeffff", "id #"),
            ("paid in full", "paid in full"),
        ] {
            assert_eq!(skeleton(text), expected, "{text}");
        }
    }

    #[test]
    fn a_value_has_the_word_before_it_as_its_name() {
        let text = r#"{"responseTime":207.3} wrote 12 of 13"#;
        let mut values = Vec::new();
        read(text, 0..text.len(), None, &mut values);
        let named: Vec<_> = values
            .iter()
            .map(|value| {
                (
                    text.get(value.name_start..value.name_end).unwrap(),
                    text.get(value.start..value.end).unwrap(),
                )
            })
            .collect();
        assert_eq!(
            named,
            [("responseTime", "207.3"), ("wrote", "12"), ("of", "13")]
        );
    }
}
