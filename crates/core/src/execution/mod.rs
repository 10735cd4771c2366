//! An execution: its journal of entries, the state that folds them, and the next step.
//!
//! Order of the data: a state decides what to do next; a model's answer or a tool's result becomes entries; the entries
//! are stored and applied to the state; the state renders the next conversation for the model.

pub mod entry;
pub mod state;
pub mod approvals;
pub mod dispatch;
pub mod decide;
pub mod unmasked;
pub mod answers;
pub mod absorb;
pub mod fallback;
pub(crate) mod cited_events;
pub mod results;
pub mod summaries;
mod repeats;
pub mod recovery;
pub mod event_refs;
pub mod conversation;
pub mod blanked;
pub mod window;
pub mod request;
