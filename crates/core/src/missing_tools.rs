//! Lists the missing tools of an agent in a system message: those of unavailable servers, those above the limit, and
//! those that a provider refuses.

use super::prompt::{paragraph, render};

const UNAVAILABLE: &str = include_str!("prompts/unavailable.md");
const REFUSED: &str = include_str!("prompts/refused.md");
const LEFT_OUT: &str = include_str!("prompts/left_out.md");
/// Names of tools that were left out; the rest is a number.
const MAX_NAMES_LEFT_OUT: usize = 20;

/// Adds the unavailable MCP servers to a system message.
pub fn without_servers(system: String, unavailable: &[String]) -> String {
    if unavailable.is_empty() {
        return system;
    }
    let notice = render(UNAVAILABLE, &[("servers", &unavailable.join(", "))]);
    format!("{system}{}", paragraph(&notice))
}

/// Adds the number of tools that were left out, and some of their names, to a system message.
pub fn without_tools(system: String, left_out: &[String]) -> String {
    if left_out.is_empty() {
        return system;
    }
    let count = left_out.len().to_string();
    let notice = render(LEFT_OUT, &[("count", &count), ("names", &some(left_out))]);
    format!("{system}{}", paragraph(&notice))
}

/// Adds the tools that the provider refuses to a system message.
pub(crate) fn without_refused(system: String, refused: &[String]) -> String {
    if refused.is_empty() {
        return system;
    }
    let notice = render(REFUSED, &[("names", &some(refused))]);
    format!("{system}{}", paragraph(&notice))
}

fn some(names: &[String]) -> String {
    let more = if names.len() > MAX_NAMES_LEFT_OUT {
        " and more"
    } else {
        ""
    };
    let names = names
        .iter()
        .take(MAX_NAMES_LEFT_OUT)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    format!("{names}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_message_names_what_is_missing_and_nothing_else() {
        assert_eq!(
            without_tools(without_servers("You are an SRE.".to_owned(), &[]), &[]),
            "You are an SRE."
        );
        let system = without_servers(
            "You are an SRE.".to_owned(),
            &["k8s".to_owned(), "prom".to_owned()],
        );
        assert!(
            system.starts_with("You are an SRE.\n\nWhen this work began")
                && system.contains("called: k8s, prom.")
        );
        let names: Vec<String> = (0..21).map(|number| format!("k8s.t{number}")).collect();
        let system = without_tools("You are an SRE.".to_owned(), &names);
        assert!(
            system.contains(" 21 of them were left out, so none of these can be called: k8s.t0, "),
            "{system}"
        );
        assert!(
            system.contains("k8s.t19 and more. ") && !system.contains("k8s.t20"),
            "{system}"
        );
        assert_eq!(
            without_refused("You are an SRE.".to_owned(), &[]),
            "You are an SRE."
        );
        let system = without_refused("You are an SRE.".to_owned(), &names[..2]);
        assert!(
            system.starts_with("You are an SRE.\n\nThese tools cannot be called")
                && system.contains(": k8s.t0, k8s.t1. "),
            "{system}"
        );
    }
}
