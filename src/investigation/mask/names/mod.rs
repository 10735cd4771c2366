//! Classifies keys and names: how secret the value of a name is, decided by the segments of the name.

mod lists;
use self::lists::{ABOUT, FUSED_KEYS, HARMLESS_KEYS, HARMLESS_TOKENS, NO_PASS, SECRET_KEYS, SUFFIXES};

/// How secret the value of a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrecy {
    None,
    /// Secret if the value looks random: `auth`, `sig`, keys of an unknown kind.
    Weak,
    /// Secret unless the value obviously is none.
    Strong,
    /// Like `Strong`, up to the end of the line: HTTP headers with credentials.
    Header,
}

/// The letters of a name: `DB_KEY`, or any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Upper,
    Mixed,
}

/// How secret the value of this name is.
pub(super) fn secrecy(name: &str) -> Secrecy {
    if !may_be_secret(name) {
        return Secrecy::None;
    }
    let tail = name.len().saturating_sub(96);
    let name = name.get(tail..).unwrap_or(name);
    let lower = name.to_ascii_lowercase();
    let mut segments = segments(name, &lower);
    let Some(last) = segments.last().copied() else { return Secrecy::None };
    if ABOUT.contains(&last) {
        return Secrecy::None;
    }
    if last == "id" {
        let of_secret = segments.iter().rev().nth(1) == Some(&"secret");
        return if of_secret { Secrecy::Weak } else { Secrecy::None };
    }
    while segments.len() > 1 && segments.last().is_some_and(|last| is_suffix(last)) {
        segments.pop();
    }
    let case = if name.bytes().any(|b| b.is_ascii_lowercase()) { Case::Mixed } else { Case::Upper };
    by_segments(&segments, case)
}

/// Fast path: whether the name contains a stem of secret names. Most names do not.
pub(super) fn may_be_secret(name: &str) -> bool {
    const STEMS: [&str; 12] =
        ["pass", "pwd", "pw", "secret", "token", "key", "cred", "auth", "cookie", "sig", "mnemonic", "jwt"];
    let bytes = name.as_bytes();
    let of = |table: &[u8; 256], b: u8| table.get(usize::from(b)).copied().unwrap_or(0);
    bytes.windows(2).enumerate().any(|(at, pair)| {
        let [first, second] = pair else { return false };
        of(&FIRSTS, *first) & of(&SECONDS, *second) != 0
            && STEMS.iter().any(|stem| {
                bytes.get(at..at + stem.len()).is_some_and(|part| part.eq_ignore_ascii_case(stem.as_bytes()))
            })
    })
}

/// The first letters of the stems, one bit for each.
const FIRSTS: [u8; 256] = letters(&[b"p", b"s", b"t", b"k", b"c", b"a", b"m", b"j"]);
/// The second letters.
const SECONDS: [u8; 256] = letters(&[b"aw", b"ei", b"o", b"e", b"ro", b"u", b"n", b"w"]);

#[expect(clippy::indexing_slicing, reason = "at compile time")]
const fn letters(of: &[&[u8]; 8]) -> [u8; 256] {
    let mut table = [0; 256];
    let mut bit = 0;
    while bit < of.len() {
        let mut index = 0;
        while index < of[bit].len() {
            table[of[bit][index] as usize] |= 1 << bit;
            table[of[bit][index].to_ascii_uppercase() as usize] |= 1 << bit;
            index += 1;
        }
        bit += 1;
    }
    table
}

fn is_suffix(segment: &str) -> bool {
    segment.bytes().all(|b| b.is_ascii_digit()) || SUFFIXES.contains(&segment)
}

/// `dbPassword`, `DB_PASSWORD1` and `db-password` have the segments `db`, `password` and so on.
fn segments<'a>(name: &str, lower: &'a str) -> Vec<&'a str> {
    let bytes = name.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(b'_');
    let mut segments = Vec::new();
    let mut start = 0;
    for end in 1..=bytes.len() {
        let (before, here, after) = (at(end - 1), at(end), at(end + 1));
        let camel = before.is_ascii_lowercase() && here.is_ascii_uppercase()
            || before.is_ascii_uppercase() && here.is_ascii_uppercase() && after.is_ascii_lowercase();
        let number = before.is_ascii_digit() != here.is_ascii_digit() && here.is_ascii_alphanumeric();
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

fn by_segments(segments: &[&str], case: Case) -> Secrecy {
    let Some((last, before)) = segments.split_last() else { return Secrecy::None };
    let previous = before.last().copied().unwrap_or_default();
    match *last {
        "authorization" | "cookie" => return Secrecy::Header,
        "token" | "tokens" if HARMLESS_TOKENS.contains(&previous) => return Secrecy::None,
        // Often a number of them.
        "tokens" => return Secrecy::Weak,
        "key" | "keys" => return of_key(before, previous, case),
        "auth" if case == Case::Upper && !before.is_empty() => return Secrecy::Strong,
        "auth" | "sig" => return Secrecy::Weak,
        "signature" if matches!(previous, "amz" | "goog" | "access") => return Secrecy::Strong,
        "signature" => return Secrecy::None,
        _ => {}
    }
    if is_secret_word(last) || segments.iter().any(|segment| is_password(segment)) {
        return Secrecy::Strong;
    }
    if before.iter().any(|segment| is_secret_word(segment)) { Secrecy::Weak } else { Secrecy::None }
}

fn of_key(before: &[&str], previous: &str, case: Case) -> Secrecy {
    let opens = before.iter().any(|segment| is_secret_word(segment));
    if opens || SECRET_KEYS.contains(&previous) {
        return Secrecy::Strong;
    }
    if before.is_empty() || previous.bytes().all(|b| b.is_ascii_digit()) || HARMLESS_KEYS.contains(&previous) {
        return Secrecy::None;
    }
    match case {
        Case::Upper => Secrecy::Strong,
        Case::Mixed => Secrecy::Weak,
    }
}

fn is_secret_word(segment: &str) -> bool {
    const WORDS: [&str; 8] = ["credential", "credentials", "cred", "creds", "mnemonic", "secrets", "jwt", "psk"];
    is_password(segment)
        || WORDS.contains(&segment)
        || segment.ends_with("secret")
        || segment.ends_with("token")
        || FUSED_KEYS.iter().any(|fused| segment.ends_with(fused))
}

/// Whether a segment means a password, alone or with a prefix: `pgpassword`.
pub(super) fn is_password(segment: &str) -> bool {
    const WORDS: [&str; 4] = ["pw", "pswd", "passwords", "passphrases"];
    const ENDS: [&str; 6] = ["password", "passwd", "passwort", "passphrase", "passcode", "pwd"];
    let ends = ENDS.iter().any(|end| segment.ends_with(end));
    ends || WORDS.contains(&segment) || segment.ends_with("pass") && !NO_PASS.contains(&segment)
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
        assert_eq!(secrecy_of_all("Authorization Cookie Set-Cookie Proxy-Authorization"), vec![Secrecy::Header]);
    }
}
