//! The world outside: a provider and a tool server that are off in every way that was seen of real ones, at random.

mod provider;
mod shapes;
mod streams;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::support::tool_server::{Form, Performed, ToolServer};

/// The name of the tool server.
pub(super) const SERVER: &str = "odd";
/// A read-only tool of it.
pub(super) const LOOK: &str = "look";
/// A tool of it that changes something.
pub(super) const RESTART: &str = "restart";
/// Stands in every text that a model has ended by itself.
pub(super) const WHOLE: &str = "Do next: nothing.";
/// Stands in every part that was cut off, thought, or written as a call into a text.
pub(super) const GUESSED: &str = "GUESSED";

/// A call as the model wrote it, or as the server got it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OddCall {
    pub(super) tool: String,
    /// The alert, and the step of the conversation.
    pub(super) by: String,
    pub(super) step: i64,
}

impl OddCall {
    fn arguments(&self) -> Value {
        json!({"by": self.by, "step": self.step})
    }
}

/// The messages that the provider has sent.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Calls of which whole ones were in an answer that ended well.
    pub(super) calls: BTreeSet<OddCall>,
    /// The number of answers of each shape.
    pub(super) shapes: BTreeMap<&'static str, u32>,
}

/// The events at external systems.
#[derive(Clone, Debug, Default)]
pub(super) struct OddFacts {
    /// Calls of which whole ones were in an answer that ended well.
    pub(super) written: BTreeSet<OddCall>,
    /// The number of times that the tool server has performed each call.
    pub(super) performed: BTreeMap<OddCall, u32>,
    /// The number of answers of each shape.
    pub(super) shapes: BTreeMap<&'static str, u32>,
}

/// The two servers; they end with this value.
pub(super) struct OddWorld {
    said: Arc<Mutex<Said>>,
    provider_url: String,
    tools: Arc<ToolServer>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl OddWorld {
    pub(super) async fn start(seed: u64) -> Self {
        let said = Arc::<Mutex<Said>>::default();
        let (provider_url, provider) = provider::start(seed, Arc::clone(&said)).await;
        let tools = Arc::new(ToolServer::start(Form::Json).await);
        let restless = tokio::spawn(tools::misbehave(Arc::clone(&tools), seed));
        Self {
            said,
            provider_url,
            tools,
            _tasks: [provider, AbortOnDropHandle::new(restless)],
        }
    }

    /// The providers and the tool server of a configuration.
    pub(super) fn provider_section(&self) -> String {
        format!(
            "{{provider: vllm, model: odd, base_url: '{}/v1', first_chunk_timeout: 3s, stall_timeout: 1s}}",
            self.provider_url
        )
    }

    pub(super) fn server_section(&self) -> String {
        format!("{{url: '{}', allow: [{RESTART}]}}", self.tools.url())
    }

    pub(super) fn facts(&self) -> OddFacts {
        let mut performed = BTreeMap::new();
        for Performed { tool, arguments } in self.tools.calls() {
            let by = arguments["by"].as_str().unwrap_or_default().to_owned();
            let call = OddCall {
                tool,
                by,
                step: arguments["step"].as_i64().unwrap_or(-1),
            };
            *performed.entry(call).or_default() += 1;
        }
        let said = self.said.lock().unwrap();
        OddFacts {
            written: said.calls.clone(),
            performed,
            shapes: said.shapes.clone(),
        }
    }
}
