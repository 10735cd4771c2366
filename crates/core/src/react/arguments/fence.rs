//! Removes the Markdown fence or backticks around an input.

/// The text inside of a fence, with or without the name of a language, or of single backticks.
pub(super) fn inside(text: &str) -> &str {
    let signs = text.len()
        - text
            .trim_start_matches(if text.starts_with('~') { '~' } else { '`' })
            .len();
    let fenced = if signs >= 3 {
        text.split_at_checked(signs)
    } else {
        None
    };
    let Some((fence, inside)) = fenced else {
        let single = text
            .strip_prefix('`')
            .and_then(|text| text.strip_suffix('`'));
        return single
            .filter(|inside| !inside.contains('`'))
            .unwrap_or(text);
    };
    match inside.split_once('\n') {
        // A fence ends at the beginning of a line: in the middle of one it may be data.
        Some((first, rest)) if is_language(first.trim()) => {
            let end = rest
                .match_indices(fence)
                .find(|(at, _)| rest.get(..*at).is_some_and(|inside| inside.ends_with('\n')));
            let rest = end
                .and_then(|(at, _)| rest.get(..at))
                .unwrap_or(rest)
                .trim_end();
            rest.strip_suffix(fence).unwrap_or(rest)
        }
        Some(_) | None => {
            let inside = inside
                .rsplit_once(fence)
                .map_or(inside, |(inside, _)| inside);
            let inside = inside
                .strip_prefix("json")
                .or_else(|| inside.strip_prefix("yaml"))
                .unwrap_or(inside);
            inside.trim()
        }
    }
}

fn is_language(line: &str) -> bool {
    line.chars().all(|c| c.is_alphanumeric())
}
