//! Compiles the protocol with protox: no protoc is needed.

use std::path::Path;

/// Of the repository.
const PROTO: &str = "../../proto";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed={PROTO}");
    let mut compiler = protox::Compiler::new([PROTO])?;
    compiler
        .include_imports(true)
        .open_file("llm/v1/llm_service.proto")?;
    // What reads the protocol's JSON needs no comments.
    compiler.include_source_info(false);
    let described = Path::new(&std::env::var("OUT_DIR")?).join("llm.v1.bin");
    std::fs::write(described, compiler.encode_file_descriptor_set())?;
    compiler.include_source_info(true);
    tonic_prost_build::configure()
        .codec_path("crate::codec::SmallBuffers")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
