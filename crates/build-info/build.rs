//! Names the build.

use std::process::Command;

/// Sets the variables that `tarsy_build_info` reads. The commit comes from `TARSY_COMMIT` alone: a build that asked git
/// would start again at each commit, and would need git where an image is built.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-env-changed=TARSY_COMMIT");
    let commit = std::env::var("TARSY_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty());
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    if commit != "unknown" && !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!(
            "TARSY_COMMIT is {commit:?}, and has to be the hexadecimal id of a commit"
        )
        .into());
    }
    println!("cargo:rustc-env=TARSY_BUILD_COMMIT={commit}");
    // `rustc 1.95.0 (0123456789 2026-01-01)`; cargo runs this script again when the compiler changes.
    let answer = Command::new(std::env::var("RUSTC")?)
        .arg("--version")
        .output()?;
    let answer = String::from_utf8(answer.stdout)?;
    let version = answer.split_whitespace().nth(1).unwrap_or("unknown");
    println!("cargo:rustc-env=TARSY_BUILD_RUSTC={version}");
    Ok(())
}
