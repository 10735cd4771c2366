//! The list of drills, as `tarsy drill --list` prints it, for a machine on which tarsy is not built.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

/// One line for each folder that has an alert: its name, and the summary of the alert.
///
/// # Errors
/// When the folder cannot be read, or an alert is not JSON.
pub fn list(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut lines = Vec::new();
    for entry in entries {
        let drill = entry?.path();
        let alert = drill.join("alert.json");
        let (Some(name), true) = (drill.file_name(), alert.is_file()) else {
            continue;
        };
        let text = fs::read_to_string(&alert)
            .with_context(|| format!("cannot read {}", alert.display()))?;
        let title = title(&text).with_context(|| format!("{} is invalid", alert.display()))?;
        lines.push(format!("{:<16} {title}", name.to_string_lossy()));
    }
    lines.sort();
    Ok(lines)
}

/// The summary that all alerts of a notification have in common.
fn title(alert: &str) -> anyhow::Result<String> {
    let alert: Value = serde_json::from_str(alert)?;
    let summary = alert.pointer("/commonAnnotations/summary");
    let summary = summary.and_then(Value::as_str);
    Ok(summary.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_is_the_common_summary_with_its_escapes_decoded() {
        let alert = r#"{"alerts": [{"annotations": {"summary": "of one"}}],
            "commonAnnotations": {"summary": "db-3: \"data\" is 94 % full"}}"#;
        assert_eq!(title(alert).unwrap(), "db-3: \"data\" is 94 % full");
        assert!(title("{").is_err());
    }

    #[test]
    fn the_drills_of_the_repository_are_listed_by_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/drills");
        let lines = list(&folder).unwrap();
        let names: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert!(names.contains(&"oom-killed"), "{names:?}");
        assert!(names.is_sorted(), "{names:?}");
        let untitled = lines.iter().filter(|line| line.trim_end().len() < 18);
        assert_eq!(untitled.count(), 0, "{lines:?}");
    }
}
