//! Checks the skills: their directories, what is left out of them, and names that no skill has.

use std::sync::Arc;

use super::{Check, Checked, Verdict};
use crate::process::skills;
use tarsy_config::Config;

pub(super) async fn check(config: Arc<Config>) -> Checked {
    let failed = |reason: String| Check::new("skills", Verdict::Fail, reason);
    let reading = tokio::task::spawn_blocking(move || {
        let library = skills::library(&config)?;
        let unknown = skills::unknown(&config, &library);
        Ok::<_, crate::process::secrets::Unreadable>((library, unknown))
    });
    let read = reading.await.map_err(|error| failed(error.to_string()))?;
    let read = read.map_err(|error| failed(error.to_string()))?;
    let library = read.0;
    let mut checks = Vec::new();
    for fault in &library.faults {
        let detail = format!("{}: {}", fault.path.display(), fault.why);
        checks.push(
            Check::new("skills", Verdict::Warn, detail)
                .fix("docs/skills.md, then: tarsy skills check"),
        );
    }
    for line in read.1 {
        checks.push(Check::new("skills", Verdict::Warn, line).fix("tarsy skills list names them"));
    }
    if checks.is_empty() {
        checks.push(Check::new("skills", Verdict::Ok, skills::counted(&library)));
    }
    Ok(checks)
}
