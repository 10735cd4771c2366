//! The forms in which a key could leave a process, and the search for all of them.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::AhoCorasick;

/// A seeded key with the failure that it was used for.
#[derive(Clone, Debug)]
pub(super) struct SeededKey {
    pub(super) name: String,
    pub(super) text: String,
}

/// The key itself, in hexadecimal digits (so the database shows bytes), URL-encoded, and in base64 at any offset.
pub(super) fn forms(text: &str) -> BTreeSet<String> {
    let hex = |upper| {
        text.bytes()
            .map(|byte| hex(byte, upper))
            .collect::<String>()
    };
    let mut forms = BTreeSet::from([text.to_owned(), hex(Letters::Lower), hex(Letters::Upper)]);
    forms.extend([Letters::Lower, Letters::Upper].map(|letters| url_encoded(text, letters)));
    forms.insert(text.replace('/', "\\/"));
    for offset in 0..3 {
        // The first and the last characters depend on what stands around the key.
        let bytes: Vec<u8> = vec![0; offset].into_iter().chain(text.bytes()).collect();
        let whole = base64(&bytes[..bytes.len() - bytes.len() % 3]);
        let inner = whole[if offset == 0 { 0 } else { 4 }..].to_owned();
        forms.extend([inner.replace('+', "-").replace('/', "_"), inner]);
    }
    forms
}

#[derive(Clone, Copy)]
enum Letters {
    Lower,
    Upper,
}

fn hex(byte: u8, letters: Letters) -> String {
    match letters {
        Letters::Lower => format!("{byte:02x}"),
        Letters::Upper => format!("{byte:02X}"),
    }
}

fn url_encoded(text: &str, letters: Letters) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = |byte| {
        if is_plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{}", hex(byte, letters))
        }
    };
    text.bytes().map(encoded).collect()
}

/// The key as the value of a parameter.
pub(super) fn url(text: &str) -> String {
    url_encoded(text, Letters::Upper)
}

/// Whole groups of three bytes.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let bits = three
            .iter()
            .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63]))
    };
    bytes.chunks_exact(3).flat_map(group).collect()
}

/// Finds keys in texts.
pub(super) struct Search {
    finder: AhoCorasick,
    names: Vec<String>,
}

impl Search {
    pub(super) fn of(keys: &[SeededKey]) -> Self {
        let all = || {
            keys.iter().flat_map(|key| {
                forms(&key.text)
                    .into_iter()
                    .map(|form| (key.name.clone(), form))
            })
        };
        Self {
            finder: AhoCorasick::new(all().map(|(_, form)| form)).unwrap(),
            names: all().map(|(name, _)| name).collect(),
        }
    }

    /// Every key in a text, with the text around its first place.
    pub(super) fn find(&self, place: &str, text: &str) -> BTreeSet<String> {
        let around = |start: usize, end: usize| {
            let (start, end) = (
                text.floor_char_boundary(start.saturating_sub(100)),
                text.ceil_char_boundary(end + 60),
            );
            text[start..end].to_owned()
        };
        let mut found = BTreeMap::new();
        for hit in self.finder.find_iter(text) {
            found
                .entry(self.names[hit.pattern()].as_str())
                .or_insert_with(|| around(hit.start(), hit.end()));
        }
        found
            .into_iter()
            .map(|(name, around)| format!("{place}: {name}: …{around}…"))
            .collect()
    }
}

#[test]
fn a_key_is_found_in_every_form() {
    let text = "aB3+x/9=key?".to_owned();
    let search = Search::of(&[SeededKey {
        name: "k".to_owned(),
        text: text.clone(),
    }]);
    let encoded = |before: &str| {
        let bytes = format!("{before}{text}zz and more").into_bytes();
        base64(&bytes[..bytes.len() - bytes.len() % 3])
    };
    for shown in [
        format!("{{\"a\":\"{text}\"}}"),
        "https://host/?key=aB3%2Bx%2F9%3Dkey%3F&x".to_owned(),
        "https://host/?key=aB3%2bx%2f9%3dkey%3f&x".to_owned(),
        "\\x6142332b782f393d6b65793f00".to_owned(),
        encoded(""),
        encoded("a"),
        encoded("ab"),
    ] {
        assert_eq!(search.find("place", &shown).len(), 1, "{shown}");
    }
    assert_eq!(search.find("place", "aB3+x/9=kez?"), BTreeSet::new());
    assert_eq!(base64(b"hello!"), "aGVsbG8h");
}
