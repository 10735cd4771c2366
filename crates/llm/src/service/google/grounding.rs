//! Converts the grounding of an answer: searches, pages, and the words that rest on them.
//!
//! Only pages of the web become sources. The indices of the others are removed from the supports, and those after them
//! are counted anew. Every other source is kept in a list of its own kind (`other_sources.rs`). Pages that the model
//! read by their address are added once.

use super::other_sources;
use super::wire::{GroundingMetadata, GroundingSupport as Support, Segment, UrlContextMetadata};
use crate::proto::{GroundingChunkInfo, GroundingDelta, GroundingSupport, UrlRetrieval};
use crate::service::provider::foreign::{FoundPage, ReadPage, Sources};

/// The number of sources of each kind that are kept for other providers.
const MAX_SOURCES: usize = 50;
/// Longer addresses and queries are not kept for other providers.
const MAX_SOURCE_BYTES: usize = 2_048;
const SUCCESS: &str = "URL_RETRIEVAL_STATUS_SUCCESS";

/// Converts the grounding metadata of an answer.
pub(super) fn convert(
    grounding: Option<GroundingMetadata>,
    pages: Option<UrlContextMetadata>,
) -> GroundingDelta {
    let GroundingMetadata {
        web_search_queries,
        search_entry_point,
        grounding_chunks,
        grounding_supports,
    } = grounding.unwrap_or_default();
    let mut sources = Vec::new();
    // The new index of each source; `None` for one that is not a page of the web.
    let mut indices: Vec<Option<i32>> = Vec::new();
    let chunks = grounding_chunks.unwrap_or_default();
    let supports = grounding_supports.unwrap_or_default();
    let other_sources = other_sources::collect(&chunks, &supports);
    for chunk in chunks {
        indices.push(
            chunk
                .web
                .as_ref()
                .and_then(|_web| i32::try_from(sources.len()).ok()),
        );
        sources.extend(chunk.web.map(|web| GroundingChunkInfo {
            uri: web.uri.unwrap_or_default(),
            title: web.title.unwrap_or_default(),
        }));
    }
    let grounding_supports = supports
        .into_iter()
        .filter_map(|support| renumbered(support, &indices))
        .collect();
    let url_retrievals = retrievals(pages);
    for UrlRetrieval { url, status } in &url_retrievals {
        if status == SUCCESS && !sources.iter().any(|source| source.uri == *url) {
            sources.push(GroundingChunkInfo {
                uri: url.clone(),
                title: url.clone(),
            });
        }
    }
    GroundingDelta {
        web_search_queries: web_search_queries.unwrap_or_default(),
        grounding_chunks: sources,
        grounding_supports,
        search_entry_point_html: search_entry_point
            .and_then(|entry| entry.rendered_content)
            .unwrap_or_default(),
        url_retrievals,
        other_sources,
    }
}

/// Whether the grounding has more than other sources and pages that were read by their address.
pub(super) fn has_sources(grounding: &GroundingDelta) -> bool {
    !grounding.web_search_queries.is_empty()
        || !grounding.grounding_chunks.is_empty()
        || !grounding.grounding_supports.is_empty()
        || !grounding.search_entry_point_html.is_empty()
}

/// The searches and pages, bounded, for the models of other providers.
pub(super) fn sources(grounding: &GroundingDelta) -> Sources {
    let is_short = |text: &str| text.len() <= MAX_SOURCE_BYTES;
    let read: Vec<ReadPage> = grounding
        .url_retrievals
        .iter()
        .filter(|page| is_short(&page.url) && is_short(&page.status))
        .map(|page| ReadPage {
            url: page.url.clone(),
            status: page.status.clone(),
        })
        .take(MAX_SOURCES)
        .collect();
    let found = grounding
        .grounding_chunks
        .iter()
        .filter(|source| {
            is_short(&source.uri)
                && is_short(&source.title)
                && !read.iter().any(|page| page.url == source.uri)
        })
        .map(|source| FoundPage {
            title: source.title.clone(),
            url: source.uri.clone(),
        })
        .take(MAX_SOURCES)
        .collect();
    let queries = grounding
        .web_search_queries
        .iter()
        .filter(|query| is_short(query));
    Sources {
        queries: queries.take(MAX_SOURCES).cloned().collect(),
        found,
        read,
    }
}

fn retrievals(pages: Option<UrlContextMetadata>) -> Vec<UrlRetrieval> {
    let pages = pages
        .and_then(|pages| pages.url_metadata)
        .unwrap_or_default();
    pages
        .into_iter()
        .filter_map(|page| {
            Some(UrlRetrieval {
                url: page.retrieved_url?,
                status: page.url_retrieval_status.unwrap_or_default(),
            })
        })
        .collect()
}

/// The support with the new indices; `None` if it had indices and none is left.
fn renumbered(support: Support, indices: &[Option<i32>]) -> Option<GroundingSupport> {
    let old = support.grounding_chunk_indices.unwrap_or_default();
    let scores = support.confidence_scores.unwrap_or_default();
    let mut grounding_chunk_indices = Vec::with_capacity(old.len());
    let mut confidence_scores = Vec::with_capacity(scores.len());
    for (position, index) in old.iter().enumerate() {
        let new = usize::try_from(*index)
            .ok()
            .and_then(|index| indices.get(index).copied().flatten());
        let Some(new) = new else { continue };
        grounding_chunk_indices.push(new);
        confidence_scores.extend(scores.get(position));
    }
    if grounding_chunk_indices.is_empty() && !old.is_empty() {
        return None;
    }
    let segment = support.segment.unwrap_or_default();
    Some(GroundingSupport {
        grounding_chunk_indices,
        confidence_scores,
        ..words(&segment)
    })
}

/// The words of a support, without their sources.
pub(super) fn words(segment: &Segment) -> GroundingSupport {
    let number = |index: Option<i64>| i32::try_from(index.unwrap_or_default()).unwrap_or_default();
    GroundingSupport {
        start_index: number(segment.start_index),
        end_index: number(segment.end_index),
        text: segment.text.clone().unwrap_or_default(),
        part_index: number(segment.part_index),
        ..GroundingSupport::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, title: &str) -> GroundingChunkInfo {
        GroundingChunkInfo {
            uri: uri.into(),
            title: title.into(),
        }
    }

    #[test]
    fn sources_that_are_no_pages_are_left_out_and_the_others_are_counted_anew() {
        let grounding = serde_json::from_str(
            r#"{"webSearchQueries":["q"],"searchEntryPoint":{"renderedContent":"<b>"},"groundingChunks":[
                {"retrievedContext":{"uri":"gs://x"}},{"web":{"uri":"https://a","title":"a"}},{"maps":{}},
                {"web":{"uri":"https://b"}}],"groundingSupports":[
                {"segment":{"endIndex":5,"text":"Hello"},"groundingChunkIndices":[0,1,3,9,-1],"confidenceScores":[0.1,0.5,0.25]},
                {"segment":{"partIndex":1,"startIndex":5,"endIndex":7,"text":"ab"},"groundingChunkIndices":[3]},
                {"segment":{"endIndex":1,"text":"x"},"groundingChunkIndices":[0,2]},
                {"groundingChunkIndices":null}]}"#,
        );
        let support = |start, end, text: &str, indices: &[i32]| GroundingSupport {
            start_index: start,
            end_index: end,
            text: text.into(),
            grounding_chunk_indices: indices.to_vec(),
            ..GroundingSupport::default()
        };
        let expected = GroundingDelta {
            web_search_queries: vec!["q".into()],
            grounding_chunks: vec![source("https://a", "a"), source("https://b", "")],
            grounding_supports: vec![
                GroundingSupport {
                    confidence_scores: vec![0.5, 0.25],
                    ..support(0, 5, "Hello", &[0, 1])
                },
                GroundingSupport {
                    part_index: 1,
                    ..support(5, 7, "ab", &[1])
                },
                support(0, 0, "", &[]),
            ],
            search_entry_point_html: "<b>".into(),
            url_retrievals: vec![],
            other_sources: vec![],
        };
        let found = convert(Some(grounding.unwrap()), None);
        assert_eq!(
            GroundingDelta {
                other_sources: vec![],
                ..found
            },
            expected
        );
        assert!(has_sources(&expected));
    }

    #[test]
    fn pages_that_were_read_become_sources_once_and_every_page_has_its_status() {
        let grounding = serde_json::from_str(
            r#"{"groundingChunks":[{"web":{"uri":"https://a","title":"A"}}]}"#,
        );
        let pages = |text| Some(serde_json::from_str(text).unwrap());
        let read = pages(
            r#"{"urlMetadata":[{"retrievedUrl":"https://a","urlRetrievalStatus":"URL_RETRIEVAL_STATUS_SUCCESS"},
                {"retrievedUrl":"https://b","urlRetrievalStatus":"URL_RETRIEVAL_STATUS_SUCCESS"},
                {"retrievedUrl":"https://c","urlRetrievalStatus":"URL_RETRIEVAL_STATUS_PAYWALL"},{"retrievedUrl":null}]}"#,
        );
        let found = convert(Some(grounding.unwrap()), read);
        assert_eq!(
            found.grounding_chunks,
            [source("https://a", "A"), source("https://b", "https://b")]
        );
        let statuses: Vec<_> = found
            .url_retrievals
            .iter()
            .map(|page| (page.url.as_str(), page.status.as_str()))
            .collect();
        let paywall = "URL_RETRIEVAL_STATUS_PAYWALL";
        assert_eq!(
            statuses,
            [
                ("https://a", SUCCESS),
                ("https://b", SUCCESS),
                ("https://c", paywall)
            ]
        );
        let failed = convert(
            None,
            pages(r#"{"urlMetadata":[{"retrievedUrl":"https://c"}]}"#),
        );
        assert!(!has_sources(&failed) && failed.url_retrievals.len() == 1);
    }
}
