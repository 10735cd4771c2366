//! Compiles the protocol with protox (no protoc needed) and watches the embedded migrations.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=migrations");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).open_file("llm/v1/llm_service.proto")?;
    // What reads the protocol's JSON needs no comments.
    compiler.include_source_info(false);
    let described = Path::new(&std::env::var("OUT_DIR")?).join("llm.v1.bin");
    std::fs::write(described, compiler.encode_file_descriptor_set())?;
    compiler.include_source_info(true);
    tonic_prost_build::configure().compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
