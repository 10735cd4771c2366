//! Tests of the delivery of messages.

mod dispatch;
mod admit;
mod burst;
