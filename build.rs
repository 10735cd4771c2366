//! Compiles the protocol with protox (no protoc needed), watches the embedded migrations and names the build.

use std::path::Path;
use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=migrations");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler
        .include_imports(true)
        .open_file("llm/v1/llm_service.proto")?;
    // What reads the protocol's JSON needs no comments.
    compiler.include_source_info(false);
    let described = Path::new(&std::env::var("OUT_DIR")?).join("llm.v1.bin");
    std::fs::write(described, compiler.encode_file_descriptor_set())?;
    compiler.include_source_info(true);
    tonic_prost_build::configure()
        .codec_path("crate::llm::codec::SmallBuffers")
        .compile_fds(compiler.file_descriptor_set())?;
    name_the_build()
}

/// Sets the variables that `tarsy_build_info` reads. The commit comes from `TARSY_COMMIT` alone: a build that asked git
/// would start again at each commit, and would need git where an image is built.
fn name_the_build() -> Result<(), Box<dyn std::error::Error>> {
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
