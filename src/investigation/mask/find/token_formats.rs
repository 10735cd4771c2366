//! Tokens of known formats (AWS, GitHub, Slack, …). The issuers publish the formats; the public rule sets of secret
//! scanners collect them.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use crate::investigation::mask::bytes::{CharCounts, back, byte, part, skip, skip_near};
use crate::investigation::mask::prefilter::Prefilter;
use crate::investigation::mask::spans::SecretSpan;

/// The characters of a token behind its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// Letters, digits, `_`, `-` and `.`.
    Word,
    /// Like `Word`, with digits among them: the prefix alone is not specific.
    Random,
    /// Capitals and digits.
    Upper,
    /// Hexadecimal digits, exactly of the given length.
    Hex,
    /// Base64 with `$`, `.`, `/`, `+`, `=`, `,`, as in hashes of passwords.
    Hash,
}

/// Prefixes of tokens, and the minimum length of the rest.
const FORMATS: [(&str, usize, Rest); 142] = [
    ("AKIA", 16, Rest::Upper),
    ("ASIA", 16, Rest::Upper),
    ("ABIA", 16, Rest::Upper),
    ("ACCA", 16, Rest::Upper),
    ("ABSK", 60, Rest::Hash),
    ("AIza", 30, Rest::Word),
    ("ya29.", 20, Rest::Word),
    ("GOCSPX-", 20, Rest::Word),
    ("1//0", 30, Rest::Word),
    ("ghp_", 20, Rest::Word),
    ("gho_", 20, Rest::Word),
    ("ghu_", 20, Rest::Word),
    ("ghs_", 20, Rest::Word),
    ("ghr_", 20, Rest::Word),
    ("github_pat_", 20, Rest::Word),
    ("glpat-", 16, Rest::Word),
    ("gldt-", 16, Rest::Word),
    ("glrt-", 16, Rest::Word),
    ("glrtr-", 16, Rest::Word),
    ("glcbt-", 16, Rest::Word),
    ("glptt-", 16, Rest::Word),
    ("glft-", 16, Rest::Word),
    ("glimt-", 16, Rest::Word),
    ("glagent-", 16, Rest::Word),
    ("gloas-", 16, Rest::Word),
    ("glsoat-", 16, Rest::Word),
    ("glffct-", 16, Rest::Word),
    ("GR1348941", 16, Rest::Word),
    ("xoxb-", 16, Rest::Word),
    ("xoxp-", 16, Rest::Word),
    ("xoxa-", 16, Rest::Word),
    ("xoxr-", 16, Rest::Word),
    ("xoxs-", 16, Rest::Word),
    ("xoxc-", 16, Rest::Word),
    ("xoxd-", 16, Rest::Word),
    ("xoxe-", 16, Rest::Word),
    ("xoxe.xox", 16, Rest::Word),
    ("xapp-", 16, Rest::Word),
    ("sk_live_", 10, Rest::Word),
    ("sk_test_", 10, Rest::Word),
    ("sk_prod_", 10, Rest::Word),
    ("rk_live_", 10, Rest::Word),
    ("rk_test_", 10, Rest::Word),
    ("rk_prod_", 10, Rest::Word),
    ("whsec_", 20, Rest::Word),
    ("SG.", 40, Rest::Word),
    ("SK", 32, Rest::Hex),
    ("key-", 32, Rest::Hex),
    ("hf_", 30, Rest::Word),
    ("api_org_", 30, Rest::Word),
    ("pypi-AgE", 20, Rest::Word),
    ("npm_", 30, Rest::Word),
    ("rubygems_", 32, Rest::Word),
    ("CLOJARS_", 40, Rest::Word),
    ("oy2", 43, Rest::Random),
    ("dop_v1_", 32, Rest::Word),
    ("doo_v1_", 32, Rest::Word),
    ("dor_v1_", 32, Rest::Word),
    ("dckr_pat_", 16, Rest::Word),
    ("dckr_oat_", 16, Rest::Word),
    ("AGE-SECRET-KEY-1", 30, Rest::Word),
    ("hvs.", 20, Rest::Word),
    ("hvb.", 20, Rest::Word),
    ("hvr.", 20, Rest::Word),
    ("s.", 24, Rest::Random),
    ("sk-", 20, Rest::Random),
    ("pplx-", 32, Rest::Word),
    ("gsk_", 32, Rest::Word),
    ("xai-", 32, Rest::Random),
    ("r8_", 30, Rest::Word),
    ("dapi", 32, Rest::Hex),
    ("dp.pt.", 30, Rest::Word),
    ("dp.st.", 30, Rest::Word),
    ("dp.ct.", 30, Rest::Word),
    ("dp.sa.", 30, Rest::Word),
    ("dp.scim.", 30, Rest::Word),
    ("dp.audit.", 30, Rest::Word),
    ("dt0c01.", 40, Rest::Word),
    ("dt0s01.", 40, Rest::Word),
    ("dt0s16.", 40, Rest::Word),
    ("glsa_", 20, Rest::Word),
    ("glc_", 20, Rest::Word),
    ("lin_api_", 20, Rest::Word),
    ("lin_oauth_", 20, Rest::Word),
    ("NRAK-", 20, Rest::Word),
    ("NRAL-", 20, Rest::Word),
    ("NRII-", 20, Rest::Word),
    ("NRRA-", 20, Rest::Word),
    ("NRBR-", 19, Rest::Word),
    ("ntn_", 30, Rest::Word),
    ("secret_", 43, Rest::Random),
    ("PMAK-", 30, Rest::Word),
    ("pul-", 40, Rest::Hex),
    ("pscale_", 30, Rest::Word),
    ("pnu_", 30, Rest::Word),
    ("shpat_", 32, Rest::Word),
    ("shpca_", 32, Rest::Word),
    ("shppa_", 32, Rest::Word),
    ("shpss_", 32, Rest::Word),
    ("sq0atp-", 20, Rest::Word),
    ("sq0csp-", 20, Rest::Word),
    ("EAAAE", 55, Rest::Word),
    ("EAAA", 55, Rest::Word),
    ("EZAK", 50, Rest::Word),
    ("sntrys_", 30, Rest::Hash),
    ("sntryu_", 30, Rest::Word),
    ("tskey-", 20, Rest::Word),
    ("sbp_", 32, Rest::Word),
    ("sb_secret_", 20, Rest::Word),
    ("v1.0-", 100, Rest::Random),
    ("HRKU-", 30, Rest::Word),
    ("ATATT3", 30, Rest::Word),
    ("ATCTT3", 30, Rest::Word),
    ("ATBB", 28, Rest::Random),
    ("sha256~", 40, Rest::Word),
    ("figd_", 30, Rest::Word),
    ("figo_", 30, Rest::Word),
    ("AKCp", 60, Rest::Word),
    ("cmVmdGtu", 40, Rest::Word),
    ("xkeysib-", 40, Rest::Word),
    ("xsmtpsib-", 40, Rest::Word),
    ("bkua_", 32, Rest::Word),
    ("nfp_", 30, Rest::Word),
    ("sgp_", 32, Rest::Word),
    ("sl.", 100, Rest::Random),
    ("lsv2_", 30, Rest::Word),
    ("ops_eyJ", 60, Rest::Hash),
    ("fo1_", 30, Rest::Word),
    ("FlyV1", 60, Rest::Hash),
    ("fm2_", 60, Rest::Hash),
    ("LTAI", 17, Rest::Random),
    ("AQVN", 30, Rest::Word),
    ("CCIPAT_", 30, Rest::Word),
    ("CFPAT-", 30, Rest::Word),
    ("pat-na1-", 30, Rest::Word),
    ("pat-eu1-", 30, Rest::Word),
    ("FLWSECK", 20, Rest::Word),
    ("rdme_", 40, Rest::Word),
    ("tfp_", 40, Rest::Word),
    ("duffel_", 40, Rest::Word),
    ("shippo_", 40, Rest::Word),
    ("eyJ", 40, Rest::Word),
];

/// Infixes of tokens, and the minimum lengths before and after them.
const INNER: [(&str, usize, usize); 3] = [(".atlasv1.", 10, 50), ("Q~", 4, 28), ("-us", 32, 1)];
/// Prefixes of password hashes.
const HASHES: [&str; 17] = [
    "$1$",
    "$2a$",
    "$2b$",
    "$2y$",
    "$5$",
    "$6$",
    "$7$",
    "$y$",
    "$gy$",
    "$apr1$",
    "$argon2",
    "$pbkdf2",
    "$scrypt$",
    "pbkdf2_sha256$",
    "SCRAM-SHA-256$",
    "{SSHA",
    "$P$",
];
/// Prefixes of NATS seeds: of a user, an account, an operator …
const SEEDS: [&str; 7] = ["SUA", "SAA", "SOA", "SNA", "SCA", "SXA", "SWA"];

/// The bytes of a candidate that are read before it counts as a token.
const MAX_LOOKAHEAD: usize = 160;

static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).match_kind(MatchKind::Standard).build(patterns()).ok()
});
static PREFILTER: LazyLock<Prefilter> = LazyLock::new(|| Prefilter::new(patterns(), 3, 16));

fn patterns() -> impl Iterator<Item = &'static str> {
    let words =
        FORMATS.iter().map(|format| format.0).chain(INNER.iter().map(|inner| inner.0)).chain(HASHES).chain(SEEDS);
    words.chain([":AA", "pat"])
}

/// Finds every token of a known format.
pub(crate) fn find(text: &str, spans: &mut Vec<SecretSpan>) {
    let Some(finder) = FINDER.as_ref() else { return };
    let mut done = 0;
    let windows = PREFILTER.windows(text, |_| true).into_iter();
    for found in windows.flat_map(|(from, to)| finder.find_overlapping_iter(Input::new(text).span(from..to))) {
        if found.start() < done {
            continue;
        }
        let index = found.pattern().as_usize();
        let span = match FORMATS.get(index) {
            Some((_, shortest, rest)) => prefixed(text, found.start(), found.end(), *shortest, *rest),
            None => other(text, index - FORMATS.len(), found.start(), found.end()),
        };
        if let Some(span) = span {
            done = span.end;
            spans.push(span);
        }
    }
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

fn begins_word(text: &str, start: usize) -> bool {
    start == 0 || {
        let before = byte(text, start - 1);
        !before.is_ascii_alphanumeric() && before != b'\\'
    }
}

fn prefixed(text: &str, start: usize, end: usize, shortest: usize, rest: Rest) -> Option<SecretSpan> {
    let long_enough = byte(text, end.checked_add(shortest)?.checked_sub(1)?);
    if !begins_word(text, start) || long_enough == 0 || long_enough == b' ' {
        return None;
    }
    let made_of = |b: u8| match rest {
        Rest::Word | Rest::Random => is_token(b),
        Rest::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
        Rest::Hex => b.is_ascii_hexdigit(),
        Rest::Hash => is_hash(b),
    };
    let is_web_token = part(text, start, end) == "eyJ";
    let last = skip_near(text, end, if is_web_token { 512 } else { MAX_LOOKAHEAD }, made_of);
    let tail = part(text, end, last);
    let kinds = CharCounts::of(tail);
    let random = kinds.digits > 0 && (kinds.upper > 1 || kinds.digits > 5);
    let fits = match rest {
        Rest::Word | Rest::Hash => tail.len() >= shortest && (kinds.digits > 0 || kinds.upper > 1 && kinds.lower > 1),
        Rest::Random => tail.len() >= shortest && random,
        Rest::Upper => tail.len() == shortest,
        Rest::Hex => tail.len() == shortest && !byte(text, last).is_ascii_alphanumeric(),
    };
    if !fits || is_web_token && !tail.contains('.') {
        return None;
    }
    let last = skip(text, last, made_of);
    Some(SecretSpan::new(start, wrapped(text, start, last)))
}

/// The end of a token that may be wrapped: it continues in the next line if that is a single word.
fn wrapped(text: &str, start: usize, end: usize) -> usize {
    let next = skip(text, end, |b| matches!(b, b'\r' | b'\n'));
    if next == end || end - start < 36 {
        return end;
    }
    let next = skip(text, next, |b| matches!(b, b' ' | b'\t'));
    let last = skip(text, next, is_token);
    let lone = matches!(byte(text, last), 0 | b'\n' | b'\r') && last - next >= 12;
    let tail = CharCounts::of(part(text, next, last));
    if lone && tail.digits > 0 && tail.upper > 0 && tail.lower > 0 { last } else { end }
}

fn is_hash(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'$' | b'.' | b'/' | b'+' | b'=' | b',' | b':' | b'_' | b'-' | b'}')
}

fn other(text: &str, index: usize, start: usize, end: usize) -> Option<SecretSpan> {
    if let Some((_, before, after)) = INNER.get(index) {
        let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'~');
        let first = back(text, start.saturating_sub(100), start, inner);
        let last = skip_near(text, end, MAX_LOOKAHEAD, |b| inner(b) || b == b'.');
        let kinds = CharCounts::of(part(text, first, start));
        let fits = start - first >= *before && last - end >= *after && kinds.digits > 0 && begins_word(text, first);
        let of_mailchimp = part(text, start, end) != "-us"
            || (start - first == 32
                && last - end <= 2
                && part(text, first, start).bytes().all(|b| b.is_ascii_hexdigit()));
        return (fits && of_mailchimp).then_some(SecretSpan::new(first, last));
    }
    let index = index - INNER.len();
    if index < HASHES.len() {
        let last = skip_near(text, end, 512, is_hash);
        let hash = part(text, end, last);
        let cut = hash.find(':').filter(|_| !hash.contains('=')).map_or(hash.len(), |colon| colon);
        return (cut >= 16).then_some(SecretSpan::new(start, end + cut));
    }
    let index = index - HASHES.len();
    if index < SEEDS.len() {
        let last = skip_near(text, end, MAX_LOOKAHEAD, |b| b.is_ascii_uppercase() || b.is_ascii_digit());
        let fits = (53..=60).contains(&(last - start)) && begins_word(text, start);
        return fits.then_some(SecretSpan::new(start, last));
    }
    let last = skip_near(text, end, MAX_LOOKAHEAD, is_token);
    if index == SEEDS.len() {
        // A bot of Telegram: `<id>:AA…`.
        let first = back(text, start.saturating_sub(12), start, |b| b.is_ascii_digit());
        return (start - first >= 6 && last - end >= 30).then_some(SecretSpan::new(first, last));
    }
    // A token of Airtable: `pat…`, a dot and 64 digits.
    let (head, tail) = part(text, end, last).split_once('.')?;
    (head.len() == 14 && tail.len() >= 60 && begins_word(text, start)).then_some(SecretSpan::new(start, last))
}
