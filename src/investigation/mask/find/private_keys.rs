//! Private keys in text form: PEM, PGP, `PuTTY`.

use crate::investigation::mask::bytes::{back, byte, is_blank, line_end, near_line_end, part, rest};
use crate::investigation::mask::spans::SecretSpan;

/// Finds private keys. Without an end marker, the key extends to the end of the text; without a begin marker, it begins
/// at the first preceding line that looks encoded.
pub(crate) fn find(text: &str, spans: &mut Vec<SecretSpan>) {
    // Fast path: searches for a rare letter first.
    let says = |letter: char, tail: &str| text.match_indices(letter).any(|(at, _)| rest(text, at).starts_with(tail));
    if says('V', "VATE KEY") {
        armoured(text, spans);
    }
    if says('L', "Lines:") {
        putty(text, spans);
    }
}

fn armoured(text: &str, spans: &mut Vec<SecretSpan>) {
    let mut done = 0;
    while let Some(at) = rest(text, done).find("-----").map(|at| done + at) {
        let label = at + 5;
        done = label;
        if rest(text, label).starts_with("BEGIN ") && is_private(text, label) {
            let end = end_mark(text, label).unwrap_or(text.len());
            spans.push(SecretSpan::new(at, end));
            done = end;
        } else if rest(text, label).starts_with("END ") && is_private(text, label) {
            spans.extend(tail(text, at));
        }
    }
}

fn putty(text: &str, spans: &mut Vec<SecretSpan>) {
    let mut done = 0;
    while let Some(at) = rest(text, done).find("Private-Lines:").map(|at| done + at) {
        let start = line_end(text, at);
        let end = rest(text, start).find("Private-MAC:").map_or(text.len(), |length| start + length);
        let end = if byte(text, end) == b'P' { line_end(text, end) } else { end };
        spans.push(SecretSpan::new(start + 1, end));
        done = end;
    }
}

/// Whether the PEM label that begins here is that of a private key.
fn is_private(text: &str, label: usize) -> bool {
    let label = part(text, label, near_line_end(text, label, 80));
    label.split("-----").next().is_some_and(|label| label.contains("PRIVATE KEY"))
}

fn end_mark(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += rest(text, at).find("-----END ")? + "-----END ".len();
        if is_private(text, at) {
            let close = part(text, at, near_line_end(text, at, 80)).find("-----")?;
            return Some(at + close + 5);
        }
    }
}

/// The lines before an end marker without a begin marker.
fn tail(text: &str, end: usize) -> Option<SecretSpan> {
    let mut start = back(text, end.saturating_sub(256), end, is_blank);
    while let Some(before) = text.get(..start).and_then(|before| before.strip_suffix('\n')) {
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let content = part(text, line, before.len()).trim();
        if content.len() < 8 || content.contains(' ') || content.contains(MASK_START) {
            break;
        }
        start = line;
    }
    (start < end).then_some(SecretSpan::new(start, end))
}

/// Begins a line that is already masked.
const MASK_START: char = '[';
