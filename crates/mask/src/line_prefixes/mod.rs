//! Views of the lines around names of secrets without the prefixes of logs: time, level, host, pod, container, file.
//!
//! A prefix hides the structure of the lines after it. The lines of a source have the same prefix but for times,
//! levels and numbers, so that the lines of each source are one text, also between those of others. A line without a
//! prefix continues the source of the line before it.

mod elements;

use std::iter::once;

use super::bytes::{part, rest};
use super::decoded_view::DecodedView;
use super::spans::Span;
use elements::{LinePosition, Prefix};

/// The lines that are read before and after a name without a value: structure may stand there.
const LINES_AROUND_OPENING: Reach = Reach {
    before: 100,
    after: 400,
};
/// The lines that are read around any other name.
const LINES_AROUND_PAIR: Reach = Reach {
    before: 0,
    after: 8,
};
/// The limit of bytes that are read in each direction.
const MAX_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug)]
struct Reach {
    before: usize,
    after: usize,
}

/// A decoded text whose lines are read as the lines of one log.
#[derive(Debug)]
struct LineSource {
    identity: u64,
    view: DecodedView,
    /// A prefix of at least one line is left out.
    is_stripped: bool,
}

/// The views of the lines around these offsets of names, which are in order, for each source of lines. None if no line
/// there has a prefix.
pub(super) fn views(text: &str, names: &[usize]) -> Vec<DecodedView> {
    if names.is_empty() {
        return Vec::new();
    }
    let lines = Lines::split(text);
    let mut views = Vec::new();
    let mut regions = names
        .iter()
        .map(|name| lines.region(text, *name))
        .peekable();
    while let Some(Span { start, mut end }) = regions.next() {
        // Regions that touch are one, so that no line is read twice.
        while let Some(next) = regions.next_if(|next| next.start <= end) {
            end = end.max(next.end);
        }
        views.extend(sources(text, start, end));
    }
    views
}

/// The lines of a text.
struct Lines {
    /// The start of each line, and the end of the text.
    bounds: Vec<usize>,
}

impl Lines {
    fn split(text: &str) -> Self {
        let ends = text
            .match_indices('\n')
            .map(|(at, _)| at + 1)
            .filter(|end| *end < text.len());
        Self {
            bounds: once(0).chain(ends).chain(once(text.len())).collect(),
        }
    }

    /// The lines that may belong to a name.
    fn region(&self, text: &str, name: usize) -> Span {
        let reach = if is_opening(text, name) {
            LINES_AROUND_OPENING
        } else {
            LINES_AROUND_PAIR
        };
        let line = self
            .bounds
            .partition_point(|start| *start <= name)
            .saturating_sub(1);
        let bound = |line: usize| self.bounds.get(line).copied().unwrap_or(text.len());
        let before = (line.saturating_sub(reach.before)..=line)
            .find(|line| bound(*line) + MAX_BYTES >= name);
        let after = (line + 1..=line + 1 + reach.after)
            .rev()
            .find(|line| bound(*line) <= name + MAX_BYTES);
        Span::new(
            bound(before.unwrap_or(line)),
            bound(after.unwrap_or(line + 1)),
        )
    }
}

/// Whether the line ends after this name, but for signs: `password:`, `kind: Secret`, `"auths": {`.
fn is_opening(text: &str, name: usize) -> bool {
    let near = text
        .as_bytes()
        .get(name..text.len().min(name + 256))
        .unwrap_or_default();
    let line = near
        .split(|b| matches!(b, b'\n' | b'\r'))
        .next()
        .unwrap_or_default();
    let word = line
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || b"_-.".contains(b))
        .count();
    line.iter().skip(word).all(|b| b":=|>+-{[\"', ".contains(b))
}

fn sources(text: &str, start: usize, end: usize) -> Vec<DecodedView> {
    let mut sources: Vec<LineSource> = Vec::new();
    let mut current = 0;
    let mut at = start;
    for line in part(text, start, end).split_inclusive('\n') {
        let position = if at == 0 {
            LinePosition::First
        } else {
            LinePosition::Later
        };
        let prefix = Prefix::new(line, position);
        if prefix.length > 0 || sources.is_empty() {
            current = source(&mut sources, prefix);
        }
        if let Some(source) = sources.get_mut(current) {
            source.is_stripped |= prefix.length > 0;
            let content = rest(line, prefix.length);
            source.view.copied(content, at + prefix.length);
        }
        at += line.len();
    }
    sources
        .into_iter()
        .filter(|source| source.is_stripped)
        .map(|source| source.view)
        .collect()
}

/// The index of the source with this prefix.
fn source(sources: &mut Vec<LineSource>, prefix: Prefix) -> usize {
    let identity = prefix.identity;
    // The newest ones first: lines of the same source often follow each other.
    if let Some(index) = sources
        .iter()
        .rposition(|source| source.identity == identity)
    {
        return index;
    }
    if sources.len() >= MAX_SOURCES {
        return sources.len() - 1;
    }
    sources.push(LineSource {
        identity,
        view: DecodedView::default(),
        is_stripped: false,
    });
    sources.len() - 1
}

/// More sources among the lines of one region are read as one.
const MAX_SOURCES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, name: &str) -> Vec<String> {
        let names: Vec<usize> = text.match_indices(name).map(|(at, _)| at).collect();
        views(text, &names)
            .into_iter()
            .map(|view| view.text)
            .collect()
    }

    #[test]
    fn the_lines_of_each_source_are_one_text_without_their_prefixes() {
        for text in [
            "web-1  | password:\nweb-2  | ready\nweb-1  |   hunter2\n",
            "[pod/web-1/app] password:\n[pod/web-2/app] ready\n[pod/web-1/app]   hunter2\n",
            "web-7d9f-x1 app password:\nweb-7d9f-x2 app ready\nweb-7d9f-x1 app   hunter2\n",
            "Nov 22 10:00:01 host-a shop[17]: password:\nNov 22 10:00:01 host-b shop[18]: ready\nNov 22 10:00:02 host-a \
             shop[17]:   hunter2\n",
            "etc/a.yaml:7:password:\netc/b.yaml:1:ready\netc/a.yaml:8:  hunter2\n",
        ] {
            assert_eq!(
                shown(text, "password"),
                ["password:\n  hunter2\n", "ready\n"],
                "{text}"
            );
        }
        for text in [
            "2026-01-02T03:04:05.678Z password:\n2026-01-02T03:04:05.9Z   hunter2\n",
            "2026-01-02 03:04:05,678 INFO password:\n2026-01-02 03:04:05,679 WARN   hunter2\n",
            "2026-01-02T03:04:05Z stdout F password:\n2026-01-02T03:04:05Z stdout F   hunter2\n",
            "<14>1 2026-01-02T03:04:05Z shop-1 shop[17]: password:\n<14>1 2026-01-02T03:04:05Z shop-1 shop[17]:   hunter2\n",
            "     9\tpassword:\n    10\t  hunter2\n",
            "9:password:\n10:  hunter2\n",
            "> password:\n>   hunter2\n",
            "Echo: password:\n  hunter2\n",
            "[info] password:\n  hunter2\n",
        ] {
            assert_eq!(
                shown(text, "password"),
                ["password:\n  hunter2\n"],
                "{text}"
            );
        }
    }

    #[test]
    fn lines_without_a_prefix_have_no_view() {
        for text in [
            "password:\n  hunter2\n",
            "- name: password\n  value: x\n",
            "a password: x",
            "db-password: x",
        ] {
            assert_eq!(shown(text, "password"), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn only_the_lines_near_a_name_are_read() {
        let many = "10:00:00 x\n".repeat(1_000);
        let text = format!("{many}10:00:00 password=x\n{many}");
        assert_eq!(
            shown(&text, "password"),
            [format!("password=x\n{}", "x\n".repeat(8))]
        );
        let text = format!("{many}10:00:00 password:\n{many}");
        assert_eq!(
            shown(&text, "password"),
            [format!(
                "{}password:\n{}",
                "x\n".repeat(100),
                "x\n".repeat(400)
            )]
        );
    }
}
