//! A [`Model`] that masks the secrets in every text of a model, its provider or the provider's tools.
//!
//! Three things stay unmasked. The provider's own form of an answer ([`Answer::provider_data`]) has to return to the
//! provider byte for byte. The arguments of calls, and the text that may contain a call, are kept in memory until the
//! calls are sent ([`Unmasked`]); they are stored and shown masked.

use parking_lot::Mutex;
use std::borrow::Cow;

use serde_json::Value;

use crate::ports::{Model, ModelError, ModelRequest, ProviderFailure};
use tarsy_core::execution::entry::{Answer, RefusedTool, ToolCall, Unmasked};
use tarsy_core::native::{CodePart, Grounding, OtherSource, Retrieval, Source, Support};
use tarsy_core::timeline::DeltaKind;
use tarsy_mask::{Mask, StreamMask};

/// A model whose answers are masked.
#[derive(Clone, Debug)]
pub struct Masked<M> {
    model: M,
    mask: Mask,
}

impl<M> Masked<M> {
    pub fn new(model: M, mask: Mask) -> Self {
        Self { model, mask }
    }
}

impl<M: Model> Model for Masked<M> {
    async fn generate(
        &self,
        request: ModelRequest,
        deltas: impl Fn(DeltaKind, &str) + Send + Sync,
    ) -> Result<Answer, ModelError> {
        let stream = || Mutex::new(StreamMask::new(self.mask.clone()));
        let live = Live {
            text: stream(),
            thinking: stream(),
        };
        let answer = self
            .model
            .generate(request, |kind, piece| live.push(kind, piece, &deltas))
            .await;
        match answer {
            Ok(answer) => {
                live.finish(&deltas);
                Ok(masked(&self.mask, answer))
            }
            // The rest of a failed answer is dropped: it may be a part of a secret.
            Err(error) => Err(masked_error(&self.mask, error)),
        }
    }

    async fn serving(&self) -> bool {
        self.model.serving().await
    }
}

/// The masks of one answer's streams while it arrives.
struct Live {
    text: Mutex<StreamMask>,
    thinking: Mutex<StreamMask>,
}

impl Live {
    /// Emits the piece under the lock, so that the pieces of one text keep their order.
    fn push(
        &self,
        kind: DeltaKind,
        piece: &str,
        deltas: &(impl Fn(DeltaKind, &str) + Send + Sync),
    ) {
        let stream = match kind {
            DeltaKind::Thinking => &self.thinking,
            DeltaKind::Text | DeltaKind::Raw => &self.text,
        };
        let mut stream = stream.lock();
        let shown = stream.push(piece);
        if !shown.is_empty() {
            deltas(kind, &shown);
        }
    }

    fn finish(self, deltas: &(impl Fn(DeltaKind, &str) + Send + Sync)) {
        for (kind, stream) in [
            (DeltaKind::Thinking, self.thinking),
            (DeltaKind::Text, self.text),
        ] {
            let rest = stream.into_inner().finish();
            if !rest.is_empty() {
                deltas(kind, &rest);
            }
        }
    }
}

/// The masked answer, which also holds the unmasked text and calls if they differ.
fn masked(mask: &Mask, answer: Answer) -> Answer {
    let text = |text: String| masked_text(mask, text);
    let calls: Vec<ToolCall> = answer
        .calls
        .iter()
        .map(|call| ToolCall {
            tool: text(call.tool.clone()),
            arguments: masked_arguments(mask, &call.arguments).into_owned(),
            ..call.clone()
        })
        .collect();
    let shown = text(answer.text.clone());
    let differs = shown != answer.text
        || calls
            .iter()
            .zip(&answer.calls)
            .any(|(one, other)| one != other);
    let unmasked = differs.then(|| {
        Box::new(Unmasked {
            text: answer.text,
            calls: answer.calls,
        })
    });
    Answer {
        text: shown,
        thinking: text(answer.thinking),
        calls,
        code_executions: answer
            .code_executions
            .into_iter()
            .map(|part| code(mask, part))
            .collect(),
        groundings: answer
            .groundings
            .into_iter()
            .map(|found| grounding(mask, found))
            .collect(),
        refused_tools: answer
            .refused_tools
            .into_iter()
            .map(|refused| refused_tool(mask, refused))
            .collect(),
        unmasked,
        ..answer
    }
}

fn refused_tool(mask: &Mask, refused: RefusedTool) -> RefusedTool {
    RefusedTool {
        reason: masked_text(mask, refused.reason),
        ..refused
    }
}

fn masked_text(mask: &Mask, text: String) -> String {
    match mask.apply(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(masked) => masked,
    }
}

/// A JSON object stays one, because the tool client parses it again.
fn masked_arguments<'a>(mask: &Mask, arguments: &'a str) -> Cow<'a, str> {
    let Ok(value) = serde_json::from_str::<Value>(arguments) else {
        return mask.apply(arguments);
    };
    let masked = mask.json(&value);
    if masked == value {
        Cow::Borrowed(arguments)
    } else {
        Cow::Owned(masked.to_string())
    }
}

fn masked_error(mask: &Mask, error: ModelError) -> ModelError {
    let text = |text: String| masked_text(mask, text);
    match error {
        ModelError::Unavailable(message) => ModelError::Unavailable(text(message)),
        ModelError::Broke(message) => ModelError::Broke(text(message)),
        ModelError::Failed {
            code,
            message,
            timeout,
            provider,
        } => {
            let provider = ProviderFailure {
                status: text(provider.status),
                ..provider
            };
            ModelError::Failed {
                code: text(code),
                message: text(message),
                timeout,
                provider,
            }
        }
    }
}

fn code(mask: &Mask, part: CodePart) -> CodePart {
    let text = |text: String| masked_text(mask, text);
    CodePart {
        code: text(part.code),
        result: text(part.result),
        outcome: text(part.outcome),
        language: text(part.language),
        id: part.id,
    }
}

/// The offsets stay unchanged: a span whose text is not at its offset is searched for.
fn grounding(mask: &Mask, found: Grounding) -> Grounding {
    let text = |text: String| masked_text(mask, text);
    let support = |support: Support| Support {
        text: text(support.text),
        ..support
    };
    let sources = found.sources.into_iter().map(|source| Source {
        uri: text(source.uri),
        title: text(source.title),
    });
    let retrievals = found.retrievals.into_iter().map(|page| Retrieval {
        url: text(page.url),
        status: text(page.status),
    });
    let other_sources = found.other_sources.into_iter().map(|source| OtherSource {
        kind: text(source.kind),
        uri: text(source.uri),
        title: text(source.title),
        text: text(source.text),
        supports: source.supports.into_iter().map(support).collect(),
    });
    Grounding {
        queries: found.queries.into_iter().map(text).collect(),
        sources: sources.collect(),
        supports: found.supports.into_iter().map(support).collect(),
        retrievals: retrievals.collect(),
        other_sources: other_sources.collect(),
        search_widget: text(found.search_widget),
    }
}

#[cfg(test)]
mod tests;
