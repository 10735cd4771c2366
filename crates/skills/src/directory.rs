//! A directory of skills: its files, unread names skipped, no file beyond it.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The longest text of a skill with its front matter.
pub(crate) const MAX_SKILL_BYTES: u64 = 64 * 1024;
/// The files of `references/` have this many bytes together.
pub(crate) const MAX_FILES_BYTES: u64 = 256 * 1024;
/// Files of `references/`.
pub(crate) const MAX_FILES: usize = 32;
/// The depth of folders below `references/`.
const MAX_DEPTH: usize = 4;
const SKILL_FILE: &str = "SKILL.md";
const REFERENCES: &str = "references";

/// The files of a skill as they were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The name of its folder, or of its file without `.md`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The text, or the reason why it cannot be read.
    pub(crate) text: Result<String, String>,
    /// The files of `references/`, by their paths in it.
    pub(crate) files: Vec<FoundFile>,
    /// The reasons why a file is left out.
    pub(crate) file_faults: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The skills of a directory by their names.
///
/// # Errors
/// The reason why the directory cannot be read.
pub(crate) fn found(directory: &Path) -> Result<Vec<Found>, String> {
    let root = fs::canonicalize(directory).map_err(|error| error.to_string())?;
    let mut skills = Vec::new();
    for path in sorted(&root).map_err(|error| error.to_string())? {
        skills.extend(skill(&root, &path));
    }
    Ok(skills)
}

/// The paths in a folder in the order of their names, without hidden ones: a mounted `ConfigMap` has `..data`.
fn sorted(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// The skill at a path; `None` for anything else.
fn skill(root: &Path, path: &Path) -> Option<Found> {
    if path.is_dir() {
        let file = path.join(SKILL_FILE);
        if !file.exists() {
            return None;
        }
        let mut found = Found {
            name: file_name(path),
            text: text(root, &file, MAX_SKILL_BYTES),
            path: file,
            files: Vec::new(),
            file_faults: Vec::new(),
        };
        let references = path.join(REFERENCES);
        if references.is_dir() {
            add_files(root, &references, &mut found);
        }
        return Some(found);
    }
    let name = file_name(path);
    let name = name.strip_suffix(".md")?;
    if name.eq_ignore_ascii_case("readme") {
        return None;
    }
    Some(Found {
        name: name.to_owned(),
        path: path.to_owned(),
        text: text(root, path, MAX_SKILL_BYTES),
        files: Vec::new(),
        file_faults: Vec::new(),
    })
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Adds the texts below `references/`, as far as they are within the limits.
fn add_files(root: &Path, references: &Path, found: &mut Found) {
    let mut folders = vec![references.to_owned()];
    let mut left = MAX_FILES_BYTES;
    while let Some(folder) = folders.pop() {
        let Ok(paths) = sorted(&folder) else { continue };
        for path in paths {
            let relative = path.strip_prefix(references).unwrap_or(&path);
            if path.is_dir() {
                if relative.components().count() < MAX_DEPTH && is_within(root, &path) {
                    folders.push(path);
                }
                continue;
            }
            let shown = relative.to_string_lossy().into_owned();
            if found.files.len() >= MAX_FILES {
                found
                    .file_faults
                    .push(format!("{shown}: a skill has at most {MAX_FILES} files"));
                continue;
            }
            match text(root, &path, left) {
                Ok(text) => {
                    left = left.saturating_sub(u64::try_from(text.len()).unwrap_or(u64::MAX));
                    found.files.push(FoundFile { path: shown, text });
                }
                Err(why) => found.file_faults.push(format!("{shown}: {why}")),
            }
        }
    }
    found.files.sort_by(|one, other| one.path.cmp(&other.path));
}

/// Whether a path leads to a place in the directory: a link of a repository must not show other files of the machine.
fn is_within(root: &Path, path: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|real| real.starts_with(root))
}

fn text(root: &Path, path: &Path, max_bytes: u64) -> Result<String, String> {
    if !is_within(root, path) {
        return Err("it leads out of the directory, or to nothing".to_owned());
    }
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return Err("it is no file".to_owned());
    }
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(max_bytes + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > max_bytes {
        return Err(format!("it has more than {max_bytes} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())
}
