//! The fingerprint of an alert, from the first of these: header, `groupKey`, the single alert's `fingerprint`, hash of
//! the alert's name and its sorted labels, SHA-256 of the body.
//!
//! A fingerprint names its origin, `<form>@<end of the subject>:<key>`, with `+<tenant>` before the colon if the sender
//! serves several: a producer with the permission for one subject
//! cannot claim the alerts of another subject. The form is `header`, `alertmanager`, `grafana`, `json`, `text`, or the
//! name of a source.

use std::borrow::Cow;
use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::identity;
use crate::alert::aggregate::Aggregate;
use crate::sources::{Key, WordList};

/// A longer key is hashed, because a fingerprint is a key of an index.
const MAX_KEY_BYTES: usize = 512;
/// The same for the end of a subject, and for a tenant.
const MAX_NAME_BYTES: usize = 128;
/// The form of a fingerprint from a header.
pub(super) const HEADER: &str = "header";
const FORMS: [&str; 5] = [HEADER, "alertmanager", "grafana", "json", "text"];
/// More members than this become one hash with their number.
const MAX_MEMBERS: usize = 256;
/// The labels with a severity, in lower case without separators.
const SEVERITY_KEYS: WordList =
    WordList::new("severity priority level sev criticality urgency alertseverity prio");

/// Whether a label names a severity, in any case.
pub(super) fn is_severity_key(key: &str) -> bool {
    SEVERITY_KEYS.contains(&identity::plain(key))
}

/// The scope of a fingerprint: equal keys in different scopes are different alerts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scope<'s> {
    /// The end of the subject that the alert was published on.
    pub(super) suffix: &'s str,
    /// The tenant of a sender that serves several.
    pub(super) tenant: Option<&'s str>,
}

/// The fingerprint of `key` from a body of this form.
pub(super) fn scoped(form: &str, scope: Scope<'_>, key: String) -> String {
    let key = if key.len() <= MAX_KEY_BYTES {
        key
    } else {
        hash([key.as_bytes()])
    };
    format!("{}{key}", prefix(form, scope))
}

/// The fingerprint of a header. A complete fingerprint of the same subject stays unchanged: it claims no more than a
/// body on that subject could, and a rerun keeps the fingerprint of the first investigation.
///
/// `is_source` knows the forms that are names of declared sources.
pub(super) fn of_header(scope: Scope<'_>, key: String, is_source: &dyn Fn(&str) -> bool) -> String {
    let form = key
        .split_once('@')
        .map(|(form, _)| form)
        .filter(|form| FORMS.contains(form) || is_source(form));
    let is_complete = form.is_some_and(|form| key.starts_with(&prefix(form, scope)));
    if is_complete && key.len() <= MAX_KEY_BYTES {
        key
    } else {
        scoped(HEADER, scope, key)
    }
}

/// `<form>@<end of the subject>:`, or `<form>@<end of the subject>+<tenant>:`.
fn prefix(form: &str, scope: Scope<'_>) -> String {
    let tenant = scope
        .tenant
        .map(|tenant| format!("+{}", name(tenant)))
        .unwrap_or_default();
    format!("{form}@{}{tenant}:", name(scope.suffix))
}

/// Hashes an unusual name, so that no two names give the same prefix.
fn name(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_NAME_BYTES
        && text
            .chars()
            .all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(hash([text.as_bytes()]).replace(':', "-"))
}

/// The fingerprint of a body without any key.
pub(super) fn of_body(body: &[u8]) -> String {
    hash([body])
}

/// The fingerprint of JSON of no known form: its parts, sorted.
pub(super) fn of_parts(parts: &[String]) -> String {
    hash(parts.iter().map(String::as_bytes))
}

/// The fingerprint of an alert of a declared source. An absent part is marked, and the list of parts is named, so that
/// no two keys give the same bytes.
pub(super) fn of_key(key: &Key) -> String {
    let list = format!("{}/{}", key.list, key.parts.len());
    let parts = key.parts.iter().map(|part| {
        part.value
            .as_ref()
            .map_or_else(|| "-".to_owned(), |value| format!("={value}"))
    });
    let parts: Vec<String> = std::iter::once(list).chain(parts).collect();
    hash(parts.iter().map(String::as_bytes))
}

/// The member of an alert of a declared source.
pub(super) fn member_of_key(source: &str, key: &str) -> Uuid {
    short([b"key".as_slice(), source.as_bytes(), key.as_bytes()])
}

/// The fingerprint of an alert with labels: the hash of its name and labels, in any order.
pub(super) fn of_labels(name: &str, labels: &BTreeMap<String, String>) -> String {
    let pairs = labels
        .iter()
        .flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]);
    hash(std::iter::once(name.as_bytes()).chain(pairs))
}

/// The member of an alert with labels: the hash of its name and its labels without the severity, which a cooldown
/// compares separately.
pub(super) fn member(name: &str, labels: &BTreeMap<String, String>) -> Uuid {
    let pairs = labels.iter().filter(|(key, _)| !is_severity_key(key));
    let pairs = pairs.flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]);
    short(std::iter::once(name.as_bytes()).chain(pairs))
}

/// The member of a text. Numbers are ignored: `disk 94 % full` and `disk 95 % full` are the same.
pub(super) fn member_of_text(text: &str) -> Uuid {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_ascii_digit() {
            plain.push(c);
        } else if !plain.ends_with('0') {
            plain.push('0');
        }
    }
    short([b"text".as_slice(), plain.trim().as_bytes()])
}

/// The members of a group, sorted and without duplicates.
pub(super) fn group(mut members: Vec<Uuid>) -> Vec<Uuid> {
    members.sort_unstable();
    members.dedup();
    if members.len() > MAX_MEMBERS {
        let digest = short(members.iter().map(|member| member.as_bytes().as_slice()))
            .as_fields()
            .0;
        return vec![Aggregate::group(&members, digest)];
    }
    members
}

/// Hashes lengths, too, so that no two lists of parts are the same bytes; a single part is a plain SHA-256.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Sha256 {
    let mut hash = Sha256::new();
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            hash.update(part.len().to_be_bytes());
        }
        hash.update(part);
    }
    hash
}

fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    format!("sha256:{}", HEXLOWER.encode(&digest(parts).finalize()))
}

/// The first half of the hash.
fn short<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Uuid {
    Uuid::from_bytes(
        digest(parts)
            .finalize()
            .first_chunk()
            .copied()
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::KeyPart;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn of(suffix: &str) -> Scope<'_> {
        Scope {
            suffix,
            tenant: None,
        }
    }

    #[test]
    fn the_keys_of_two_tenants_are_two_and_no_other_suffix_gives_the_same() {
        let tenant =
            |suffix, tenant| scoped("alertmanager", Scope { suffix, tenant }, "{}:{x}".into());
        assert_eq!(
            tenant("http", Some("team-a")),
            "alertmanager@http+team-a:{}:{x}"
        );
        let keys = [
            tenant("http", None),
            tenant("http", Some("team-a")),
            tenant("http", Some("team-b")),
            tenant("http+team-a", None),
            tenant("http", Some("team-a:{}")),
            tenant("", Some("http+team-a")),
        ];
        for (index, one) in keys.iter().enumerate() {
            assert!(
                keys.iter().skip(index + 1).all(|other| other != one),
                "{keys:?}"
            );
        }
    }

    #[test]
    fn the_hash_of_a_body_is_its_sha_256() {
        assert_eq!(
            of_body(b"abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn labels_that_differ_only_in_their_split_are_different() {
        let labels = |key: &str, value: &str| labels(&[(key, value)]);
        assert_eq!(
            of_labels("a", &labels("b", "c")),
            of_labels("a", &labels("b", "c"))
        );
        assert_ne!(
            of_labels("a", &labels("b", "cd")),
            of_labels("a", &labels("bc", "d"))
        );
        assert_ne!(
            of_labels("a", &labels("b", "c")),
            of_labels("ab", &labels("", "c"))
        );
        assert_ne!(
            member("a", &labels("b", "cd")),
            member("a", &labels("bc", "d"))
        );
    }

    #[test]
    fn keys_of_other_parts_are_different_and_an_absent_part_keeps_its_place() {
        let key = |list: usize, parts: &[Option<&str>]| {
            of_key(&Key {
                list,
                parts: parts
                    .iter()
                    .map(|value: &Option<&str>| KeyPart {
                        from: String::new(),
                        value: value.map(str::to_owned),
                    })
                    .collect(),
            })
        };
        let keys = [
            key(0, &[Some("ab"), Some("c")]),
            key(0, &[Some("a"), Some("bc")]),
            key(1, &[Some("a"), Some("bc")]),
            key(0, &[Some("abc")]),
            key(0, &[Some("abc"), None]),
            key(0, &[None, Some("abc")]),
            key(0, &[Some("-"), Some("abc")]),
        ];
        for (index, one) in keys.iter().enumerate() {
            assert!(
                keys.iter().skip(index + 1).all(|other| other != one),
                "{index}"
            );
        }
    }

    #[test]
    fn a_fingerprint_that_is_too_long_for_an_index_is_hashed() {
        assert_eq!(
            scoped("text", of("a"), "x".repeat(512)),
            format!("text@a:{}", "x".repeat(512))
        );
        assert_eq!(
            scoped("text", of("a"), "x".repeat(513)).len(),
            "text@a:sha256:".len() + 64
        );
        assert_eq!(
            scoped("text", of(&"a".repeat(129)), "x".into()).len(),
            "text@sha256-:x".len() + 64
        );
    }

    #[test]
    fn a_fingerprint_names_its_origin_and_no_other_origin_gives_the_same() {
        let real = scoped("alertmanager", of("alertmanager"), "{}:{x}".into());
        assert_eq!(real, "alertmanager@alertmanager:{}:{x}");
        let others = [
            scoped("alertmanager", of(""), "{}:{x}".into()),
            scoped("alertmanager", of("http"), "{}:{x}".into()),
            scoped("json", of("alertmanager"), "{}:{x}".into()),
            scoped("alertmanager", of("alertmanager:{}"), "{x}".into()),
            of_header(of(""), "{}:{x}".into(), &|_| false),
            of_header(of(""), real.clone(), &|_| false),
            of_header(of("http"), real.clone(), &|_| false),
            of_header(of("alertmanager:{}"), real.clone(), &|_| false),
            of_header(
                of("alertmanager"),
                format!("{real}{}", "x".repeat(512)),
                &|_| false,
            ),
        ];
        for other in others {
            assert_ne!(other, real);
        }
        let kept = of_header(of("alertmanager"), real.clone(), &|_| false);
        assert_eq!(kept, real, "a repetition on the same subject keeps it");
        let declared = scoped("shop", of("http"), "x".into());
        assert_eq!(
            of_header(of("http"), declared.clone(), &|form| form == "shop"),
            declared
        );
        assert_eq!(
            of_header(of("http"), declared.clone(), &|_| false),
            format!("header@http:{declared}")
        );
    }

    #[test]
    fn a_member_is_name_and_labels_without_severity_and_numbers() {
        let of = |severity| member("A", &labels(&[("pod", "p"), ("severity", severity)]));
        assert_eq!(of("warning"), of("critical"));
        assert_ne!(of("warning"), member("A", &labels(&[("pod", "q")])));
        assert_ne!(of("warning"), member("B", &labels(&[("pod", "p")])));
        assert_eq!(
            member_of_text("disk 94 % full\n"),
            member_of_text("disk 5 % full")
        );
        assert_ne!(
            member_of_text("disk 94 % full"),
            member_of_text("nothing to see")
        );
    }

    #[test]
    fn a_group_is_its_members_in_any_order_and_a_large_one_is_one_hash() {
        let of =
            |numbers: &mut dyn Iterator<Item = u128>| group(numbers.map(Uuid::from_u128).collect());
        assert_eq!(of(&mut [3, 1, 3].into_iter()), [1, 3].map(Uuid::from_u128));
        assert_eq!(of(&mut (0..256)).len(), 256);
        let large = of(&mut (0..257));
        let larger = of(&mut (0..258));

        assert_eq!((large.len(), larger.len()), (1, 1));
        assert_ne!(large, larger);
    }
}
