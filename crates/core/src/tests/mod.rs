//! Tests of whole executions, without ports.

mod flows;
mod cut_answers;
mod answer_check;
mod asked_once;
mod fallback;
mod refused_tools;
mod survival;
mod approvals;
mod rebuilt_requests;
mod prefixes;
mod skills;
mod quoting;
mod presented;
mod named_tools;
mod several_actions;
