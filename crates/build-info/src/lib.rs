//! The version and commit of this build, for `tarsy_build_info` and the web interface.

/// The version of tarsy.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit that was built, in hexadecimal, or `unknown`.
pub const COMMIT: &str = env!("TARSY_BUILD_COMMIT");
/// The version of the compiler.
pub const RUSTC: &str = env!("TARSY_BUILD_RUSTC");
