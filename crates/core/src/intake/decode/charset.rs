//! The text of a body, in the character set that its bytes or its header tell.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::note;
use crate::sources::Repair;

/// Pairs of bytes that have to look like UTF-16, at the beginning of a body without a byte order mark.
const UTF_16_PAIRS: usize = 4;
/// A body of which more than one in so many characters is a control character is no text.
const CONTROL_SHARE: usize = 20;

/// The character set of a `Content-Type`, as it is written there.
pub(super) fn label(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1);
    let mut pairs = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Some(value.trim().trim_matches(['"', '\'']))
}

/// The text; `None` for bytes that are none.
///
/// A byte order mark counts most. A header that names another set than UTF-8 is often only the default of a library, so
/// bytes that are UTF-8 beyond doubt are read as UTF-8.
pub(super) fn text<'b>(
    bytes: &'b [u8],
    label: Option<&str>,
    repairs: &mut Vec<Repair>,
) -> Option<Cow<'b, str>> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return Some(replaced(
            encoding,
            bytes.get(mark..).unwrap_or_default(),
            repairs,
        ));
    }
    if let Some(encoding) = utf_16_without_mark(bytes) {
        return Some(replaced(encoding, bytes, repairs));
    }
    let named = label.and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()));
    let utf_8 = std::str::from_utf8(bytes).ok();
    match (named.filter(|named| *named != UTF_8), utf_8) {
        (None, Some(text)) => Some(Cow::Borrowed(text)),
        (Some(named), Some(text))
            if named.is_single_byte() || named == UTF_16LE || named == UTF_16BE =>
        {
            Some(Cow::Borrowed(text))
        }
        (Some(named), utf_8) => match (
            named.decode_without_bom_handling_and_without_replacement(bytes),
            utf_8,
        ) {
            (Some(text), _) => Some(text),
            (None, Some(text)) => Some(Cow::Borrowed(text)),
            (None, None) => guessed(bytes, repairs),
        },
        (None, None) => guessed(bytes, repairs),
    }
    .map(without_marks)
}

/// The same of bytes that need not be copied if they are UTF-8.
pub(super) fn owned_text(
    bytes: Vec<u8>,
    label: Option<&str>,
    repairs: &mut Vec<Repair>,
) -> Option<String> {
    let is_same =
        matches!(text(&bytes, label, repairs)?, Cow::Borrowed(text) if text.len() == bytes.len());
    if is_same {
        String::from_utf8(bytes).ok()
    } else {
        text(&bytes, label, &mut Vec::new()).map(Cow::into_owned)
    }
}

/// Guesses the character set of a text that is neither UTF-8 nor what the header names: UTF-8 with faults, or that of
/// Western Windows.
fn guessed<'b>(bytes: &'b [u8], repairs: &mut Vec<Repair>) -> Option<Cow<'b, str>> {
    let mut faults = 0_usize;
    let mut characters = 0_usize;
    for chunk in bytes.utf8_chunks() {
        faults += usize::from(!chunk.invalid().is_empty());
        characters += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
    }
    let text = if characters >= faults {
        note(repairs, Repair::BadBytes);
        String::from_utf8_lossy(bytes)
    } else {
        note(repairs, Repair::Charset(WINDOWS_1252.name()));
        WINDOWS_1252.decode_without_bom_handling(bytes).0
    };
    let controls = text
        .chars()
        .filter(|c: &char| {
            c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}' | '\u{80}'..='\u{9f}')
        })
        .count();
    (controls * CONTROL_SHARE <= text.chars().count()).then_some(text)
}

fn replaced<'b>(
    encoding: &'static Encoding,
    bytes: &'b [u8],
    repairs: &mut Vec<Repair>,
) -> Cow<'b, str> {
    let (text, had_errors) = encoding.decode_without_bom_handling(bytes);
    if had_errors {
        note(repairs, Repair::BadBytes);
    }
    without_marks(text)
}

/// The beginning of UTF-16 without a mark: characters of ASCII, each with a zero beside it.
fn utf_16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let pairs: Vec<&[u8]> = bytes.chunks_exact(2).take(UTF_16_PAIRS).collect();
    if pairs.len() < UTF_16_PAIRS || !bytes.len().is_multiple_of(2) {
        return None;
    }
    if pairs.iter().all(|pair| matches!(pair, [1..=0x7f, 0])) {
        return Some(UTF_16LE);
    }
    pairs
        .iter()
        .all(|pair| matches!(pair, [0, 1..=0x7f]))
        .then_some(UTF_16BE)
}

/// A mark can stand twice, when one program adds it and the next one does, too.
fn without_marks(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.starts_with('\u{feff}') {
        return text;
    }
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_start_matches('\u{feff}')),
        Cow::Owned(text) => Cow::Owned(text.trim_start_matches('\u{feff}').to_owned()),
    }
}
