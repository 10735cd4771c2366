//! The one binary of tarsy.

fn main() {}
