//! The words that divide an answer, and the names of tools.

/// Before the reasoning.
pub(super) const THOUGHT: &str = "Thought:";
/// Before the name of a tool.
pub(super) const ACTION: &str = "Action:";
/// Before its arguments.
pub(super) const ACTION_INPUT: &str = "Action Input:";
/// Before the last answer.
pub(super) const FINAL_ANSWER: &str = "Final Answer:";

/// What models put around a name.
const DRESSING: [char; 4] = ['`', '*', '"', '\''];

/// Splits a line at a mark that follows the end of a sentence: `I know enough.Final Answer: …`. Before it may stand
/// spaces, asterisks and backticks, which belong to neither side.
pub(super) fn mid_line<'a>(line: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    line.match_indices(mark).find_map(|(at, _)| {
        let (before, after) = line.split_at_checked(at)?;
        let sentence = before.trim_end_matches(|c: char| c == '`' || c == '*' || c.is_whitespace());
        sentence.ends_with(['.', '!', '?']).then(|| (sentence, after.strip_prefix(mark).unwrap_or_default()))
    })
}

/// Whether a line is one that shows what a tool is said to have answered, or a remark after the end: a model that
/// goes on like this makes it up.
pub(super) fn is_invented(line: &str) -> bool {
    const OWN_WORDS: [&str; 3] = ["Please specify", "what Action you want to take", "Error in reasoning"];
    line.starts_with("[Based on")
        || line.starts_with("Observation:") && !OWN_WORDS.iter().any(|words| line.contains(words))
}

/// The first line of a text without what models put around a name.
pub(super) fn bare_name(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    line.trim_matches(|c: char| c.is_whitespace() || DRESSING.contains(&c))
}

/// The name of a tool, `server.tool`, in the first line of a text.
pub(super) fn tool_name(text: &str) -> Option<&str> {
    let name = bare_name(text);
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    (name.contains('.') && name.split('.').all(is_word)).then_some(name)
}

/// The tool of an answer that has an action input but no line `Action:`, looked for in what stands before it: behind
/// the last `action:` in any case, else behind the last word `action`.
pub(super) fn recovered_action(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let end = lower.find("action input:")?;
    let before = lower.get(..end)?;
    let begins = |at: usize| before.get(..at).is_some_and(|head| !head.ends_with(is_word_char));
    let marked = before.rmatch_indices("action:").find(|(at, _)| begins(*at)).map(|(at, word)| at + word.len());
    let bare = || {
        let ends =
            |at: usize| before.get(at..).is_some_and(|tail| tail.is_empty() || tail.starts_with(char::is_whitespace));
        let mut words = before.rmatch_indices("action").map(|(at, word)| (at, at + word.len()));
        words.find(|(at, after)| begins(*at) && ends(*after)).map(|(_, after)| after)
    };
    let candidate = text.get(marked.or_else(bare)?..end)?;
    tool_name(candidate)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
