//! Converts the names of tools for models: reversible for every name that a server chooses, and accepted by every
//! provider.
//!
//! A server's name of a tool may be any text. A model gets `server.tool`, which the LLM service writes as
//! `server__tool`; providers accept 64 letters, digits, `_` and `-`. A name that this form can carry stays as it is.
//! Any other name becomes its letters and digits and a hash of the whole name: `files/read.v2` is
//! `files_read_v2_4494099e`. The hash depends on nothing else, so every worker gets the same name. The plan keeps the
//! server's own name beside it.

use sha2::{Digest as _, Sha256};
use tarsy_core::tool_names::SEPARATOR;

/// The longest `server__tool` that providers allow.
const MAX_NAME_BYTES: usize = 64;
/// A longer name of a tool is not offered, because a plan keeps it.
const MAX_TOOL_BYTES: usize = 1024;
/// Hexadecimal digits of the hash.
const HASH_DIGITS: usize = 8;

/// The reason why a tool of this name cannot be offered; `None` when it can.
pub(super) fn tool_fault(tool: &str) -> Option<String> {
    if tool.is_empty() {
        return Some("its name is empty".to_owned());
    }
    (tool.len() > MAX_TOOL_BYTES).then(|| {
        format!(
            "its name has {} bytes; at most {MAX_TOOL_BYTES} are allowed",
            tool.len()
        )
    })
}

/// The part of a tool's name after the dot: the name at its server, or a form that providers accept.
pub(super) fn offered(server: &str, tool: &str) -> String {
    let room = MAX_NAME_BYTES.saturating_sub(server.len() + SEPARATOR.len());
    if is_plain(tool) && tool.len() <= room {
        return tool.to_owned();
    }
    let mut name = String::with_capacity(room);
    for c in tool
        .chars()
        .map(|c| if is_accepted(c) && c != '_' { c } else { '_' })
    {
        if name.len() + 1 + HASH_DIGITS >= room {
            break;
        }
        // Neither `__` nor a `_` at the beginning, which would be read as a part of the separator.
        if c != '_' || !(name.is_empty() || name.ends_with('_')) {
            name.push(c);
        }
    }
    if !name.is_empty() && !name.ends_with('_') {
        name.push('_');
    }
    name + &hash(tool)
}

/// Whether the name leaves the separator before it recognisable.
fn is_plain(tool: &str) -> bool {
    tool.chars().all(is_accepted) && !tool.starts_with('_') && !tool.contains(SEPARATOR)
}

fn is_accepted(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn hash(tool: &str) -> String {
    let digest = Sha256::digest(tool.as_bytes());
    digest
        .iter()
        .take(HASH_DIGITS / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use tarsy_config::server_name_fault;

    /// The name that a provider gets, as the LLM service writes it.
    fn wire(server: &str, tool: &str) -> String {
        format!("{server}.{}", offered(server, tool)).replace('.', SEPARATOR)
    }

    #[test]
    fn a_name_that_providers_accept_stays_as_it_is() {
        for (server, tool) in [
            ("kubernetes", "pods_list"),
            ("a-b", "c-d"),
            ("x1", "get_"),
            ("a_b", "c_d"),
        ] {
            assert_eq!((server_name_fault(server), tool_fault(tool)), (None, None));
            assert_eq!(offered(server, tool), tool);
        }
        assert_eq!(offered("s", &"a".repeat(61)), "a".repeat(61));
    }

    #[test]
    fn any_other_name_gets_a_form_that_never_changes() {
        let long = "tool_".repeat(40);
        for (tool, expected) in [
            ("files/read.v2", "files_read_v2_4494099e"),
            ("a.b", "a_b_2e7336dc"),
            ("a__b", "a_b_63e5c1c4"),
            ("_a", "a_34fb7160"),
            ("__", "9911f4d2"),
            ("lösche", "l_sche_61efd8d4"),
            ("获取", "3025ba82"),
            (" a b\n", "a_b_50e48816"),
            (
                long.as_str(),
                "tool_tool_tool_tool_tool_tool_tool_tool_tool_tool_67a035a8",
            ),
        ] {
            assert_eq!(offered("srv", tool), expected, "{tool}");
        }
    }

    #[test]
    fn two_names_of_a_server_have_two_forms() {
        let names = [
            "a.b",
            "a_b",
            "a__b",
            "a/b",
            "_a_b",
            "a-b",
            "A.b",
            "a b",
            "a.b ",
            "a\u{200b}b",
            "ａ.b",
        ];
        let offered: BTreeSet<String> = names.iter().map(|name| offered("s", name)).collect();
        assert_eq!(offered.len(), names.len(), "{offered:?}");
    }

    #[test]
    fn a_name_is_refused_only_if_it_would_be_ambiguous_or_too_long() {
        for server in ["", "a.b", "a__b", "a_", "1a", "a b", "ä", &"a".repeat(41)] {
            assert!(server_name_fault(server).is_some(), "{server}");
        }
        assert_eq!(server_name_fault(&"a".repeat(40)), None);
        assert_eq!(tool_fault(""), Some("its name is empty".to_owned()));
        assert!(tool_fault(&"é".repeat(513)).is_some() && tool_fault(&"é".repeat(512)).is_none());
    }

    proptest! {
        #[test]
        fn every_provider_accepts_every_name_and_the_separator_is_found_again(
            server in "[a-z][a-z0-9-]{0,39}",
            tool in prop_oneof![any::<String>(), "[a-z_.]{1,80}", "[a-z]{1,200}"],
        ) {
            let name = wire(&server, &tool);
            prop_assert!(name.len() <= 64 && name.chars().all(is_accepted), "{name}");
            prop_assert_eq!(name.replace(SEPARATOR, "."), format!("{server}.{}", offered(&server, &tool)));
        }
    }
}
