//! Citations: the pages that support words of an analysis.
//!
//! Providers count the bytes of a piece from the beginning of a part of their answer, and the parts are not known here.
//! So a span counts only if its text is at its place; otherwise the text is searched for.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::references::distinct;
use super::{Grounding, Source, Support};

/// More citations are left out.
const MAX_CITATIONS: usize = 500;
const MAX_SOURCES: usize = 20;
/// The number of searches in the whole text, and the bytes that may always be searched.
const MAX_SEARCHES: usize = 16;
const MIN_SEARCHED_BYTES: usize = 4 * 1024 * 1024;

/// Words of the analysis, and the pages that support them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Citation {
    /// First byte in the analysis.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
    /// The words.
    pub text: String,
    /// The sources of the citation; at least one.
    pub sources: Vec<Source>,
}

/// The citations of `analysis` in their order. A support without a page, or whose text is not in the analysis, gives
/// none. Takes time in proportion to the length of its input.
pub fn citations(analysis: &str, groundings: &[Grounding]) -> Vec<Citation> {
    let mut places: BTreeMap<(usize, usize), Vec<Source>> = BTreeMap::new();
    let mut resolver = Resolver::new(analysis);
    for grounding in distinct(groundings) {
        for support in &grounding.supports {
            let sources = named(grounding, support);
            let Some(span) = (!sources.is_empty())
                .then(|| resolver.resolve(support))
                .flatten()
            else {
                continue;
            };
            if places.len() >= MAX_CITATIONS && !places.contains_key(&span) {
                continue;
            }
            let cited = places.entry(span).or_default();
            for source in sources {
                if cited.len() < MAX_SOURCES && !cited.contains(source) {
                    cited.push(source.clone());
                }
            }
        }
    }
    places
        .into_iter()
        .filter_map(|((start, end), sources)| {
            let text = analysis.get(start..end)?.to_owned();
            Some(Citation {
                start,
                end,
                text,
                sources,
            })
        })
        .collect()
}

/// The pages of a support; indices out of range are ignored.
fn named<'a>(grounding: &'a Grounding, support: &Support) -> Vec<&'a Source> {
    let indices = support.grounding_chunk_indices.iter().take(MAX_SOURCES);
    let sources = indices.filter_map(|index| grounding.sources.get(usize::try_from(*index).ok()?));
    sources.filter(|source| !source.is_blank()).collect()
}

struct Resolver<'a> {
    analysis: &'a str,
    /// Offset of the last part in the text, as far as it is known: only a hint.
    shift: i64,
    /// Bytes that may still be searched.
    left: usize,
    /// The last position of each text, with the index that the provider gave.
    found: HashMap<&'a str, Option<LastMatch>>,
}

#[derive(Clone, Copy)]
struct LastMatch {
    given: u32,
    start: usize,
}

impl<'a> Resolver<'a> {
    fn new(analysis: &'a str) -> Self {
        let left = analysis
            .len()
            .saturating_mul(MAX_SEARCHES)
            .saturating_add(MIN_SEARCHED_BYTES);
        Self {
            analysis,
            shift: 0,
            left,
            found: HashMap::new(),
        }
    }

    fn resolve(&mut self, support: &'a Support) -> Option<(usize, usize)> {
        let whole = support.text.as_str();
        let text = whole.trim();
        if text.is_empty() || text.len() > self.analysis.len() {
            return None;
        }
        let given = usize::try_from(support.start_index).ok()?;
        let end = usize::try_from(support.end_index).ok()?;
        if self.analysis.get(given..end) == Some(whole) {
            self.remember(text, support, given);
            return Some((given, end));
        }
        let hinted = i64::from(support.start_index).saturating_add(self.shift);
        let hinted = usize::try_from(hinted).unwrap_or_default();
        if self.stands_at(whole, hinted) {
            self.remember(text, support, hinted);
            return Some((hinted, hinted + whole.len()));
        }
        let start = match self.found.get(text).copied() {
            Some(None) => return None,
            Some(Some(before)) if before.given == support.start_index => before.start,
            // The same words again with a higher index: the next place, or the same if there is none.
            Some(Some(before)) if before.given < support.start_index => self
                .nearest(text, before.start + 1, hinted)
                .unwrap_or(before.start),
            Some(Some(_)) | None => match self.nearest(text, 0, hinted) {
                Some(start) => start,
                None => {
                    self.found.insert(text, None);
                    return None;
                }
            },
        };
        self.remember(text, support, start);
        Some((start, start + text.len()))
    }

    fn remember(&mut self, text: &'a str, support: &Support, start: usize) {
        let given = support.start_index;
        self.shift = i64::try_from(start).map_or(self.shift, |start| start - i64::from(given));
        self.found.insert(text, Some(LastMatch { given, start }));
    }

    fn stands_at(&self, text: &str, start: usize) -> bool {
        start
            .checked_add(text.len())
            .and_then(|end| self.analysis.get(start..end))
            == Some(text)
    }

    /// The place of `text` at or after `floor` that is nearest to `hint`.
    fn nearest(&mut self, text: &str, floor: usize, hint: usize) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        let floor = self.analysis.ceil_char_boundary(floor);
        // A hint after the end is useless: then the first place is taken.
        let hint = if hint.saturating_add(text.len()) > self.analysis.len() {
            floor
        } else {
            hint
        };
        let from = self.analysis.floor_char_boundary(hint.max(floor));
        let to = self
            .analysis
            .ceil_char_boundary(from.saturating_add(text.len()).saturating_sub(1));
        let before = self.analysis.get(floor..to).unwrap_or_default();
        let after = self.analysis.get(from..)?;

        let earlier = before.rfind(text);
        let later = after.find(text);
        let looked = earlier.map_or(before.len(), |at| before.len() - at)
            + later.map_or(after.len(), |at| at + text.len());
        self.left = self.left.saturating_sub(looked);
        let earlier = earlier.map(|at| at + floor);
        let later = later.map(|at| at + from);

        match (earlier, later) {
            (Some(earlier), Some(later)) if hint.abs_diff(earlier) <= later.abs_diff(hint) => {
                Some(earlier)
            }
            (earlier, later) => later.or(earlier),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(name: &str) -> Source {
        Source {
            uri: format!("https://{name}"),
            title: name.to_owned(),
        }
    }

    fn support(start: u32, end: u32, text: &str, indices: &[u32]) -> Support {
        let text = text.to_owned();
        let grounding_chunk_indices = indices.to_vec();

        Support {
            start_index: start,
            end_index: end,
            text,
            grounding_chunk_indices,
            ..Support::default()
        }
    }

    fn found(supports: Vec<Support>) -> Grounding {
        Grounding {
            sources: vec![source("a"), source("b")],
            supports,
            ..Grounding::default()
        }
    }

    fn cited(analysis: &str, supports: Vec<Support>) -> Vec<(usize, String, String)> {
        let found = citations(analysis, &[found(supports)]);
        found
            .iter()
            .map(|citation| (citation.start, citation.text.clone(), titles(citation)))
            .collect()
    }

    fn titles(citation: &Citation) -> String {
        citation
            .sources
            .iter()
            .map(|source| source.title.as_str())
            .collect()
    }

    fn one(start: usize, text: &str, sources: &str) -> (usize, String, String) {
        (start, text.to_owned(), sources.to_owned())
    }

    #[test]
    fn a_span_counts_where_its_text_stands_and_is_searched_for_elsewhere() {
        let analysis = "Exit 137 → killed — é. Raise the limit.";
        for (supports, expected) in [
            (
                vec![support(0, 26, "Exit 137 → killed — é", &[0])],
                vec![one(0, "Exit 137 → killed — é", "a")],
            ),
            // Bytes of a part that begins elsewhere, and an empty span.
            (
                vec![support(0, 15, "Raise the limit", &[1, 0])],
                vec![one(28, "Raise the limit", "ba")],
            ),
            (
                vec![support(0, 0, "killed", &[0])],
                vec![one(13, "killed", "a")],
            ),
            // In the middle of a character, after the end, backwards.
            (vec![support(10, 12, "→", &[0])], vec![one(9, "→", "a")]),
            (
                vec![support(900, 906, "killed", &[0])],
                vec![one(13, "killed", "a")],
            ),
            (
                vec![support(20, 3, "killed", &[0])],
                vec![one(13, "killed", "a")],
            ),
            // White space that the text does not have.
            (
                vec![support(28, 46, "Raise the limit.\n\n", &[0])],
                vec![one(28, "Raise the limit.", "a")],
            ),
            (
                vec![support(0, 4, "Exit", &[0]), support(0, 4, "Exit", &[1])],
                vec![one(0, "Exit", "ab")],
            ),
        ] {
            assert_eq!(cited(analysis, supports.clone()), expected, "{supports:?}");
        }
    }

    #[test]
    fn no_text_and_no_page_is_no_citation() {
        for supports in [
            vec![support(0, 4, "Exit", &[])],
            vec![support(0, 4, "Exit", &[2, u32::MAX])],
            vec![support(0, 4, "", &[0])],
            vec![support(0, 4, " \n", &[0])],
            vec![
                support(0, 7, "nowhere", &[0]),
                support(0, 7, "nowhere", &[1]),
            ],
        ] {
            assert_eq!(cited("Exit 137", supports.clone()), [], "{supports:?}");
        }
        assert_eq!(cited("", vec![support(0, 1, "x", &[0])]), []);
    }

    #[test]
    fn repeated_words_are_cited_in_their_order() {
        let analysis = "Restart it. Wait. Restart it. Done. Restart it.";
        let again = |start| support(start, start + 11, "Restart it.", &[0]);
        let places = |supports| {
            cited(analysis, supports)
                .into_iter()
                .map(|(start, ..)| start)
                .collect::<Vec<_>>()
        };
        assert_eq!(places(vec![again(0), again(18), again(36)]), [0, 18, 36]);
        // All offsets are off: the part begins 100 bytes before the text.
        assert_eq!(
            places(vec![again(100), again(118), again(136)]),
            [0, 18, 36]
        );
        assert_eq!(places(vec![again(20)]), [18]);
        // More pieces than places.
        assert_eq!(
            places(vec![again(100), again(118), again(136), again(154)]),
            [0, 18, 36]
        );
    }

    #[test]
    fn parts_that_begin_later_keep_their_distance() {
        let analysis = "First part: a b. Second part: a b.";
        let supports = vec![
            support(0, 11, "Second part", &[0]),
            support(13, 16, "a b", &[1]),
        ];
        assert_eq!(
            cited(analysis, supports),
            [one(17, "Second part", "a"), one(30, "a b", "b")]
        );
    }

    #[test]
    fn after_the_last_allowed_search_only_given_places_count() {
        let analysis = format!("{} end of it", "ab".repeat(64 * 1024));
        let searches = MAX_SEARCHES + MIN_SEARCHED_BYTES / analysis.len() + 1;
        let given = u32::try_from(analysis.len() - 2).unwrap();
        let behind = |count: usize| {
            let ends = [
                support(given, given + 2, "it", &[0]),
                support(0, 0, "end of", &[0]),
            ];
            cited(
                &analysis,
                (0..count)
                    .map(|n: usize| support(0, 9, &format!("nowhere {n}"), &[0]))
                    .chain(ends)
                    .collect(),
            )
            .len()
        };
        assert_eq!((behind(searches / 2), behind(searches)), (2, 1));
    }

    proptest! {
        #[test]
        fn every_citation_is_the_text_at_its_place(
            analysis in "[ab é→\n]{0,40}",
            supports in prop::collection::vec((0_u32..60, 0_u32..60, "[ab é→\n]{0,6}", prop::collection::vec(0_u32..4, 0..3)), 0..12),
        ) {
            let supports: Vec<_> = supports.iter().map(|(start, end, text, indices)| support(*start, *end, text, indices)).collect();
            let mut last = (0, 0);
            for citation in citations(&analysis, &[found(supports.clone())]) {
                prop_assert_eq!(analysis.get(citation.start..citation.end), Some(citation.text.as_str()));
                prop_assert!(supports.iter().any(|support| support.text.trim() == citation.text.trim()));
                prop_assert!(!citation.sources.is_empty() && last <= (citation.start, citation.end));
                last = (citation.start, citation.end);
            }
        }

        #[test]
        fn pieces_counted_in_parts_are_found_in_the_whole(
            parts in prop::collection::vec("[a-e é]{1,8}", 1..6),
        ) {
            let whole = parts.concat();
            let supports = parts.iter().map(|part| support(0, u32::try_from(part.len()).unwrap(), part, &[0]));
            let supports: Vec<_> = supports.filter(|support| !support.text.trim().is_empty()).collect();
            let expected = !supports.is_empty();
            prop_assert_eq!(!citations(&whole, &[found(supports)]).is_empty(), expected);
        }
    }
}
