//! The request of a model call, as a function of the state. The engine sends it, and [`rebuilt`] makes it again for
//! people, with the same function.

pub mod rebuilt;

use super::conversation::Message;
use super::decide::{ModelCall, Purpose};
use super::state::State;
use super::summaries::{LongResult, request};
use super::window::ToolBinding;
use crate::plan::{ProviderPlan, ToolSpec};

/// The body of a model request, without the ids of session and execution, and without its time-out.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestBody {
    /// The request within its execution: the number of the iteration; of a summary also that of the result's event.
    pub name: String,
    /// Whom to ask, and how.
    pub provider: ProviderPlan,
    /// The whole conversation.
    pub messages: Vec<Message>,
    /// The tools that the model may call; may be empty.
    pub tools: Vec<ToolSpec>,
    /// The tools that are declared and may not be called: those of earlier requests, in a conclusion.
    pub declared_tools: Vec<ToolSpec>,
    /// Whether the service forgets what it has cached for the execution: another provider has answered before.
    pub clear_cache: bool,
}

/// The request for the next step. `None`: the plan has no such provider.
pub fn of_step(state: &State, call: ModelCall) -> Option<RequestBody> {
    let mut provider = state.plan().providers.get(call.provider)?.clone();
    if state.was_cut_at_limit() {
        provider = provider.after_cut();
    }
    if call.purpose == Purpose::Conclusion {
        // A conclusion rests on what was found before.
        provider.native_tools.clear();
    }
    let mut tools = Vec::new();
    let mut declared_tools = Vec::new();
    match call.tools {
        ToolBinding::Bound => tools = state.offered_tools(),
        ToolBinding::Declared => declared_tools = state.offered_tools(),
        ToolBinding::Unbound => {}
    }
    Some(RequestBody {
        name: (state.iteration() + 1).to_string(),
        provider,
        messages: state.messages(),
        tools,
        declared_tools,
        clear_cache: call.is_taken_over,
    })
}

/// The request for a summary of `text`, the whole result. `None`: the plan has no summaries.
pub fn of_summary(state: &State, long: &LongResult, text: &str) -> Option<RequestBody> {
    let plan = state.plan();
    Some(RequestBody {
        name: format!("{}:summary:{}", state.iteration(), long.event),
        provider: plan.summaries.as_ref()?.provider.clone(),
        messages: request::messages(plan, state.entries(), long, text),
        tools: Vec::new(),
        declared_tools: Vec::new(),
        clear_cache: false,
    })
}
