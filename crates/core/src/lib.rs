//! The core: the state of an investigation and its next step. Pure: no async, no I/O, no clock, no randomness.
//!
//! [`vocabulary`] has the words that crates share.
//!
//! The modules follow the life of an alert. [`intake`] decodes it with the declared [`sources`], [`tarsy_mask`] removes
//! its secrets, and a frozen [`plan`] with its prompts is made for it; [`clock`] has the times that they state. Each
//! [`execution`] is a fold over the entries of its journal. [`tool_names`] has the names by which a model calls its
//! tools. [`reasoning`] takes a model's reasoning out of its text,
//! [`react`] parses calls that a model writes as text, [`text_calls`] finds those that its server should have read,
//! [`native`] reads what the tools of a provider did. [`chain`] joins executions to stages and a session; [`timeline`]
//! projects the journals to events for people. [`search`] makes the words by which a session is found; [`past`]
//! shows earlier ones to a model. [`follow_up`] plans a question about a finished investigation; a [`notification`]
//! reports one to a chat or a program.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

pub mod vocabulary;
pub mod ids;
pub mod trace_context;
pub mod alert;
pub mod approvals;
pub mod alert_update;
pub mod visible;
pub mod readable;
pub mod public_url;
pub mod sources;
pub mod intake;
pub mod routing;
pub mod clock;
pub mod figures;
pub mod skills;
pub mod plan;
pub mod runbook;
mod tool_descriptions;
pub mod tool_names;
pub mod prompt;
pub mod missing_tools;
pub mod execution;
pub mod read_result;
pub mod load_skill;
pub mod skill_sections;
pub mod sub_agents;
pub mod built_in;
mod code;
pub mod reasoning;
pub mod react;
pub mod text_calls;
pub mod native;
pub mod chain;
pub mod summary;
pub mod review;
pub mod search;
pub mod past;
pub mod notification;
pub mod timeline;
pub mod projection;
pub mod verdicts;
pub mod follow_up;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "the tests of this crate use the rest")
)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "a test fails by panicking"
)]
pub mod testing;
#[cfg(test)]
mod tests;
