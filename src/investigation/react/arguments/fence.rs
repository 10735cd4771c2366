//! Backticks around an input.

/// The text inside of backticks: three, with or without the name of a language, or one.
pub(super) fn inside(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```") else {
        let single = text.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
        return single.filter(|inside| !inside.contains('`')).unwrap_or(text);
    };
    let is_language = |line: &str| line.chars().all(|c| c.is_alphanumeric());
    match inside.split_once('\n') {
        // A fence ends at the beginning of a line: in the middle of one it may be data.
        Some((first, rest)) if is_language(first.trim()) => {
            let rest = rest.split_once("\n```").map_or(rest, |(inside, _)| inside).trim_end();
            rest.strip_suffix("```").unwrap_or(rest)
        }
        Some(_) | None => {
            let inside = inside.rsplit_once("```").map_or(inside, |(inside, _)| inside);
            let inside = inside.strip_prefix("json").or_else(|| inside.strip_prefix("yaml")).unwrap_or(inside);
            inside.trim()
        }
    }
}
