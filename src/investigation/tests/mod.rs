//! Tests of whole investigations, without a world.

mod flows;
mod survival;
mod quoting;
