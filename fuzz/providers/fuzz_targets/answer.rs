//! Any bytes are the answer of a provider: it ends once, is bounded, and can be continued.
//!
//! The first byte selects the API. The properties are those of the test `provider_bytes`.
#![no_main]

#[path = "../../../tests/it/safety/provider_bytes/arena.rs"]
#[allow(dead_code, reason = "each target uses its half")]
mod arena;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

use self::arena::{APIS, Arena};

static ARENA: LazyLock<Arena> = LazyLock::new(Arena::start);

fuzz_target!(|bytes: &[u8]| {
    if let Some((api, rest)) = bytes.split_first() {
        ARENA.answer(APIS[usize::from(*api) % APIS.len()], rest);
    }
});
