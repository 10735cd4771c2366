//! Connections of a listener: how many there may be, in all and from one address. Owns no socket and knows no protocol.
//!
//! A connection that has not asked for anything yet costs its client nothing. So where there are too many, the one that has
//! waited longest gives its seat up to the next, and honest clients are served beside any number of silent ones.

mod seats;

pub use seats::{Busy, Limits, Seat, Seats};
