//! Rules for names, so that `server.tool` can be written as `server__tool`, without a dot, and converted back.

/// The longest `server__tool` that providers allow.
const MAX_NAME_CHARS: usize = 64;

/// Why a server cannot have this name; `None` when it can.
pub(super) fn server_fault(name: &str) -> Option<&'static str> {
    if name.ends_with('_') {
        return Some("must not end with _");
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some("must begin with a letter");
    }
    segment_fault(name)
}

/// Why a tool of the server cannot have this name; `None` when it can.
pub(super) fn tool_fault(server: &str, tool: &str) -> Option<&'static str> {
    if tool.starts_with('_') {
        return Some("must not begin with _");
    }
    if server.len() + "__".len() + tool.len() > MAX_NAME_CHARS {
        return Some("is longer than 64 characters together with the server's name");
    }
    segment_fault(tool)
}

fn segment_fault(segment: &str) -> Option<&'static str> {
    if segment.is_empty() {
        return Some("must not be empty");
    }
    if segment.contains("__") {
        return Some("must not contain __");
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (!segment.chars().all(allowed)).then_some("may contain only letters, digits, _ and -")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_valid_name_can_be_converted_back_from_its_form_without_a_dot() {
        for (server, tool) in [("kubernetes", "pods_list"), ("a-b", "c-d"), ("x1", "get_"), ("a_b", "c_d")] {
            assert_eq!((server_fault(server), tool_fault(server, tool)), (None, None));
            let name = format!("{server}.{tool}");
            assert_eq!(name.replace('.', "__").replacen("__", ".", 1), name);
        }
    }

    #[test]
    fn a_name_that_would_be_ambiguous_is_refused() {
        for server in ["", "a.b", "a__b", "a_", "1a", "a b", "ä"] {
            assert!(server_fault(server).is_some(), "{server}");
        }
        for tool in ["", "a.b", "a__b", "_a", "a/b", &"a".repeat(63)] {
            assert!(tool_fault("s", tool).is_some(), "{tool}");
        }
        assert_eq!(tool_fault("s", &"a".repeat(61)), None);
    }
}
