//! Classifies keys and names: the secrecy of a value by the segments of its name.

mod languages;
mod lists;

use self::languages::PASSWORDS;
pub(super) use self::languages::translate;
use self::lists::{
    ABOUT, FUSED_KEYS, HARMLESS_KEYS, HARMLESS_TOKENS, NO_PASS, SECRET_KEYS, SUFFIXES,
};
use super::bytes::all;

/// The secrecy of a name's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrecy {
    None,
    /// Secret if the value is a long random word, but no UUID: cookies and ids of sessions.
    Random,
    /// Secret if the value looks random: `auth`, `sig`, keys of an unknown kind.
    Weak,
    /// Secret unless the value obviously is none.
    Strong,
    /// The value is a secret as with `Strong`, up to the end of the line: HTTP headers with credentials.
    Header,
}

/// The secrecy of this name's value.
pub(super) fn secrecy(name: &str) -> Secrecy {
    if !may_be_secret(name) || name.starts_with("checksum/") {
        return Secrecy::None;
    }
    let tail = name.len().saturating_sub(96);
    let name = name.get(tail..).unwrap_or(name);
    let lower = name.to_ascii_lowercase();
    let mut segments = segments(name, &lower);
    let Some(last) = segments.last().copied() else {
        return Secrecy::None;
    };
    if ABOUT.contains(&last) {
        return Secrecy::None;
    }
    if last == "id" {
        return match segments.iter().rev().nth(1) {
            Some(&"secret") => Secrecy::Weak,
            Some(&"session" | &"sess") => Secrecy::Random,
            Some(_) | None => Secrecy::None,
        };
    }
    while segments.len() > 1 && segments.last().is_some_and(|last| is_suffix(last)) {
        segments.pop();
    }
    // `DB_KEY` is a variable with a secret; `dbKey` may be any other key.
    let of_unknown = if name.bytes().any(|b| b.is_ascii_lowercase()) {
        Secrecy::Weak
    } else {
        Secrecy::Strong
    };
    by_segments(&segments, of_unknown)
}

/// Whether a value only names the key of a secret: `secretKey: password` of an external secret.
pub(super) fn names_a_key(name: &str, value: &str) -> bool {
    name == "secretKey" && secrecy(value) == Secrecy::Strong
}

/// Fast path: whether the name contains a stem of secret names. Most names do not.
fn may_be_secret(name: &str) -> bool {
    let mut stems = Stems::default();
    name.bytes().for_each(|b| stems.read(b));
    stems.may_be_in(name)
}

/// Reads the letters of a name one by one, to tell whether it may contain a stem of secret names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stems {
    /// The last three letters.
    letters: usize,
    has_beginning: bool,
}

impl Stems {
    pub(super) fn read(&mut self, b: u8) {
        self.letters = (self.letters << 5 | usize::from(b & 31)) & 0x7fff;
        self.has_beginning |= is_beginning(self.letters);
    }

    /// Whether the name that was read contains a stem.
    pub(super) fn may_be_in(self, name: &str) -> bool {
        // A stem of two letters may end the name.
        if !self.has_beginning && !is_beginning(self.letters << 5 & 0x7fff) {
            return false;
        }
        let bytes = name.as_bytes();
        let letter = |at: usize| usize::from(bytes.get(at).copied().unwrap_or_default() & 31);
        (0..bytes.len()).any(|at| {
            is_beginning(letter(at) << 10 | letter(at + 1) << 5 | letter(at + 2))
                && has_stem(bytes, at)
        })
    }
}

fn is_beginning(letters: usize) -> bool {
    BEGINNINGS
        .get(letters >> 6)
        .is_some_and(|bits| bits >> (letters & 63) & 1 == 1)
}

fn has_stem(bytes: &[u8], at: usize) -> bool {
    let first = bytes.get(at).map(u8::to_ascii_lowercase);
    STEMS
        .iter()
        .filter(|stem| stem.first().copied() == first)
        .any(|stem| {
            bytes
                .get(at..at + stem.len())
                .is_some_and(|part| part.eq_ignore_ascii_case(stem))
        })
}

const STEMS: [&[u8]; 39] = [
    b"pass",
    b"pwd",
    b"pw",
    b"psk",
    b"secret",
    b"token",
    b"key",
    b"cred",
    b"auth",
    b"cookie",
    b"sig",
    b"mnemonic",
    b"jwt",
    b"sess",
    b"sid",
    b"saml",
    b"pswd",
    b"community",
    b"kennwort",
    b"contrase",
    b"contrasi",
    b"senha",
    b"wachtwoord",
    b"haslo",
    b"heslo",
    b"geslo",
    b"parol",
    b"jelszo",
    b"salasana",
    b"losenord",
    b"adgangskode",
    b"sifre",
    b"lozinka",
    b"clave",
    b"sandi",
    b"parool",
    b"slaptazodis",
    b"codigo",
    b"palavra",
];

/// A bit for the first three letters of each stem, whatever their case.
#[expect(clippy::indexing_slicing, reason = "at compile time")]
const BEGINNINGS: [u64; 512] = {
    let mut table = [0; 512];
    let mut index = 0;
    while index < STEMS.len() {
        set_beginning(&mut table, STEMS[index]);
        index += 1;
    }
    table
};

#[expect(clippy::indexing_slicing, reason = "at compile time")]
const fn set_beginning(table: &mut [u64; 512], stem: &[u8]) {
    // Five bits of a letter are the same for both cases. Any letter may follow a stem of two letters.
    let head = (stem[0] as usize & 31) << 10 | (stem[1] as usize & 31) << 5;
    let mut third = 0;
    while third < 32 {
        if stem.len() == 2 || stem[2] as usize & 31 == third {
            table[(head | third) >> 6] |= 1 << (third & 63 | head & 63);
        }
        third += 1;
    }
}

fn is_suffix(segment: &str) -> bool {
    all(segment, |b| b.is_ascii_digit()) || SUFFIXES.contains(&segment)
}

/// `dbPassword`, `DB_PASSWORD1` and `db-password` have the segments `db`, `password` and so on.
fn segments<'a>(name: &str, lower: &'a str) -> Vec<&'a str> {
    let bytes = name.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(b'_');
    let mut segments = Vec::new();
    let mut start = 0;
    for end in 1..=bytes.len() {
        let before = at(end - 1);
        let here = at(end);
        let after = at(end + 1);

        let camel = before.is_ascii_lowercase() && here.is_ascii_uppercase()
            || before.is_ascii_uppercase()
                && here.is_ascii_uppercase()
                && after.is_ascii_lowercase();
        let number =
            before.is_ascii_digit() != here.is_ascii_digit() && here.is_ascii_alphanumeric();
        if !here.is_ascii_alphanumeric() || camel || number || end == bytes.len() {
            let segment = lower.get(start..end).unwrap_or_default();
            let segment = segment.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            if !segment.is_empty() {
                segments.push(segment);
            }
            start = end;
        }
    }
    segments
}

/// The secrecy by the segments of a name; `of_unknown` is that of a key of an unknown kind.
fn by_segments(segments: &[&str], of_unknown: Secrecy) -> Secrecy {
    let Some((last, before)) = segments.split_last() else {
        return Secrecy::None;
    };
    let previous = before.last().copied().unwrap_or_default();
    match *last {
        "authorization" | "cookie" => return Secrecy::Header,
        "samlresponse" | "samlrequest" => return Secrecy::Weak,
        "response" | "request" | "assertion" if previous == "saml" => return Secrecy::Weak,
        "session" | "sid" => return Secrecy::Random,
        _ if last.contains("sessid") || last.contains("sessionid") => return Secrecy::Random,
        "token" | "tokens" if HARMLESS_TOKENS.contains(&previous) => return Secrecy::None,
        // Often a number of them.
        "tokens" => return Secrecy::Weak,
        "key" | "keys" => return of_key(before, of_unknown),
        "oauth" if !before.is_empty() => return Secrecy::Weak,
        "auth" if !before.is_empty() => return of_unknown,
        "auth" | "sig" => return Secrecy::Weak,
        "signature" if matches!(previous, "amz" | "goog" | "access") => return Secrecy::Strong,
        "signature" => return Secrecy::None,
        _ => {}
    }
    if is_secret_word(last) || segments.iter().any(|segment| is_password(segment)) {
        return Secrecy::Strong;
    }
    if before.iter().any(|segment| is_secret_word(segment)) {
        Secrecy::Weak
    } else {
        Secrecy::None
    }
}

fn of_key(before: &[&str], of_unknown: Secrecy) -> Secrecy {
    let previous = before.last().copied().unwrap_or_default();
    let opens = before.iter().any(|segment| is_secret_word(segment));
    if opens || SECRET_KEYS.contains(&previous) {
        return Secrecy::Strong;
    }
    if before.is_empty()
        || all(previous, |b| b.is_ascii_digit())
        || HARMLESS_KEYS.contains(&previous)
    {
        return Secrecy::None;
    }
    of_unknown
}

fn is_secret_word(segment: &str) -> bool {
    const WORDS: [&str; 8] = [
        "credential",
        "credentials",
        "cred",
        "creds",
        "mnemonic",
        "secrets",
        "jwt",
        "psk",
    ];
    is_password(segment)
        || WORDS.contains(&segment)
        || segment.ends_with("secret")
        || segment.ends_with("token")
        || FUSED_KEYS.iter().any(|fused| segment.ends_with(fused))
}

/// Whether a segment means a password, alone or with a prefix: `pgpassword`.
pub(super) fn is_password(segment: &str) -> bool {
    const WORDS: [&str; 4] = ["pw", "pswd", "passwords", "passphrases"];
    const ENDS: [&str; 6] = [
        "password",
        "passwd",
        "passwort",
        "passphrase",
        "passcode",
        "pwd",
    ];
    let ends = ENDS.iter().any(|end| segment.ends_with(end));
    ends || WORDS.contains(&segment)
        || PASSWORDS.contains(&segment)
        || segment.ends_with("pass") && !NO_PASS.contains(&segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrecy_of_all(names: &str) -> Vec<Secrecy> {
        let mut found: Vec<Secrecy> = names.split(' ').map(secrecy).collect();
        found.dedup();
        found
    }

    #[test]
    fn a_name_is_read_segment_by_segment() {
        let strong = "password DB_PASS pw REDIS_AUTH ENCRYPTION_KEY STRIPE_KEY SECRET_KEY_BASE AccountKey passwords \
                      DB_PASSWORD_PROD TOKEN_1 apiTokenV2 client-key-data X-Amz-Signature dbPassword pgpassword \
                      spring.datasource.password --db-password secretAccessKey PASSWORD2 access_token_eu_west_1";
        assert_eq!(secrecy_of_all(strong), vec![Secrecy::Strong], "{strong}");
        let weak = "auth sig redis.auth foo_key secret_id tokenGithub";
        assert_eq!(secrecy_of_all(weak), vec![Secrecy::Weak], "{weak}");
        let none = "keyspace primary_key max_tokens tokenizer secretName author authority compass passed tls.crt key \
                    nextPageToken password_policy passwordFile token_url keyboard monkey public_key secretRef \
                    authMethod access_key_id token-service automount signature bypass signing_algorithm";
        assert_eq!(secrecy_of_all(none), vec![Secrecy::None], "{none}");
        assert_eq!(
            secrecy_of_all("Authorization Cookie Set-Cookie Proxy-Authorization"),
            vec![Secrecy::Header]
        );
    }
}
