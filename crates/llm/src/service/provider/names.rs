//! Names of tools: `server.tool` here, `server__tool` at the provider, because some providers accept no dots.
//!
//! A model makes up names, too, and they stay in the conversation. There they get a form that every provider accepts.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::error::ProviderError;
use super::schemas::Renamed;
use crate::proto::ToolCallDelta;
use tarsy_core::tool_names::{self, SEPARATOR};

/// The longest name that every provider accepts.
const MAX_BYTES: usize = 64;
/// Hexadecimal digits of the hash in the form of a made-up name.
const HASH_DIGITS: usize = 8;

/// The name for the provider.
///
/// # Errors
/// `invalid_request` when the name cannot be converted back. The message is that of the existing service.
pub(crate) fn to_wire(name: &str) -> Result<String, ProviderError> {
    if let Some(segment) = name.split('.').find(|segment| segment.contains(SEPARATOR)) {
        let message = format!(
            "Tool name segment '{segment}' in '{name}' contains '__' which conflicts with the dot separator encoding. \
             Rename the tool to avoid double underscores."
        );
        return Err(ProviderError::invalid_request(message));
    }
    Ok(tool_names::function(name))
}

/// The name of a tool in a former call or its result. A name of a real tool is that of [`to_wire`]. One that the model
/// made up, and that a provider might refuse, becomes its letters and digits and a hash of the whole name.
pub(crate) fn in_history(name: &str) -> String {
    to_wire(name)
        .ok()
        .filter(|wire| is_accepted(wire))
        .unwrap_or_else(|| made_up(name))
}

/// Whether every provider accepts it: Gemini wants a letter or `_` at the beginning.
fn is_accepted(wire: &str) -> bool {
    wire.len() <= MAX_BYTES
        && wire
            .as_bytes()
            .first()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && wire
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn made_up(name: &str) -> String {
    let mut form = String::new();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        form.push_str("tool_");
    }
    for letter in name.chars() {
        if form.len() >= MAX_BYTES - HASH_DIGITS - 1 {
            break;
        }
        if letter.is_ascii_alphanumeric() || letter == '-' {
            form.push(letter);
        } else if !form.ends_with('_') {
            form.push('_');
        }
    }
    let form = form.trim_end_matches('_');
    let hash = HEXLOWER.encode(&Sha256::digest(name));
    format!("{form}_{hash:.HASH_DIGITS$}")
}

/// The name of a tool for clients: `server.tool` instead of `server__tool`.
pub(crate) fn from_wire(name: &str) -> String {
    tool_names::full(name)
}

/// A call of the model for clients. One without an id gets one, and `renamed` has the tools some of whose properties
/// have another name at the provider.
pub(crate) fn tool_call(
    id: String,
    wire_name: &str,
    arguments: String,
    renamed: &HashMap<String, Renamed>,
) -> ToolCallDelta {
    let call_id = if id.is_empty() {
        format!("call_{}", uuid::Uuid::new_v4().simple())
    } else {
        id
    };
    let arguments = match renamed.get(wire_name) {
        Some(properties) => properties.restored(&arguments),
        None => arguments,
    };
    ToolCallDelta {
        call_id,
        name: from_wire(wire_name),
        arguments,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_made_up_name_gets_a_form_that_never_changes() {
        for (name, expected) in [
            ("k8s.pods_list", "k8s__pods_list"),
            ("default_api.k8s.t", "default_api__k8s__t"),
            (
                "k8s.t<|channel|>commentary",
                "k8s_t_channel_commentary_98eb4ff0",
            ),
            ("default_api:k8s.t", "default_api_k8s_t_fe948b1e"),
            ("", "tool_e3b0c442"),
            ("1", "tool_1_6b86b273"),
            ("srv.bad__name", "srv_bad_name_ae58b4b4"),
        ] {
            assert_eq!(in_history(name), expected, "{name}");
        }
        let names = ["a b", "a  b", "a b ", "ａ b", "a\n b", "a:b"];
        let forms: BTreeSet<String> = names.iter().map(|name| in_history(name)).collect();
        assert_eq!(forms.len(), names.len(), "{forms:?}");
    }

    proptest! {
        #[test]
        fn every_provider_accepts_the_name_of_a_former_call(
            name in prop_oneof![any::<String>(), "[a-z_.:<|>]{0,90}", "[0-9a-z.]{1,80}"],
        ) {
            let form = in_history(&name);
            prop_assert!(is_accepted(&form), "{form}");
            prop_assert_eq!(in_history(&name), form);
        }

        #[test]
        fn the_name_of_a_real_tool_is_the_one_that_was_offered(name in "[a-z][a-z0-9-]{0,20}\\.[a-z0-9][a-z0-9-]{0,30}") {
            prop_assert_eq!(in_history(&name), to_wire(&name).unwrap());
            prop_assert_eq!(from_wire(&in_history(&name)), name);
        }
    }

    #[test]
    fn a_name_comes_back_as_it_was() {
        for name in [
            "server.tool",
            "kubernetes-server.pods_get",
            "plain",
            "a.b.c",
        ] {
            assert_eq!(from_wire(&to_wire(name).unwrap()), name);
        }
        let message = to_wire("srv.bad__name").unwrap_err().message;
        assert!(
            message.starts_with("Tool name segment 'bad__name' in 'srv.bad__name' contains '__'"),
            "{message}"
        );
    }
}
