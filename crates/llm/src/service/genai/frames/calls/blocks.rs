//! Calls as content blocks: Anthropic's Messages API, and the Converse API of Bedrock. A block has a beginning with the
//! name, pieces of the arguments and an end, all with its index.

use std::collections::BTreeSet;

use serde_json::Value;

use super::arguments::Arguments;
use super::{Called, LastCalls};
use crate::service::provider::fields::{kind, owned};

/// A block that has begun.
#[derive(Debug)]
struct Block {
    index: Option<u64>,
    id: String,
    name: String,
    /// Complete arguments in the first event, and not in pieces.
    input: Option<Value>,
    arguments: Arguments,
}

#[derive(Debug, Default)]
pub(in crate::service::genai::frames) struct Blocks {
    open: Vec<Block>,
    /// The indexes of blocks that are no calls of this request; a search of the provider has pieces of JSON, too.
    others: BTreeSet<Option<u64>>,
    complete: Vec<Called>,
    is_malformed: bool,
}

impl Blocks {
    pub(super) fn add(&mut self, event: &Value) {
        let index = event
            .get("index")
            .or_else(|| event.get("contentBlockIndex"))
            .and_then(Value::as_u64);
        match kind(event) {
            "content_block_start" => match event.get("content_block") {
                Some(block) if kind(block) == "tool_use" => self.begin(index, block, "id"),
                Some(_) | None => self.begin_other(index),
            },
            "content_block_delta" => self.add_piece(index, event.pointer("/delta/partial_json")),
            "content_block_stop" => self.end(index),
            // An event of Bedrock has its kind in a header.
            "" => self.add_converse(index, event),
            _ => {}
        }
    }

    /// An event of Bedrock, whose kind is not in its text.
    fn add_converse(&mut self, index: Option<u64>, event: &Value) {
        if let Some(start) = event.get("start") {
            match start.get("toolUse") {
                Some(tool) => self.begin(index, tool, "toolUseId"),
                None => self.begin_other(index),
            }
        } else if event.get("delta").is_some() {
            self.add_piece(index, event.pointer("/delta/toolUse/input"));
        } else if index.is_some() {
            self.end(index);
        }
    }

    fn begin(&mut self, index: Option<u64>, block: &Value, id: &str) {
        self.end_unfinished(index);
        self.others.remove(&index);
        let input = block
            .get("input")
            .filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
        self.open.push(Block {
            index,
            id: owned(block, id),
            name: owned(block, "name"),
            input: input.cloned(),
            arguments: Arguments::default(),
        });
    }

    fn begin_other(&mut self, index: Option<u64>) {
        self.end_unfinished(index);
        self.others.insert(index);
    }

    /// A block without an end, at whose index another one begins.
    fn end_unfinished(&mut self, index: Option<u64>) {
        while let Some(position) = self.open.iter().position(|block| block.index == index) {
            let block = self.open.remove(position);
            self.is_malformed |= !block.has_all();
            self.finish(block);
        }
    }

    fn add_piece(&mut self, index: Option<u64>, piece: Option<&Value>) {
        let piece = piece.and_then(Value::as_str).unwrap_or_default();
        if piece.is_empty() {
            return;
        }
        match self.open.iter_mut().rev().find(|block| block.is_at(index)) {
            Some(block) => block.arguments.push(piece),
            None => self.is_malformed |= !self.others.contains(&index),
        }
    }

    fn end(&mut self, index: Option<u64>) {
        if let Some(position) = self.open.iter().rposition(|block| block.is_at(index)) {
            let block = self.open.remove(position);
            self.finish(block);
        }
    }

    fn finish(&mut self, block: Block) {
        let called = block.into_call();
        self.is_malformed |= called.is_none();
        self.complete.extend(called);
    }

    pub(super) fn take_complete(&mut self) -> Vec<Called> {
        std::mem::take(&mut self.complete)
    }

    pub(super) fn into_last(mut self) -> LastCalls {
        for block in std::mem::take(&mut self.open) {
            // Without the end of the block, the arguments may be missing.
            self.is_malformed |= block.input.is_none() && block.arguments.is_blank();
            self.finish(block);
        }
        LastCalls {
            calls: self.complete,
            is_malformed: self.is_malformed,
        }
    }
}

impl Block {
    /// Whether an event with this index is about the block; one without an index is about the last block.
    fn is_at(&self, index: Option<u64>) -> bool {
        index.is_none() || self.index == index
    }

    fn has_all(&self) -> bool {
        self.arguments.is_whole() || (self.arguments.is_blank() && self.input.is_some())
    }

    /// `None` if it has no name, or two arguments.
    fn into_call(self) -> Option<Called> {
        let arguments = match self.input {
            Some(input) if self.arguments.is_blank() => input.to_string(),
            None => self.arguments.into_text(),
            Some(input) => {
                let text = self.arguments.into_text();
                let is_same =
                    serde_json::from_str::<Value>(&text).is_ok_and(|value| value == input);
                is_same.then_some(text)?
            }
        };
        (!self.name.is_empty()).then_some(Called {
            id: self.id,
            name: self.name,
            arguments,
        })
    }
}
