//! The forms in which a provider may repeat a key: as it is, in a URL, in base64 and in hexadecimal digits.

use data_encoding::{BASE64_NOPAD, HEXLOWER, HEXUPPER};

/// The bytes that become four digits of base64.
const GROUP_BYTES: usize = 3;

/// The key in every form, the longest form first, so that none is removed in part.
///
/// In base64 the first and the last digits of a key depend on the bytes around it. So three forms, one for each
/// distance from the last whole group, have the digits that depend on the key alone.
pub(super) fn forms(key: &str) -> Vec<String> {
    let mut forms = vec![
        key.to_owned(),
        HEXUPPER.encode(key.as_bytes()),
        HEXLOWER.encode(key.as_bytes()),
        key.replace('/', "\\/"),
    ];
    for is_escaped in [is_reserved, |_byte: u8| true] {
        let upper = in_url(key, is_escaped);
        forms.extend([lower_escapes(&upper), upper]);
    }
    for distance in 0..GROUP_BYTES {
        // Digits that the bytes before and after the key change are left out. Padding belongs to a key at the end.
        let bytes = [vec![0; distance].as_slice(), key.as_bytes()].concat();
        let encoded = BASE64_NOPAD.encode(&bytes);
        let first = (distance * 8).div_ceil(6);
        let digits = |end: usize| encoded.get(first..end).unwrap_or_default().to_owned();
        let padding = "=".repeat((4 - encoded.len() % 4) % 4);
        for form in [
            digits(encoded.len()) + &padding,
            digits(encoded.len()),
            digits(bytes.len() * 8 / 6),
        ] {
            forms.extend([form.replace('+', "-").replace('/', "_"), form]);
        }
    }
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms
}

fn is_reserved(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && !b"-._~".contains(&byte)
}

fn in_url(key: &str, is_escaped: fn(u8) -> bool) -> String {
    key.bytes()
        .map(|byte| {
            if is_escaped(byte) {
                format!("%{byte:02X}")
            } else {
                char::from(byte).to_string()
            }
        })
        .collect()
}

/// `%2f` instead of `%2F`.
fn lower_escapes(url: &str) -> String {
    let mut lower = String::with_capacity(url.len());
    let mut escape_chars = 0;
    for character in url.chars() {
        if character == '%' {
            escape_chars = 3;
        }
        lower.push(match escape_chars {
            0 => character,
            _ => character.to_ascii_lowercase(),
        });
        escape_chars = i32::max(escape_chars - 1, 0);
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_form_for_each_encoding() {
        let forms = forms("a+s/k=");
        for form in [
            "a+s/k=",
            "a%2Bs%2Fk%3D",
            "a%2bs%2fk%3d",
            "%61%2B%73%2F%6B%3D",
            "612b732f6b3d",
            "612B732F6B3D",
            "YStzL2s9",
        ] {
            assert!(
                forms.iter().any(|known| known == form),
                "{form} is not in {forms:?}"
            );
        }
        assert!(forms.contains(&"a+s\\/k=".to_owned()));
        assert_eq!(BASE64_NOPAD.encode(b"hello"), "aGVsbG8");
        assert!(forms.is_sorted_by_key(|form| std::cmp::Reverse(form.len())));
    }

    #[test]
    fn base64_is_recognised_at_each_distance_from_a_group() {
        let forms = forms("secret-key");
        for before in ["", "u", "us", "use"] {
            for after in ["", "x", "xy"] {
                let text = BASE64_NOPAD.encode(format!("{before}secret-key{after}").as_bytes());
                assert!(
                    forms.iter().any(|form| text.contains(form)),
                    "{before} {after} {text} {forms:?}"
                );
            }
        }
    }
}
