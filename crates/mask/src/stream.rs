//! Masks a text that arrives in chunks: returns only text that can no longer become part of a secret.
//!
//! The whole text so far is masked, never a chunk alone. It is cut at a space or at the end of a line, but not within a
//! unit that is parsed as a whole: a fence, brackets, a private key, lines that look like YAML.

use super::Mask;
use super::bytes::begins;

/// The text is masked again when 1/16 of it is new, so each byte is masked a bounded number of times.
const NEW_DIVISOR: usize = 16;
/// A line of this length without spaces may be part of an encoded key whose end marker follows later.
const MIN_ENCODED_LINE: usize = 40;

/// The mask of one streamed text.
#[derive(Debug)]
pub struct StreamMask {
    mask: Mask,
    /// The original text so far.
    raw: String,
    /// The masked text that was returned.
    shown: String,
    /// Bytes of `raw` that the last returned text was masked from.
    masked: usize,
    /// Bytes of `raw` up to the last safe cut.
    safe: usize,
    /// Offset of the first line that is not read yet.
    line: usize,
    block: Block,
    /// A later chunk changed the masked form of returned text: nothing more is returned until the end.
    revoked: bool,
}

/// The units that the lines so far leave open.
#[derive(Debug, Default)]
struct Block {
    fenced: bool,
    key: bool,
    brackets: usize,
    structured: bool,
}

impl StreamMask {
    /// An empty text.
    pub fn new(mask: Mask) -> Self {
        Self {
            mask,
            raw: String::new(),
            shown: String::new(),
            masked: 0,
            safe: 0,
            line: 0,
            block: Block::default(),
            revoked: false,
        }
    }

    /// Adds a chunk; returns the next masked text.
    pub fn push(&mut self, chunk: &str) -> String {
        self.raw.push_str(chunk);
        self.read_lines();
        let fresh = self.safe.saturating_sub(self.masked);
        if self.revoked || fresh == 0 || fresh < self.masked / NEW_DIVISOR {
            return String::new();
        }
        let masked = self
            .mask
            .apply(self.raw.get(..self.safe).unwrap_or_default());
        let Some(piece) = masked
            .strip_prefix(self.shown.as_str())
            .map(ToOwned::to_owned)
        else {
            self.revoked = true;
            return String::new();
        };
        self.masked = self.safe;
        self.shown.push_str(&piece);
        piece
    }

    /// The rest of the masked text after the last chunk. All returned texts together are the masked text, unless the
    /// end has changed the masked form of the beginning.
    pub fn finish(self) -> String {
        let masked = self.mask.apply(&self.raw);
        let common = masked
            .char_indices()
            .zip(self.shown.chars())
            .find(|((_, one), other)| one != other);
        let same = common.map_or_else(|| masked.len().min(self.shown.len()), |((at, _), _)| at);
        masked.get(same..).unwrap_or_default().to_owned()
    }

    /// Moves the safe cut as far as possible.
    fn read_lines(&mut self) {
        let end = self
            .raw
            .floor_char_boundary(self.raw.len().saturating_sub(self.mask.held_back()));
        while let Some(line) = self
            .raw
            .get(self.line..end)
            .and_then(|rest| Some(rest.split_once('\n')?.0))
        {
            self.block.take(line);
            self.line += line.len() + 1;
            if self.block.is_closed() {
                self.safe = self.line;
            }
        }
        let begun = self.raw.get(self.line..end).unwrap_or_default();
        if self.block.is_closed()
            && is_prose(begun)
            && let Some(blank) = begun.rfind(' ')
        {
            self.safe = self.safe.max(self.line + blank + 1);
        }
    }
}

impl Block {
    fn is_closed(&self) -> bool {
        !self.fenced && !self.key && self.brackets == 0 && !self.structured
    }

    fn take(&mut self, line: &str) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            self.fenced = !self.fenced;
        }
        let says = |word: &str| {
            trimmed
                .as_bytes()
                .windows(word.len())
                .any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        };
        if trimmed.contains("---") && says("begin ") {
            self.key = true;
        }
        if trimmed.contains("---") && says("end ") {
            self.key = false;
        }
        for c in trimmed.chars() {
            match c {
                '{' | '[' => self.brackets += 1,
                '}' | ']' => self.brackets = self.brackets.saturating_sub(1),
                _ => {}
            }
        }
        self.structured = !trimmed.is_empty() && (self.structured || is_structured(line));
    }
}

/// Whether a later line may change the meaning of this one: it may be part of a YAML mapping or of an encoded key.
fn is_structured(line: &str) -> bool {
    let item = line.trim_start().trim_start_matches("- ").trim_end();
    let nested = item.len() < line.trim_end().len() && item.contains(':');
    let opens = item.ends_with([':', '|', '>', '\\']);
    nested
        || opens
        || begins(item, "value")
        || (item.len() >= MIN_ENCODED_LINE && !item.contains(' '))
}

/// Whether the line so far is prose, which may be cut between two words.
fn is_prose(line: &str) -> bool {
    !line.contains([
        ':', '=', '|', '<', '>', '"', '\'', '`', '{', '}', '[', ']', '\\', '\t', '-',
    ]) && !line.starts_with(' ')
}

impl Mask {
    /// Bytes at the end of an unfinished text that may be the beginning of a known secret with white space. A secret
    /// without white space ends with its word.
    fn held_back(&self) -> usize {
        let secrets = self.secrets.current();
        let spaced = secrets
            .iter()
            .filter(|secret| secret.contains(char::is_whitespace));
        spaced.map(String::len).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text returned after each piece, and the rest at the end.
    fn streamed(mask: &Mask, pieces: &[&str]) -> Vec<String> {
        let mut stream = StreamMask::new(mask.clone());
        let mut shown: Vec<String> = pieces.iter().map(|piece| stream.push(piece)).collect();
        shown.push(stream.finish());
        shown
    }

    /// Cuts a text into pieces of about these sizes in bytes, again and again.
    fn split(text: &str, sizes: &[usize]) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        let mut sizes = sizes.iter().cycle();

        while !rest.is_empty() {
            let size = rest.ceil_char_boundary((*sizes.next().unwrap()).min(rest.len()));
            let (piece, after) = rest.split_at(size);
            pieces.push(piece.to_owned());
            rest = after;
        }
        pieces
    }

    #[test]
    fn complete_words_are_returned_at_once() {
        let shown = streamed(
            &Mask::default(),
            &["The pod w", "as killed", " at its own limit.\nNe", "xt"],
        );
        assert_eq!(
            shown,
            ["The pod ", "was ", "killed at its own limit.\n", "", "Next"]
        );
    }

    #[test]
    fn a_secret_in_several_chunks_is_returned_in_none() {
        let token = format!(
            "ghp_{}",
            "0123456789abcdefghijABCDEFGHIJ0123456789"
                .get(..36)
                .unwrap()
        );
        let spaced = Mask::new(["correct horse battery".to_owned()]);
        for (mask, text, secret) in [
            (Mask::default(), format!("pushed with {token} today\n"), token.as_str()),
            (Mask::default(), "the password=hunter2hunter2 is set\n".to_owned(), "hunter2hunter2"),
            (Mask::default(), "password: hunter2hunter2".to_owned(), "hunter2hunter2"),
            (Mask::default(), "{\"user\": 1,\n \"password\": \"hunter2hunter2\"}".to_owned(), "hunter2hunter2"),
            (spaced, "it is correct horse battery staple".to_owned(), "correct"),
            (
                Mask::default(),
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE abcd\n\nMIIF\n-----END RSA PRIVATE KEY-----\nend".to_owned(),
                "MII",
            ),
        ] {
            for size in 1..text.len() {
                let pieces = split(&text, &[size]);
                let shown = streamed(&mask, &pieces.iter().map(String::as_str).collect::<Vec<_>>());
                assert_eq!(shown.concat(), mask.apply(&text), "{size}");
                assert!(!shown.concat().contains(secret), "{size} {shown:?}");
            }
        }
    }

    #[test]
    fn a_unit_is_returned_when_it_is_complete() {
        for (open, close) in [
            (
                "Look:\n```yaml\ndata: x\n",
                "kind: ConfigMap\n```\n\nThat is it.\n",
            ),
            (
                "apiVersion: v1\ndata:\n  user: YWJj\n",
                "kind: ConfigMap\n\n",
            ),
            ("I found {\"a\": 1,\n", "\"b\": 2}\n"),
            ("- value: abc\n", "  name: DB_USER\n\n"),
        ] {
            let mut stream = StreamMask::new(Mask::default());
            let first = stream.push(open);
            assert!(
                !first.contains("data") && !first.contains('{') && !first.contains("abc"),
                "{first:?}"
            );
            let rest = stream.push(close);
            assert_eq!(first + &rest, format!("{open}{close}"));
        }
    }

    #[test]
    fn a_long_text_in_small_chunks_takes_linear_time() {
        let took = |chunks: usize| {
            let begun = std::time::Instant::now();
            let mut stream = StreamMask::new(Mask::default());
            let shown: usize = (0..chunks)
                .map(|_| stream.push("some words of a text \n").len())
                .sum();
            assert!(shown > 20 * chunks - 1_000);
            begun.elapsed()
        };
        // Ten times the text takes about ten times as long; if each chunk read all of it, a hundred times.
        let short = took(2_000);
        let long = took(20_000);

        assert!(long < 40 * short, "{short:?} {long:?}");
    }

    proptest! {
        #[test]
        fn no_text_is_lost_and_no_secret_of_the_whole_text_is_shown(
            text in r#"((password|token|Authorization|bearer|kind|data|value|name)[=: ]{1,2}|["'\\`]|[a-z0-9äß]{1,9}|[ ,;&\n\[\]{}@/]|://|```\n|- |  ){0,40}"#,
            secret in "[A-Za-z0-9]{8,20}",
            key in "(PASSWORD=|db_password: |\"apiKey\": \"|--password )",
            sizes in prop::collection::vec(1_usize..12, 1..6),
        ) {
            let text = format!("{text}\n\n{key}{secret}\nand {text}");
            let mask = Mask::new(["known literal".to_owned()]);
            let pieces = split(&text, &sizes);
            let shown = streamed(&mask, &pieces.iter().map(String::as_str).collect::<Vec<_>>()).concat();
            let whole = mask.apply(&text);
            prop_assert!(whole.contains(&secret) || !shown.contains(&secret), "{shown}");
            let same = whole.chars().zip(shown.chars()).take_while(|(one, other)| one == other).count();
            prop_assert!(shown.ends_with(&whole.chars().skip(same).collect::<String>()), "{shown:?} for {whole:?}");
        }
    }
}
