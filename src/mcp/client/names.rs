//! Names of tools: `server.tool` inside, `server__tool` where a provider allows no dot, and back without a doubt.

/// What providers allow: `server__tool` together.
const LONGEST: usize = 64;

/// Why a name cannot be used; `None` when it can be the server's part of a tool's name.
pub(super) fn server_fault(name: &str) -> Option<&'static str> {
    if name.ends_with('_') {
        return Some("must not end with _");
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some("must begin with a letter");
    }
    segment_fault(name)
}

/// Why a server's tool cannot be offered; `None` when it can.
pub(super) fn tool_fault(server: &str, tool: &str) -> Option<&'static str> {
    if tool.starts_with('_') {
        return Some("must not begin with _");
    }
    if server.len() + "__".len() + tool.len() > LONGEST {
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
    fn every_usable_name_comes_back_from_its_form_without_a_dot() {
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
