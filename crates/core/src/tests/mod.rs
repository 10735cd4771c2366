//! Tests of whole executions, without ports.

mod flows;
mod cut_answers;
mod answer_check;
mod fallback;
mod refused_tools;
mod survival;
mod rebuilt_requests;
mod quoting;
mod presented;
