//! Tests of whole executions, without ports.

mod flows;
mod survival;
mod quoting;
