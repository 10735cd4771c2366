//! Lists of pairs in variables of OpenTelemetry: `key=value,key=value`, with values that are percent-encoded.

use std::collections::BTreeMap;

/// Values by key.
pub(super) type Pairs = BTreeMap<String, String>;

/// A part of a list that is no pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pair; accepted: key=value,key=value")]
pub(super) struct NoPair(pub(super) String);

/// Reads a list. Blanks around keys and values do not count, and neither do empty parts.
pub(super) fn pairs(text: &str) -> Result<Pairs, NoPair> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| NoPair(part.to_owned()))?;
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() {
            Err(NoPair(part.to_owned()))
        } else {
            Ok((key.to_owned(), decoded(value)))
        }
    };
    parts.map(pair).collect()
}

/// The value without its percent-encoding. An invalid encoding stays as it is.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() {
            behind.get(2..).unwrap_or_default()
        } else {
            behind
        };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
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
