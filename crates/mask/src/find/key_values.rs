//! Finds key-value pairs in plain text (`password=…`, `"token": …`), command-line flags and authorization schemes.

use super::commands::{self, Command};
use super::word::Word;
use super::{named_values, phrases, statements};
use crate::bytes::{
    all, begins, byte, is_blank, is_opaque, is_quote, is_word, line_end, near_line_end, part, rest,
    skip, skip_near,
};
use crate::names::{Secrecy, Stems, names_a_key, secrecy};
use crate::spans::{SecretSpan, Span};
use crate::values::{Reach, is_harmless, secret_at, secret_word};

/// Reads word by word, and adds the offsets of words that name a secret. Returns the secrecy of the value after the
/// text, if the last word is its key.
pub(crate) fn find(
    text: &str,
    spans: &mut Vec<SecretSpan>,
    names: &mut Vec<usize>,
) -> Option<Secrecy> {
    let mut command = CommandLine::default();
    let mut at = 0;
    let mut open = None;
    let mut line = Span::default();
    let bytes = text.as_bytes();
    while let Some(b) = bytes.get(at).copied() {
        if !is_word(b) {
            if matches!(b, b'\n' | b';' | b'|') {
                let begin = if b == b'\n' { at + 1 } else { command.begin };
                command = CommandLine {
                    command: None,
                    read: at,
                    begin,
                };
            }
            at += 1;
            continue;
        }
        let start = at;
        let mut stems = Stems::default();
        while let Some(b) = bytes.get(at).copied().filter(|b| is_word(*b)) {
            stems.read(b);
            at += 1;
        }
        let word = Word {
            text,
            start,
            end: at,
        };
        if !word.is_candidate(&stems) {
            continue;
        }
        if word.is_name() {
            names.push(start);
        }
        let found = match word.assigned() {
            Some(value) if value >= text.len() => {
                open = Some(secrecy(word.name())).filter(|secrecy| *secrecy != Secrecy::None);
                None
            }
            Some(value) => word.pair(value).or_else(|| word.flag_of(&mut command)),
            None => word.flag_of(&mut command).or_else(|| word.alone()),
        };
        if let Some(span) = found.filter(|span| span.start < span.end) {
            at = at.max(span.end);
            spans.push(span);
            spans.extend(phrases::changed_to(text, span.end));
        } else {
            // The end of a line is searched for once, not for each of its words.
            if line.end < word.end {
                line = Span::new(command.begin, line_end(text, word.end));
            }
            statements::find(word, line, spans);
        }
    }
    open
}

/// The program that a line calls, and the offset up to which it was searched.
#[derive(Debug, Default)]
struct CommandLine {
    command: Option<Command>,
    read: usize,
    /// The begin of the line.
    begin: usize,
}

impl Word<'_> {
    /// Fast path: whether the word can belong to a secret at all. Most words cannot.
    fn is_candidate(self, stems: &Stems) -> bool {
        let name = self.name();
        let after = byte(self.text, self.end);
        let first = byte(self.text, self.start);
        let before = byte(self.text, self.start.wrapping_sub(1));
        let assigned = after == b':' && first.is_ascii_alphabetic();
        let fields = assigned && (byte(self.text, self.end + 1).is_ascii_digit() || before == b':');
        let user = assigned && phrases::USERS.find(name).is_some();
        let known = fields || user || commands::KEYWORDS.find(name).is_some();
        first == b'-' || matches!(before, b'?' | b'&') || known || stems.may_be_in(name)
    }

    /// Whether the word names a secret, or something that has secrets.
    fn is_name(self) -> bool {
        let name = self.name();
        name == "auths" || name.starts_with("KEY-----") || secrecy(name) != Secrecy::None
    }

    /// The start of the value after `key:`, `key=`, `"key" :`, `key=>`, `key ->` and the same in an escaped string.
    fn assigned(self) -> Option<usize> {
        let text = self.text;
        let b = byte(text, self.end);
        if b.is_ascii_whitespace() && !is_blank(b) || b == 0 {
            return None;
        }
        let entity = usize::from(begins(rest(text, self.end), "&quot;")) * "&quot;".len();
        let quoted = skip(text, self.end + entity, |b| {
            is_quote(b) || matches!(b, b'\\' | b']')
        });
        let at = skip(text, quoted, is_blank);
        // `Unseal Key 1: …`
        let number = skip_near(text, at, 3, |b| b.is_ascii_digit());
        let at = if number > at && at > quoted && byte(text, number) == b':' {
            number
        } else {
            at
        };
        let separator = byte(text, at);
        let after = match separator {
            b':' | b'=' => skip(text, at, |b| matches!(b, b':' | b'=')),
            b'-' if byte(text, at + 1) == b'>' => at + 1,
            _ => at + phrases::arrow(text, at)?,
        };
        let after = if begins(rest(text, after), "&gt;") {
            after + 4
        } else {
            after
        };
        let after = skip(text, after, |b| b == b'>');
        (byte(text, after) != b'/' || separator != b':' || byte(text, after + 1) != b'/')
            .then_some(())?;
        Some(skip(text, after, is_blank))
    }

    /// The secret value of this key.
    fn pair(self, value: usize) -> Option<SecretSpan> {
        let name = self.name();
        if name == "--from-literal" {
            let end = skip(self.text, value, |b| b != b'=' && !b.is_ascii_whitespace());
            return secret_word(self.text, end + 1);
        }
        let mut secrecy = secrecy(name);
        let in_query = matches!(byte(self.text, self.start.wrapping_sub(1)), b'?' | b'&');
        if in_query && matches!(name, "key" | "signature" | "Signature" | "code") {
            let end = skip(self.text, value, is_word);
            secrecy = if is_opaque(part(self.text, value, end), 16) {
                Secrecy::Strong
            } else {
                secrecy
            };
        }
        if secrecy == Secrecy::None {
            return phrases::pair(self, value);
        }
        if self.is_resource() || name == "secret" && self.is_label(value) || self.is_about(value) {
            return None;
        }
        if matches!(byte(self.text, value), b'\n' | b'\r' | 0) {
            return None;
        }
        if secrecy == Secrecy::Header {
            return self.header(value);
        }
        secret_at(
            self.text,
            value,
            if in_query { Reach::Word } else { self.reach() },
            secrecy,
        )
    }

    /// `{secret="db-credentials"}`: the name of an object in a label.
    fn is_label(self, value: usize) -> bool {
        let text = self.text;
        let end = skip(text, value + 1, |b| b.is_ascii_lowercase() || b == b'-');
        let named = byte(text, value) == b'"'
            && byte(text, end) == b'"'
            && part(text, value, end).contains('-');
        named && self.before().contains('{')
    }

    /// `checksum/secret: …` of a pod, and `secretKey: password`, which names a key.
    fn is_about(self, value: usize) -> bool {
        let word = part(self.text, value, skip(self.text, value, is_word));
        self.before().ends_with("checksum/") || names_a_key(self.name(), word)
    }

    /// `arn:aws:…:secret:prod/db` and `registry/token:1.2`: the name of a resource.
    fn is_resource(self) -> bool {
        let joined = byte(self.text, self.end) == b':' && !is_blank(byte(self.text, self.end + 1));
        let before = byte(self.text, self.start.wrapping_sub(1));
        joined && (before == b'/' || before == b':' && self.before().contains("arn:"))
    }

    /// The reach of a value without quotes: the whole line, if the key begins the line.
    fn reach(self) -> Reach {
        let before = self.before();
        let words = before.trim();
        let whole =
            self.start <= before.len() || byte(self.text, self.start - before.len() - 1) == b'\n';
        if whole
            && (all(before, |b| b" \t->#*+($@".contains(&b))
                || ["export", "set", "ENV", "setx", "declare -x"].contains(&words))
        {
            return Reach::Line;
        }
        let last = words.bytes().last().unwrap_or_default();
        let colon = skip(self.text, self.end, |b| is_quote(b) || is_blank(b));
        let flows = matches!(last, b'{' | b',' | b'[')
            || is_quote(last) && words.len() > 1
            || whole && is_quote(last);
        if flows && byte(self.text, colon) == b':' {
            Reach::Flow
        } else {
            Reach::Word
        }
    }

    /// The value of an HTTP header: up to the quote around the header, else to the end of the line.
    fn header(self, value: usize) -> Option<SecretSpan> {
        let text = self.text;
        let start = skip(text, value, |b| is_quote(b) || b == b'\\');
        let around = byte(text, self.start.wrapping_sub(1));
        let quote = if start > value {
            byte(text, start - 1)
        } else {
            around
        };
        let mut end = near_line_end(text, start, 8_192);
        if end - start >= 8_000 {
            // No harmless value is that long.
            return Some(SecretSpan::new(start, line_end(text, start)));
        }
        if is_quote(quote) {
            let close = part(text, start, end).find(char::from(quote));
            end = close.map_or(end, |length| start + length);
        }
        let content = part(text, start, end).trim_end_matches(['\\', '"', '\'', ' ', '\t']);
        let escaped = content
            .find("\\n")
            .or_else(|| content.find("\\r"))
            .or_else(|| content.find("\\\""));
        let end = start + escaped.unwrap_or(content.len());
        (!is_harmless(part(text, start, end), Secrecy::Header))
            .then_some(SecretSpan::new(start, end))
    }

    /// The secret after a flag of the program that the line calls.
    fn flag_of(self, line: &mut CommandLine) -> Option<SecretSpan> {
        if byte(self.text, self.start) != b'-' {
            return None;
        }
        let between = part(self.text, line.read, self.start);
        let words = between
            .split(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | '='));
        line.command = words
            .filter_map(Command::named)
            .next_back()
            .or(line.command);
        line.read = self.start;
        line.command?.secret(self.text, self.start, self.end)
    }

    /// The secret that follows the word without a separator.
    fn alone(self) -> Option<SecretSpan> {
        let name = self.name();
        let first = name.as_bytes().first().copied().unwrap_or_default();
        if first == b'-' {
            return if name.ends_with("stdin") {
                phrases::piped(self)
            } else {
                self.flag()
            };
        }
        if begins(name, "bearer") && name.len() == 6 {
            return self.scheme(|token| token.len() >= 20 || is_opaque(token, 6));
        }
        if begins(name, "basic") && name.len() == 5 {
            return self.scheme(|token| {
                token.len() >= 12 && (is_opaque(token, 12) || token.ends_with('='))
            });
        }
        commands::by_words(self.text, self.start, self.end).or_else(|| named_values::find(self))
    }

    /// `--password x`.
    fn flag(self) -> Option<SecretSpan> {
        let at = skip(self.text, self.end, is_blank);
        let secrecy_of_flag = secrecy(self.name());
        if at == self.end
            || byte(self.text, at) == b'-'
            || !matches!(secrecy_of_flag, Secrecy::Strong | Secrecy::Weak)
        {
            return None;
        }
        let span = secret_word(self.text, at)?;
        let value = part(self.text, span.start, span.end);
        if secrecy_of_flag == Secrecy::Weak && !is_opaque(value, 20) {
            return None;
        }
        let placeholder =
            all(value, |b| b.is_ascii_uppercase() || b == b'_') && secrecy(value) != Secrecy::None;
        (!placeholder).then_some(span)
    }

    /// The token after the word `Bearer`.
    fn scheme(self, likely: impl Fn(&str) -> bool) -> Option<SecretSpan> {
        let start = skip(self.text, self.end, is_blank);
        if start == self.end {
            return None;
        }
        let end = skip(self.text, start, |b| {
            is_word(b) || matches!(b, b'~' | b'+' | b'/' | b'=')
        });
        let token = part(self.text, start, end);
        likely(token).then_some(SecretSpan::new(start, end))
    }
}
