//! One execution: its journal of entries, the state that they fold into, and what comes next.

pub mod entry;
pub mod state;
pub mod decide;
pub mod absorb;
pub mod conversation;
pub mod event_refs;
pub(crate) mod cited_events;
pub mod window;
mod repeats;
pub mod results;
pub mod unmasked;
pub mod recovery;
