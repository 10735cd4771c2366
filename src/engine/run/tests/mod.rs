//! Tests of a run: how it ends, what it survives, what the model and the timeline get.

mod chains;
mod citations;
mod endings;
mod strategies;
mod survival;
