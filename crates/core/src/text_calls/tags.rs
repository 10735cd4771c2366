//! Tool calls between unknown tags: providers invent tags, whose names tell that they contain calls.

use super::{names_tool, offered};
use crate::plan::ToolSpec;
use crate::readable::text::beginning;

/// The longest beginning of a tag that is read.
const MAX_HEAD_CHARS: usize = 48;
/// Bytes after the beginning of a tag that have to hold the name of a tool.
const REACH_BYTES: usize = 300;
/// Words that occur in the names of tags around calls.
const WORDS: [&str; 11] = [
    "toolcall",
    "functioncall",
    "toolrequest",
    "toolcode",
    "tooluse",
    "usetool",
    "mcptool",
    "invoke",
    "toolinvocation",
    "calledtool",
    "callingtool",
];
/// Tags that are those of a call if the name of an offered tool stands in them.
const NAMING: [&str; 4] = ["function", "functionname", "tool", "toolname"];

/// The reading of a tag and of the call in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagRole {
    Call,
    /// A call, or the mention of one.
    Mention,
}

/// The tags in a prose text, and how each one is read.
pub(super) fn found(prose: &str, tools: &[ToolSpec]) -> Vec<(usize, TagRole)> {
    let tags = prose.match_indices(['<', '[']);
    let tags =
        tags.filter_map(|(at, open)| Some((at, read(prose.get(at + open.len()..)?, open, tools)?)));
    let recipients = prose
        .match_indices("to=")
        .filter(|(at, _)| is_recipient(prose, *at, tools));
    tags.chain(recipients.map(|(at, _)| (at, TagRole::Call)))
        .collect()
}

/// `to=functions.server__tool`: the recipient of a message, without the tokens around it.
fn is_recipient(prose: &str, at: usize, tools: &[ToolSpec]) -> bool {
    let begins = prose
        .get(..at)
        .is_some_and(|before| !before.ends_with(char::is_alphanumeric));
    let name = prose.get(at + "to=".len()..).unwrap_or_default();
    begins && offered(name.strip_prefix("functions.").unwrap_or(name), tools).is_some()
}

fn read(inner: &str, open: &str, tools: &[ToolSpec]) -> Option<TagRole> {
    let length = inner
        .char_indices()
        .take(MAX_HEAD_CHARS)
        .find(|(_, letter)| ends_head(*letter))
        .map(|(at, _)| at)?;
    let (head, rest) = inner.split_at_checked(length)?;
    if head.starts_with('/') {
        return None;
    }
    let is_closed = rest.starts_with(['>', ']']);
    let behind = if is_closed { rest.get(1..)? } else { rest };
    let behind = beginning(behind, REACH_BYTES);
    let content = behind.trim_start();
    let has_structure = is_closed && content.starts_with(['{', '[', '<']);
    let letters: String = head
        .chars()
        .filter(|letter| letter.is_alphabetic())
        .flat_map(char::to_lowercase)
        .collect();
    let is_of_call = WORDS.iter().any(|word| letters.contains(word));
    let is_naming = NAMING.contains(&letters.as_str());
    let is_call = match open {
        "[" => is_of_call && has_structure,
        _ if is_of_call => {
            has_structure || names_tool(behind, tools) || (is_closed && content.is_empty())
        }
        _ if is_naming => names_tool(behind, tools),
        // The name of a tool is the name of the tag.
        _ => is_closed && (has_structure || content.is_empty()) && offered(head, tools) == Some(""),
    };
    let is_mention =
        open == "[" && is_of_call && rest.starts_with(['{', '(']) && names_tool(head, tools);
    match (is_call, is_mention) {
        (true, _) => Some(TagRole::Call),
        (false, true) => Some(TagRole::Mention),
        (false, false) => None,
    }
}

fn ends_head(letter: char) -> bool {
    matches!(letter, '>' | ']' | '{' | '(' | '=' | '"' | '\n' | '<')
}
