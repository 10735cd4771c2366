//! Decompresses a body that is gzip or deflate, by its first bytes or by its header.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::{MAX_INFLATED_BYTES, note};
use crate::sources::Repair;

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// A proxy may compress what its client has compressed.
const MAX_LAYERS: usize = 2;

/// The body without its compression. A damaged or too long one gives what could be read before.
pub(super) fn inflate<'b>(
    body: &'b [u8],
    encoding: Option<&str>,
    repairs: &mut Vec<Repair>,
) -> Cow<'b, [u8]> {
    let encoding = encoding.unwrap_or_default().to_lowercase();
    let names = |known: &[&str]| encoding.split(',').any(|name| known.contains(&name.trim()));
    let says_gzip = names(&["gzip", "x-gzip"]);
    let says_deflate = names(&["deflate"]);

    let mut bytes = Cow::Borrowed(body);
    for _ in 0..MAX_LAYERS {
        let Some(inflated) = layer(
            &bytes,
            if says_deflate {
                Says::Deflate
            } else {
                Says::Other
            },
        ) else {
            break;
        };
        if matches!(bytes, Cow::Borrowed(_)) && !says_gzip && !says_deflate {
            note(repairs, Repair::Compressed);
        }
        if inflated.is_cut {
            note(repairs, Repair::CutCompressed);
        }
        bytes = Cow::Owned(inflated.bytes);
    }
    if matches!(bytes, Cow::Borrowed(_)) && (says_gzip || says_deflate) && !body.is_empty() {
        note(repairs, Repair::NotCompressed);
    }
    bytes
}

/// The compression that the header declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Deflate,
    Other,
}

struct Inflated {
    bytes: Vec<u8>,
    /// The bytes are damaged, or there are more.
    is_cut: bool,
}

/// The bytes without one layer of compression; `None` if they are not compressed. A text may begin like a zlib stream
/// (`x^`), so such a stream counts only when it is read to its end.
fn layer(bytes: &[u8], says: Says) -> Option<Inflated> {
    if bytes.starts_with(&GZIP) {
        return Some(read(MultiGzDecoder::new(bytes)))
            .filter(|inflated| !inflated.bytes.is_empty());
    }
    let is_zlib = matches!(bytes, [0x78, flags, ..] if (0x7800 + u16::from(*flags)) % 31 == 0);
    if is_zlib {
        let inflated = read(ZlibDecoder::new(bytes));
        return Some(inflated).filter(|inflated| {
            !inflated.bytes.is_empty() && (!inflated.is_cut || says == Says::Deflate)
        });
    }
    // Some senders leave the header of zlib out, which the name of the encoding asks for.
    let inflated = (says == Says::Deflate).then(|| read(DeflateDecoder::new(bytes)))?;
    Some(inflated).filter(|inflated| !inflated.bytes.is_empty() && !inflated.is_cut)
}

/// Reads as much as the limit permits.
fn read(reader: impl Read) -> Inflated {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_INFLATED_BYTES).unwrap_or(u64::MAX);
    let read = reader.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    let is_cut = read.is_err() || bytes.len() > MAX_INFLATED_BYTES;
    bytes.truncate(MAX_INFLATED_BYTES);
    Inflated { bytes, is_cut }
}
