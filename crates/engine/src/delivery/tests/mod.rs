//! Tests of the delivery of messages.

mod dispatch;
mod inherit;
mod admit;
mod burst;
