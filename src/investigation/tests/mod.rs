//! Tests of whole executions, without ports.

mod flows;
mod fallback;
mod survival;
mod quoting;
