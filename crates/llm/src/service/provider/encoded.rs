//! The forms in which a provider may repeat a key: as it is, in a URL, in base64 and in hexadecimal digits.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The bytes that become four digits of base64.
const GROUP_BYTES: usize = 3;

/// The key in every form, the longest form first, so that none is removed in part.
///
/// In base64 the first and the last digits of a key depend on the bytes around it. So three forms, one for each
/// distance from the last whole group, have the digits that depend on the key alone.
pub(super) fn forms(key: &str) -> Vec<String> {
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![
        key.to_owned(),
        hex.to_ascii_uppercase(),
        hex,
        key.replace('/', "\\/"),
    ];
    for is_escaped in [is_reserved, |_byte: u8| true] {
        let upper = in_url(key, is_escaped);
        forms.extend([lower_escapes(&upper), upper]);
    }
    for distance in 0..GROUP_BYTES {
        // Digits that the bytes before and after the key change are left out. Padding belongs to a key at the end.
        let bytes: Vec<u8> = std::iter::repeat_n(0, distance)
            .chain(key.bytes())
            .collect();
        let first = (distance * 8).div_ceil(6);
        let last = (bytes.len() * 8).div_ceil(6);
        let digits = |end: usize| {
            base64(&bytes)
                .get(first..end)
                .unwrap_or_default()
                .to_owned()
        };
        let whole = digits(bytes.len() * 8 / 6);
        for form in [
            format!("{}{}", digits(last), "=".repeat((4 - last % 4) % 4)),
            digits(last),
            whole,
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
    let encode = |byte: u8| {
        if is_escaped(byte) {
            format!("%{byte:02X}")
        } else {
            char::from(byte).to_string()
        }
    };
    key.bytes().map(encode).collect()
}

/// `%2f` instead of `%2F`.
fn lower_escapes(url: &str) -> String {
    let mut left = 0;
    let lower = |character: char| {
        left = if character == '%' {
            3
        } else {
            i32::max(left - 1, 0)
        };
        if left > 0 {
            character.to_ascii_lowercase()
        } else {
            character
        }
    };
    url.chars().map(lower).collect()
}

/// The digits without padding.
fn base64(bytes: &[u8]) -> String {
    let digits = bytes.chunks(GROUP_BYTES).flat_map(|group| {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let count = (group.len() * 8).div_ceil(6);
        [18, 12, 6, 0]
            .into_iter()
            .take(count)
            .map(move |shift| bits >> shift & 63)
    });
    digits
        .filter_map(|digit| {
            DIGITS
                .get(usize::try_from(digit).ok()?)
                .copied()
                .map(char::from)
        })
        .collect()
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
        assert_eq!(base64(b"hello"), "aGVsbG8");
        assert!(forms.is_sorted_by_key(|form| std::cmp::Reverse(form.len())));
    }

    #[test]
    fn base64_is_recognised_at_each_distance_from_a_group() {
        let forms = forms("secret-key");
        for before in ["", "u", "us", "use"] {
            for after in ["", "x", "xy"] {
                let text = base64(format!("{before}secret-key{after}").as_bytes());
                assert!(
                    forms.iter().any(|form| text.contains(form)),
                    "{before} {after} {text} {forms:?}"
                );
            }
        }
    }
}
