//! The ports of what people send and decide: their messages, the groups that a channel has to be asked for, the calls
//! that wait for them, their votes, and the record of verdicts.

mod approvals;
mod messages;
mod verdicts;
mod votes;

pub use approvals::*;
pub use messages::*;
pub use verdicts::*;
pub use votes::*;
