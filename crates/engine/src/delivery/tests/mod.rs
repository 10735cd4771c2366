//! Tests of the delivery of messages.

mod dispatch;
mod inherit;
mod parked;
mod admit;
mod burst;
