//! Sources of an answer other than pages of the web: passages of documents, places on maps, and kinds to come.

use serde_json::{Map, Value};

use super::grounding::words;
use super::wire::{GroundingChunk, GroundingSupport as Support};
use crate::proto::{GroundingSupport, OtherSource};

/// The fields with the address of a source, the first that is there.
const URIS: [&str; 4] = ["uri", "sourceUri", "documentName", "placeId"];

/// Collects the sources other than pages, each with the words that cite it.
pub(super) fn collect(chunks: &[GroundingChunk], supports: &[Support]) -> Vec<OtherSource> {
    let other = chunks.iter().zip(0_i64..).filter_map(|(chunk, index)| {
        let (kind, fields) = chunk
            .other
            .iter()
            .find_map(|(kind, value)| Some((kind, value.as_object()?)))?;
        let supports = supports
            .iter()
            .filter_map(|support| naming(support, index))
            .collect();
        Some(OtherSource {
            supports,
            ..source(kind, fields)
        })
    });
    other.collect()
}

fn source(kind: &str, fields: &Map<String, Value>) -> OtherSource {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    OtherSource {
        kind: kind.to_owned(),
        uri: URIS.iter().find_map(|name| text(name)).unwrap_or_default(),
        title: text("title").unwrap_or_default(),
        text: text("text")
            .or_else(|| {
                fields
                    .get("ragChunk")?
                    .get("text")?
                    .as_str()
                    .map(str::to_owned)
            })
            .unwrap_or_default(),
        supports: Vec::new(),
    }
}

/// The words of a support that names the source of this index, with the score of this source.
fn naming(support: &Support, index: i64) -> Option<GroundingSupport> {
    let position = support
        .grounding_chunk_indices
        .as_ref()?
        .iter()
        .position(|named| *named == index)?;
    let scores = support.confidence_scores.as_ref();
    let score = scores.and_then(|scores| scores.get(position)).copied();
    let words = support.segment.as_ref().map(words).unwrap_or_default();
    Some(GroundingSupport {
        confidence_scores: score.into_iter().collect(),
        ..words
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::google::wire::GroundingMetadata;

    #[test]
    fn what_is_no_page_is_kept_with_its_kind_and_the_words_that_rest_on_it() {
        let read: GroundingMetadata = serde_json::from_str(
            r#"{"groundingChunks":[
                {"retrievedContext":{"uri":"gs://b/runbook.md","title":"Runbook","text":"Raise the limit.","ragChunk":{"text":"x"}}},
                {"web":{"uri":"https://a"}},
                {"retrievedContext":{"documentName":"projects/p","title":null,"ragChunk":{"text":"A passage"}}},
                {"maps":{"placeId":"places/1","title":"A place"}},{"web":null},{"newKind":7},{}],
                "groundingSupports":[
                {"segment":{"startIndex":1,"endIndex":5,"partIndex":2,"text":"Rais"},"groundingChunkIndices":[1,0],"confidenceScores":[0.5,0.25]},
                {"segment":{"text":"a"},"groundingChunkIndices":[3]},{"groundingChunkIndices":[-1,99]},{}]}"#,
        )
        .unwrap();
        let found = collect(
            &read.grounding_chunks.unwrap(),
            &read.grounding_supports.unwrap(),
        );
        let source = |kind: &str, uri: &str, title: &str, text: &str| OtherSource {
            kind: kind.into(),
            uri: uri.into(),
            title: title.into(),
            text: text.into(),
            supports: vec![],
        };
        let words = |text: &str| GroundingSupport {
            text: text.into(),
            ..GroundingSupport::default()
        };
        let support = GroundingSupport {
            start_index: 1,
            end_index: 5,
            confidence_scores: vec![0.25],
            part_index: 2,
            ..words("Rais")
        };
        let runbook = source(
            "retrievedContext",
            "gs://b/runbook.md",
            "Runbook",
            "Raise the limit.",
        );
        let expected = [
            OtherSource {
                supports: vec![support],
                ..runbook
            },
            source("retrievedContext", "projects/p", "", "A passage"),
            OtherSource {
                supports: vec![words("a")],
                ..source("maps", "places/1", "A place", "")
            },
        ];
        assert_eq!(found, expected);
    }
}
