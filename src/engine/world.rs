//! The world as one type parameter: which adapters a run talks to.

use std::fmt::Debug;
use std::sync::Arc;

use super::ports::{Feed, Journal, Model, Tools};

/// A choice of adapters. Made by a composition root, or of fakes by a test.
pub trait World: Debug + Send + Sync + 'static {
    /// The LLM service.
    type Model: Model + Debug;
    /// The MCP servers.
    type Tools: Tools + Debug;
    /// The store.
    type Journal: Journal + Debug;
    /// The broker.
    type Feed: Feed + Debug;
}

/// The adapters of a [`World`], shared by all runs of a process.
#[derive(Debug)]
pub struct Ports<W: World> {
    /// The LLM service.
    pub model: Arc<W::Model>,
    /// The MCP servers.
    pub tools: Arc<W::Tools>,
    /// The store.
    pub journal: Arc<W::Journal>,
    /// The broker.
    pub feed: Arc<W::Feed>,
}

impl<W: World> Clone for Ports<W> {
    fn clone(&self) -> Self {
        Self {
            model: Arc::clone(&self.model),
            tools: Arc::clone(&self.tools),
            journal: Arc::clone(&self.journal),
            feed: Arc::clone(&self.feed),
        }
    }
}
