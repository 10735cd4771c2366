//! Reads the work of a provider from the payload of its `provider_data`.
//!
//! Each payload is a JSON list. Only named fields are read; everything else of a payload is skipped, and a field of
//! another type than expected counts as absent.

use serde_json::Value;

use super::work::Parsed;
use super::{anthropic, gemini, openai};

/// `None` for an unknown format, or a payload that is no list.
pub(super) fn parse(format: &str, payload: &[u8]) -> Option<Parsed> {
    let read: fn(&[Value]) -> Parsed = match format {
        "gemini.contents.v1" => gemini::parse,
        "anthropic.blocks.v1" => anthropic::parse,
        "openai.items.v1" => openai::parse,
        "openai.reasoning.v1" => openai::read_reasoning,
        _ => return None,
    };
    let items: Vec<Value> = serde_json::from_slice(payload).ok()?;
    Some(read(&items))
}
