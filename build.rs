//! Compiles the protocol with protox (no protoc needed), watches the embedded migrations, lists the samples
//! of sources and names the build.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = "crates/core/src/sources/builtin";

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
    embed_samples()?;
    name_the_build()
}

/// Writes the list of the samples of built-in sources, which `tarsy sources test` reads.
fn embed_samples() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed={SOURCES}");
    let mut list = String::from("&[\n");
    for source in entries(&Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join(SOURCES))? {
        let samples = source.join("samples");
        for incident in if samples.is_dir() {
            entries(&samples)?
        } else {
            Vec::new()
        } {
            for body in entries(&incident)?
                .into_iter()
                .filter(|path| path.extension().is_some_and(|end| end == "json"))
            {
                let name = |path: &Path| {
                    path.file_name()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned()
                };
                let (source, incident, file) = (name(&source), name(&incident), name(&body));
                let expected = body.with_extension("expected.yaml");
                writeln!(
                    list,
                    "Embedded {{ source: {source:?}, incident: {incident:?}, file: {file:?}, \
                     body: include_bytes!({body:?}), expected: include_str!({expected:?}) }},"
                )?;
            }
        }
    }
    list.push_str("]\n");
    std::fs::write(
        Path::new(&std::env::var("OUT_DIR")?).join("samples.rs"),
        list,
    )?;
    Ok(())
}

fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    entries.sort();
    Ok(entries)
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
