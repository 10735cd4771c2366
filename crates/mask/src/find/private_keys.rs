//! Finds private keys in PEM and related armour, and in the format of `PuTTY`.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Match};

use crate::bytes::{
    back, byte, in_base64_run, is_blank, line_end, near_line_end, part, rest, skip,
};
use crate::spans::SecretSpan;

/// The longest label, in bytes.
const MAX_LABEL: usize = 80;
/// A line of a key without dashes has at least this length, but for the last one.
const MIN_ENCODED_LINE: usize = 30;
/// Begins a line that is already masked.
const MASK_START: char = '[';

/// Finds private keys. Without an end marker, the key extends to the end of the text; without a begin marker, it begins
/// at the first preceding line that looks encoded.
pub(crate) fn find(text: &str, spans: &mut Vec<SecretSpan>) {
    let markers = markers(text);
    let mut done = 0;
    for (index, marker) in markers.iter().enumerate() {
        let Marker { start, label, kind } = *marker;
        if start < done || !is_private(text, label) {
            continue;
        }
        let dashes = back(text, start.saturating_sub(8), start, |b| {
            matches!(b, b'-' | b' ' | b'#' | b'/')
        });
        let dashes = dashes
            + part(text, dashes, start)
                .find("---")
                .unwrap_or(start - dashes);
        let key = match kind {
            MarkerKind::End if dashes < start => tail(text, dashes),
            MarkerKind::End => None,
            MarkerKind::Begin if dashes < start => {
                let ends = markers
                    .iter()
                    .skip(index + 1)
                    .filter(|end| end.kind == MarkerKind::End);
                let end = ends
                    .map(|end| end.label)
                    .find(|label| is_private(text, *label));
                Some(SecretSpan::new(
                    dashes,
                    end.map_or(text.len(), |label| behind(text, label)),
                ))
            }
            MarkerKind::Begin => encoded_lines(text, label).map(|end| SecretSpan::new(start, end)),
        };
        if let Some(key) = key {
            done = key.end.max(done);
            spans.push(key);
        }
    }
    putty(text, spans);
}

/// Whether the text may have a private key.
pub(crate) fn may_be_in(text: &str) -> bool {
    markers(text)
        .iter()
        .any(|marker| is_private(text, marker.label))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkerKind {
    Begin,
    End,
}

/// The begin or the end of a key.
#[derive(Clone, Copy, Debug)]
struct Marker {
    start: usize,
    /// The offset of its label, `RSA PRIVATE KEY`.
    label: usize,
    kind: MarkerKind,
}

/// All markers, in order.
fn markers(text: &str) -> Vec<Marker> {
    let Some(finder) = MARKERS.as_ref() else {
        return Vec::new();
    };
    let found = finder.find_iter(text);
    found
        .map(|word: Match| {
            let dash = part(text, word.start(), word.end())
                .rfind('-')
                .map_or(0, |dash| dash + 1);
            let blank = skip(text, word.start() + dash, is_blank);
            let kind = if byte(text, blank).eq_ignore_ascii_case(&b'b') {
                MarkerKind::Begin
            } else {
                MarkerKind::End
            };
            Marker {
                start: blank,
                label: word.end(),
                kind,
            }
        })
        .collect()
}

static PUTTY: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(["Private-Lines:"]).ok());
/// Few texts, so that the search is one for rare bytes. Small letters need their dashes.
static MARKERS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::new(["BEGIN ", "END ", "-begin ", "- begin ", "-end ", "- end "]).ok()
});

/// The label after `BEGIN `, up to its dashes or the end of its line.
fn label(text: &str, at: usize) -> &str {
    let line = part(text, at, near_line_end(text, at, MAX_LABEL));
    let end = line.find(['-', '\\', '"', '\'']).unwrap_or(line.len());
    part(line, 0, end).trim_end()
}

/// `RSA PRIVATE KEY`, `PGP PRIVATE KEY BLOCK`, `OPENSSH KEY`, `USER NKEY SEED`, in any case.
fn is_private(text: &str, at: usize) -> bool {
    let label = label(text, at).to_ascii_uppercase();
    let key = label.ends_with(" KEY") && !label.contains("PUBLIC");
    label.contains("PRIVATE KEY") || key || label.ends_with("NKEY SEED")
}

/// The end of the marker with this label.
fn behind(text: &str, at: usize) -> usize {
    let end = at + label(text, at).len();
    let dashes = skip(text, end, is_blank);
    if byte(text, dashes) == b'-' {
        skip(text, dashes, |b| b == b'-')
    } else {
        end
    }
}

/// The end of the encoded lines below a label without dashes; `None` if the next line is none.
fn encoded_lines(text: &str, from: usize) -> Option<usize> {
    let mut end = line_end(text, from);
    let mut is_key = false;
    loop {
        let next = skip(text, end, |b| matches!(b, b'\r' | b'\n'));
        let start = skip(text, next, is_blank);
        let last = skip(text, start, in_base64_run);
        let is_line = next > end && last > start && matches!(byte(text, last), 0 | b'\r' | b'\n');
        if !is_line || !is_key && last - start < MIN_ENCODED_LINE {
            return is_key.then_some(end);
        }
        is_key = true;
        end = last;
        if last - start < MIN_ENCODED_LINE {
            return Some(end);
        }
    }
}

fn putty(text: &str, spans: &mut Vec<SecretSpan>) {
    let Some(finder) = PUTTY.as_ref() else { return };
    let mut done = 0;
    for at in finder.find_iter(text).map(|found| found.start()) {
        if at < done {
            continue;
        }
        let start = line_end(text, at);
        let mac = rest(text, start)
            .find("Private-MAC:")
            .map_or(text.len(), |length| start + length);
        let end = line_end(text, mac);
        spans.push(SecretSpan::new(start + 1, end));
        done = end;
    }
}

/// The lines before an end marker without a begin marker.
fn tail(text: &str, end: usize) -> Option<SecretSpan> {
    let mut start = back(text, end.saturating_sub(256), end, is_blank);
    while let Some(before) = text
        .get(..start)
        .and_then(|before| before.strip_suffix('\n'))
    {
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let content = part(text, line, before.len()).trim();
        if content.len() < 8 || content.contains(' ') || content.contains(MASK_START) {
            break;
        }
        start = line;
    }
    (start < end).then_some(SecretSpan::new(start, end))
}
