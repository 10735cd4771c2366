//! References: the searches, pages and other sources that support an answer, each once.

use std::collections::HashSet;

use super::{Grounding, OtherSource, Retrieval, Source, Support};

/// A search with what it found, or pages that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reference<'a> {
    /// The search queries; empty for pages that the provider read.
    pub queries: &'a [String],
    /// The pages that were found or read, possibly none; empty when the provider reports attempts to read only.
    pub sources: &'a [Source],
    /// The text that each of `sources` supports.
    pub supports: &'a [Support],
    /// Every attempt to read a page, if the provider reports them; empty for a search.
    pub retrievals: &'a [Retrieval],
    /// The sources other than pages of the web; without queries, those that were found without a web search.
    pub other_sources: &'a [OtherSource],
}

impl<'a> From<&'a Grounding> for Reference<'a> {
    fn from(grounding: &'a Grounding) -> Self {
        Self {
            queries: &grounding.queries,
            sources: &grounding.sources,
            supports: &grounding.supports,
            retrievals: &grounding.retrievals,
            other_sources: &grounding.other_sources,
        }
    }
}

/// The references of an answer's groundings, in their order.
///
/// A grounding with queries is a search, one with sources only is pages. The last sources of a search are pages that
/// were read beside it if their title is their address and no support names them: that is how a service appends them. A
/// grounding that is repeated, or extended by a later one, is returned once.
pub fn references(groundings: &[Grounding]) -> Vec<Reference<'_>> {
    distinct(groundings)
        .into_iter()
        .flat_map(references_of)
        .collect()
}

/// The groundings that are not empty, each once.
pub(super) fn distinct(groundings: &[Grounding]) -> Vec<&Grounding> {
    let mut seen = HashSet::new();
    let mut kept: Vec<&Grounding> = Vec::new();
    for grounding in groundings.iter().filter(|grounding| has_content(grounding)) {
        if !seen.insert(Reference::from(grounding)) {
            continue;
        }
        match kept.last_mut() {
            Some(last) if adds_to(grounding, last) => *last = grounding,
            Some(last) if adds_to(last, grounding) => {}
            Some(_) | None => kept.push(grounding),
        }
    }
    kept
}

/// Whether `later` has all of `earlier`.
fn adds_to(later: &Grounding, earlier: &Grounding) -> bool {
    has_queries(later) == has_queries(earlier)
        && later.queries.starts_with(&earlier.queries)
        && later.sources.starts_with(&earlier.sources)
        && later.supports.starts_with(&earlier.supports)
        && later.retrievals.starts_with(&earlier.retrievals)
        && later.other_sources.starts_with(&earlier.other_sources)
}

fn has_content(grounding: &Grounding) -> bool {
    has_queries(grounding)
        || has_sources(&grounding.sources)
        || !grounding.supports.is_empty()
        || !grounding.retrievals.is_empty()
        || !grounding.other_sources.is_empty()
}

fn has_queries(grounding: &Grounding) -> bool {
    grounding
        .queries
        .iter()
        .any(|query| !query.trim().is_empty())
}

fn has_sources(sources: &[Source]) -> bool {
    sources.iter().any(|source| !source.is_blank())
}

fn references_of(grounding: &Grounding) -> Vec<Reference<'_>> {
    let whole = Reference::from(grounding);
    let Reference {
        sources,
        retrievals,
        other_sources,
        ..
    } = whole;
    if !has_queries(grounding) {
        // Supports alone name no page.
        let has_pages = has_sources(sources) || !retrievals.is_empty() || !other_sources.is_empty();
        let pages = Reference {
            queries: &[],
            ..whole
        };
        return has_pages.then_some(pages).into_iter().collect();
    }
    let (found, read) = sources
        .split_at_checked(sources.len() - pages_behind(grounding))
        .unwrap_or((sources, &[]));
    let mut references = vec![Reference {
        sources: found,
        retrievals: &[],
        ..whole
    }];
    if has_sources(read) || !retrievals.is_empty() {
        references.push(Reference {
            queries: &[],
            sources: read,
            supports: &[],
            retrievals,
            other_sources: &[],
        });
    }
    references
}

/// The number of the last sources that are pages read in addition to the search.
fn pages_behind(grounding: &Grounding) -> usize {
    let named = grounding
        .supports
        .iter()
        .flat_map(|support| &support.grounding_chunk_indices);
    let found = named
        .filter_map(|index| usize::try_from(*index).ok())
        .filter(|index| *index < grounding.sources.len())
        .max()
        .map_or(0, |last| last + 1);
    let behind = grounding.sources.iter().skip(found).rev();
    behind
        .take_while(|source| !source.is_blank() && source.title == source.uri)
        .count()
}

impl Reference<'_> {
    /// The text for people, in one line.
    pub fn content(&self) -> String {
        let read = has_sources(self.sources).then(|| listed(self.sources));
        let parts: Vec<String> = read
            .into_iter()
            .chain(others(self.other_sources))
            .chain(not_read(self.retrievals))
            .collect();
        let found = if parts.is_empty() {
            String::new()
        } else {
            format!(" → {}", parts.join("; "))
        };
        if self.queries.is_empty() {
            return format!("URL Context{found}");
        }
        let queries = self.queries.iter().map(|query| flat(query));
        let queries: Vec<String> = queries
            .filter(|query| !query.is_empty())
            .map(|query| format!("'{query}'"))
            .collect();
        format!("Google Search: {}{found}", queries.join(", "))
    }
}

/// The sources that are no pages, each with its kind.
fn others(sources: &[OtherSource]) -> Option<String> {
    let sources: Vec<String> = sources
        .iter()
        .map(|source: &OtherSource| {
            let name = [&source.title, &source.uri]
                .into_iter()
                .map(|name| flat(name))
                .find(|name| !name.is_empty());
            name.map_or_else(
                || flat(&source.kind),
                |name| format!("{name} ({})", flat(&source.kind)),
            )
        })
        .filter(|source| !source.is_empty())
        .collect();
    (!sources.is_empty()).then(|| format!("Other sources: {}", sources.join(", ")))
}

/// The pages that could not be read, each with the reason.
fn not_read(retrievals: &[Retrieval]) -> Option<String> {
    let failed =
        |page: &Retrieval| Some(format!("{} ({})", flat(&page.url), flat(&page.failure()?)));
    let failed: Vec<String> = retrievals.iter().filter_map(failed).collect();
    (!failed.is_empty()).then(|| format!("Not read: {}", failed.join(", ")))
}

fn listed(sources: &[Source]) -> String {
    let sources: Vec<String> = sources
        .iter()
        .filter(|source| !source.is_blank())
        .map(
            |source: &Source| match (flat(&source.title), flat(&source.uri)) {
                (title, uri) if title.is_empty() => uri,
                (title, uri) if uri.is_empty() => title,
                (title, uri) => format!("{title} ({uri})"),
            },
        )
        .collect();
    format!("Sources: {}", sources.join(", "))
}

/// Removes line breaks and other control characters.
fn flat(text: &str) -> String {
    if text.contains(char::is_control) {
        let words = text
            .split(|c: char| c.is_control() || c.is_whitespace())
            .filter(|word| !word.is_empty());
        return words.collect::<Vec<_>>().join(" ");
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, title: &str) -> Source {
        Source {
            uri: uri.to_owned(),
            title: title.to_owned(),
        }
    }

    fn grounding(queries: &[&str], sources: &[(&str, &str)]) -> Grounding {
        Grounding {
            queries: queries.iter().map(|query| (*query).to_owned()).collect(),
            sources: sources
                .iter()
                .map(|(uri, title)| source(uri, title))
                .collect(),
            ..Grounding::default()
        }
    }

    fn contents(groundings: &[Grounding]) -> Vec<String> {
        references(groundings)
            .iter()
            .map(Reference::content)
            .collect()
    }

    #[test]
    fn queries_make_a_search_and_sources_alone_are_pages() {
        let supported = Grounding {
            supports: vec![Support::default()],
            ..Grounding::default()
        };
        for (groundings, expected) in [
            (vec![], vec![]),
            (vec![grounding(&[], &[])], vec![]),
            (vec![grounding(&[" "], &[("", "")])], vec![]),
            (
                vec![grounding(
                    &["jvm oom", "exit 137"],
                    &[("https://a/1", "a"), ("https://b/2", "")],
                )],
                vec![
                    "Google Search: 'jvm oom', 'exit 137' → Sources: a (https://a/1), https://b/2",
                ],
            ),
            (
                vec![grounding(&["only asked"], &[])],
                vec!["Google Search: 'only asked'"],
            ),
            (
                vec![grounding(&[""], &[("", "book")])],
                vec!["URL Context → Sources: book"],
            ),
            (vec![supported], vec![]),
            (
                vec![
                    grounding(&[], &[("https://a", "a"), ("", "")]),
                    grounding(&["q"], &[("https://b", "b")]),
                ],
                vec![
                    "URL Context → Sources: a (https://a)",
                    "Google Search: 'q' → Sources: b (https://b)",
                ],
            ),
        ] {
            assert_eq!(contents(&groundings), expected, "{groundings:?}");
        }
    }

    #[test]
    fn pages_that_were_not_read_are_listed_with_the_reason() {
        let page = |url: &str, status: &str| Retrieval {
            url: url.to_owned(),
            status: format!("URL_RETRIEVAL_STATUS_{status}"),
        };
        let retrievals = vec![
            page("https://a", "SUCCESS"),
            page("https://b", "PAYWALL"),
            page("https://c", "ERROR"),
        ];
        let with = |grounding: Grounding| Grounding {
            retrievals: retrievals.clone(),
            ..grounding
        };
        let failed = "Not read: https://b (paywall), https://c (error)";
        let read = with(grounding(&[], &[("https://a", "a")]));
        assert_eq!(
            contents(&[read]),
            [format!("URL Context → Sources: a (https://a); {failed}")]
        );
        assert_eq!(
            contents(&[with(Grounding::default())]),
            [format!("URL Context → {failed}")]
        );
        let searched = with(grounding(&["q"], &[("https://x", "x")]));
        let search = "Google Search: 'q' → Sources: x (https://x)".to_owned();
        assert_eq!(
            contents(&[searched]),
            [search, format!("URL Context → {failed}")]
        );
    }

    #[test]
    fn pages_that_were_read_beside_a_search_are_separate() {
        let page = ("https://docs/page", "https://docs/page");
        let mut both = grounding(&["q"], &[("https://a", "a"), page]);
        let search = "Google Search: 'q' → Sources: a (https://a)";
        let read = "URL Context → Sources: https://docs/page (https://docs/page)";
        assert_eq!(contents(std::slice::from_ref(&both)), [search, read]);
        assert_eq!(
            contents(&[grounding(&["q"], &[page])]),
            ["Google Search: 'q'", read]
        );
        // A source that text rests on was found: it is one of the search's own.
        both.supports = vec![Support {
            grounding_chunk_indices: vec![1, 9],
            ..Support::default()
        }];
        assert_eq!(
            contents(&[both]),
            [format!("{search}, https://docs/page (https://docs/page)")]
        );
    }

    #[test]
    fn a_repeated_grounding_is_returned_once_and_a_growing_one_in_its_last_form() {
        let small = grounding(&["q"], &[("https://a", "a")]);
        let large = grounding(&["q"], &[("https://a", "a"), ("https://b", "b")]);

        let other = grounding(&["other"], &[]);
        let grown = "Google Search: 'q' → Sources: a (https://a), b (https://b)";
        for (groundings, expected) in [
            (
                vec![small.clone(), small.clone()],
                vec!["Google Search: 'q' → Sources: a (https://a)"],
            ),
            (
                vec![small.clone(), large.clone(), small.clone()],
                vec![grown],
            ),
            (
                vec![large.clone(), small, other, large],
                vec![grown, "Google Search: 'other'"],
            ),
            (
                vec![
                    grounding(&[], &[("https://a", "a")]),
                    grounding(&["q"], &[("https://a", "a"), ("https://b", "b")]),
                ],
                vec!["URL Context → Sources: a (https://a)", grown],
            ),
        ] {
            assert_eq!(contents(&groundings), expected, "{groundings:?}");
        }
    }

    #[test]
    fn a_title_stays_in_its_line() {
        let sources = [("https://a", "two\r\n lines\u{1b}[31m")];
        assert_eq!(
            contents(&[grounding(&["a\nb"], &sources)]),
            ["Google Search: 'a b' → Sources: two lines [31m (https://a)"]
        );
    }
}
