//! Lists of pairs in variables of OpenTelemetry: `key=value,key=value`, with values that are percent-encoded.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

/// Values by key.
pub(super) type Pairs = BTreeMap<String, String>;

/// A part of a list that is no pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pair; accepted: key=value,key=value")]
pub(super) struct NoPair(pub(super) String);

/// Reads a list. Blanks around keys and values do not count, and neither do empty parts.
pub(super) fn pairs(text: &str) -> Result<Pairs, NoPair> {
    let mut pairs = Pairs::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                pairs.insert(key.trim().to_owned(), decoded(value.trim()));
            }
            None if part.is_empty() => {}
            Some(_) | None => return Err(NoPair(part.to_owned())),
        }
    }
    Ok(pairs)
}

/// The value without its percent-encoding. An invalid encoding stays as it is.
fn decoded(value: &str) -> String {
    percent_decode_str(value)
        .decode_utf8()
        .map_or_else(|_| value.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_trimmed_and_decoded() {
        let read = pairs(" a = 1 ,b=x%20y%3D, c=100%,d=a=b,").unwrap();
        let expected = [("a", "1"), ("b", "x y="), ("c", "100%"), ("d", "a=b")];
        assert_eq!(
            read,
            expected
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into()
        );
        assert_eq!(pairs("a=1,b"), Err(NoPair("b".to_owned())));
        assert_eq!(pairs("=1"), Err(NoPair("=1".to_owned())));
    }
}
