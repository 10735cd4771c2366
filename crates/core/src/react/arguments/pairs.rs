//! Parses keys and values in one line: `a: 1`, `a=1`, also several with commas between them. A part of a query is no
//! pair.

/// A key, its separator, and the text after the separator.
#[derive(Clone, Copy)]
struct Pair<'a> {
    key: &'a str,
    is_colon: bool,
    rest: &'a str,
}

impl Pair<'_> {
    /// A pair such as `a:1`
    fn is_touched(&self) -> bool {
        self.is_colon && !(self.rest.is_empty() || self.rest.starts_with(char::is_whitespace))
    }
}

/// The position of a possible pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The pair is at the beginning of a line.
    Start,
    /// The pair follows a comma.
    Behind,
    /// The pair follows a comma, and the first pair is written like `a:1`.
    BehindTouched,
}

/// The pairs of a line, in order. `None` when it does not begin with one.
pub(super) fn parse(line: &str) -> Option<Vec<(&str, &str)>> {
    if let Some(pairs) = assignments(line) {
        return Some(pairs);
    }
    let mut last = pair(line, Position::Start)?;
    // `host:db-3, port:80`
    let behind = if last.is_touched() {
        Position::BehindTouched
    } else {
        Position::Behind
    };
    let mut pairs = Vec::new();
    while let Some((value, next)) = next_pair(last.rest, behind) {
        pairs.push((last.key, value.trim()));
        last = next;
    }
    pairs.push((last.key, last.rest.trim()));
    Some(pairs)
}

/// `a = 1, b = 2`: only words, all in the same form. A line with any other text is part of a query.
fn assignments(line: &str) -> Option<Vec<(&str, &str)>> {
    if !line.contains(" = ") {
        return None;
    }
    line.split(',')
        .map(|part| {
            let (key, behind) = key(str::trim(part))?;
            let value = behind.strip_prefix(" = ")?.trim();
            (!value.is_empty()
                && value
                    .chars()
                    .all(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')))
            .then_some((key, value))
        })
        .collect()
}

/// Whether an item of a list is a mapping: a colon and white space follow its key.
pub(super) fn is_mapping(item: &str) -> bool {
    pair(item, Position::Start).is_some_and(|pair| pair.is_colon && !pair.is_touched())
}

/// The value up to a comma that another pair follows, and that pair. A comma in quotes or brackets belongs to the
/// value. So does one before `b=2` in a text of several words or in one that has such a form itself, as in
/// `UPDATE t SET a=1, b=2` and `app=web,env=prod`.
fn next_pair(text: &str, position: Position) -> Option<(&str, Pair<'_>)> {
    let mut quote = None;
    let mut depth = 0_usize;
    let mut last = ' ';
    let mut is_begun = false;
    let mut is_divisible = true;

    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"') => quote = Some(c),
            // An apostrophe inside of a word is one.
            (None, '\'') if !last.is_alphanumeric() => quote = Some(c),
            (None, '{' | '[' | '(') => depth += 1,
            (None, '}' | ']' | ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                let (value, behind) = text.split_at_checked(at)?;
                let next = behind
                    .strip_prefix(',')
                    .and_then(|behind| pair(behind.trim_start(), position));
                if let Some(next) = next.filter(|next| next.is_colon || is_divisible) {
                    return Some((value, next));
                }
            }
            (None, '=') if depth == 0 => is_divisible = false,
            (None, c) if depth == 0 && last.is_whitespace() && !c.is_whitespace() => {
                is_divisible &= !is_begun;
                is_begun = true;
            }
            (None, _) => {}
        }
        is_begun |= !c.is_whitespace();
        last = c;
    }
    None
}

/// A key, and the text after its separator, `:` or `=`. In the middle of a line the
/// separator has to be a plain one, so that a comma in a query or an address divides nothing.
fn pair(text: &str, position: Position) -> Option<Pair<'_>> {
    let (key, behind) = key(text)?;
    let spaced = behind.trim_start();
    let is_near = spaced.len() == behind.len();
    let rest = spaced.strip_prefix([':', '='])?;
    let is_colon = spaced.starts_with(':');
    let pair = Pair {
        key,
        is_colon,
        rest,
    };
    let is_separator = match position {
        _ if is_colon && !pair.is_touched() => true,
        Position::Start if is_colon => is_value(rest),
        Position::BehindTouched if is_colon => rest.starts_with(char::is_alphanumeric),
        Position::Behind if is_colon => false,
        _ if rest.starts_with(['=', '~', '>']) => false,
        Position::Start => is_near || !rest.contains(" = "),
        Position::Behind | Position::BehindTouched => is_near,
    };
    is_separator.then_some(pair)
}

/// A plain key, or any text in quotes.
fn key(text: &str) -> Option<(&str, &str)> {
    for quote in ['"', '\''] {
        if let Some((key, behind)) = text
            .strip_prefix(quote)
            .and_then(|text| text.split_once(quote))
        {
            return (!key.is_empty()).then_some((key, behind));
        }
    }
    let (key, behind) = text.split_at_checked(text.find(|c| !is_key_char(c))?)?;
    key.starts_with(|c: char| c.is_alphabetic() || c == '_')
        .then_some((key, behind))
}

fn is_key_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')
}

/// Whether the text directly after a colon is a value, as in `host:db-3`: not the rest of a URL (`http://x`), of a
/// path, of the name of a metric (`job:errors:rate5m`), of a query (`status:500 AND host:web`, `avg:cpu{host}`).
fn is_value(rest: &str) -> bool {
    if rest.starts_with(['{', '[']) {
        return true;
    }
    let first = rest.split_once(", ").map_or(rest, |(first, _)| first);
    let has_name_after_colon = first.match_indices(':').any(|(at, _)| {
        first
            .get(at + 1..)
            .is_some_and(|rest| rest.starts_with(char::is_alphabetic))
    });
    !rest.starts_with([':', '\\'])
        && !rest.starts_with("//")
        && !rest.contains(['{', '('])
        && !has_name_after_colon
}
