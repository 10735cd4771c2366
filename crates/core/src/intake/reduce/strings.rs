//! Cuts texts: those in JSON, and a whole one.

use data_encoding::BASE64;

use crate::readable::text::beginning;

/// A shorter text is not tried as Base64.
const MIN_BASE64_BYTES: usize = 1_024;

/// JSON whose strings have at most about `max` bytes. What is no string stays as it is.
pub(super) fn shortened(json: &str, max: usize) -> String {
    let mut out = String::new();
    let mut rest = json;
    while let Some(start) = rest.find('"') {
        let (before, string) = rest.split_at(start + 1);
        out.push_str(before);
        let (text, after) = string.split_at(length_of(string));
        out.push_str(&short(text, max));
        let quote = usize::from(after.starts_with('"'));
        let (quote, after) = after.split_at(quote);
        out.push_str(quote);
        rest = after;
    }
    out.push_str(rest);
    out
}

fn short(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let kept = whole_escapes(text, max);
    format!("{kept}… [{} bytes cut]", text.len() - kept.len())
}

/// The bytes before the quote that ends a string.
fn length_of(string: &str) -> usize {
    let mut is_escaped = false;
    string
        .bytes()
        .position(|byte: u8| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        })
        .unwrap_or(string.len())
}

/// The beginning of a string, of at most `max` bytes, that ends with no half character or escape.
fn whole_escapes(text: &str, max: usize) -> &str {
    let kept = beginning(text, max);
    let backslashes = kept.bytes().rev().take_while(|byte| *byte == b'\\').count();
    let kept = kept.get(..kept.len() - backslashes % 2).unwrap_or_default();
    // `\uD83D\ude11` is one character.
    let half = kept
        .rmatch_indices("\\u")
        .take(2)
        .map(|(at, _)| at)
        .filter(|at| kept.len() - at < 12)
        .last();
    half.and_then(|at| kept.get(..at)).unwrap_or(kept)
}

/// The beginning and the end of a text, of at most `limit` bytes together.
pub(super) fn middle_cut(text: &str, limit: usize) -> String {
    const MARK_BYTES: usize = 64;
    if text.len() <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(MARK_BYTES);
    let head = beginning(text, room / 4 * 3);
    let tail = text
        .get(text.ceil_char_boundary(text.len() - room / 4)..)
        .unwrap_or_default();
    format!(
        "{head}\n[{} bytes cut]\n{tail}",
        text.len() - head.len() - tail.len()
    )
}

/// The JSON that a text has in Base64, as pushes of queues do.
pub(super) fn base64_json(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() < MIN_BASE64_BYTES || text.starts_with(['{', '[']) {
        return None;
    }
    let decoded = String::from_utf8(BASE64.decode(text.as_bytes()).ok()?).ok()?;
    decoded
        .trim_start()
        .starts_with(['{', '['])
        .then_some(decoded)
}

pub(super) fn to_base64(text: &str) -> String {
    BASE64.encode(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters_and_escapes() {
        assert_eq!(shortened(r#"{"a":"bc","d":1}"#, 2), r#"{"a":"bc","d":1}"#);
        assert_eq!(shortened(r#"["ab\"cd"]"#, 3), r#"["ab… [4 bytes cut]"]"#);
        assert_eq!(
            shortened(r#"["a\ud83d\ude11b"]"#, 8),
            r#"["a… [13 bytes cut]"]"#
        );
        assert_eq!(shortened(r#"["aüb"]"#, 2), r#"["a… [3 bytes cut]"]"#);
        let long = "ü".repeat(200);
        let cut = middle_cut(&long, 200);
        assert!(
            cut.len() <= 200
                && cut.starts_with("üü")
                && cut.ends_with("üü")
                && cut.contains("bytes cut"),
            "{cut}"
        );
    }
}
