//! Lists the samples of the built-in sources.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A folder for each built-in source of alerts.
const SOURCES: &str = "sources";

/// Writes the list of the samples of built-in sources, which `tarsy sources test` reads.
fn main() -> Result<(), Box<dyn std::error::Error>> {
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
                let source = name(&source);
                let incident = name(&incident);
                let file = name(&body);
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

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    entries.sort();
    Ok(entries)
}
