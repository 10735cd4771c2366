//! `tarsy sources test`: reads recorded bodies, and compares their alerts with the expected ones.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::is_of_user;
use crate::cli::args::SourcesTestArgs;
use crate::cli::commands::output::{note, print, print_json, style};
use crate::cli::exit::Exit;
use crate::cli::render::format;
use crate::cli::render::tables::sources::{self, TestedSample};
use tarsy_config::Config;
use tarsy_config::samples::{self, Sample};
use tarsy_core::intake::Intake;

/// The result of one sample.
struct Tested<'s> {
    sample: &'s Sample,
    /// `firing  DiskFull  db-1` of each alert.
    alerts: Vec<String>,
    /// Empty: as expected.
    problems: Vec<String>,
}

pub(super) fn test(config: &Config, args: &SourcesTestArgs) -> anyhow::Result<Exit> {
    let samples = match &args.folder {
        Some(folder) => of_folder(folder)?,
        None => builtin(config)?,
    };
    let tested = tested(&samples, &Intake::new(config.sources.all()));
    let style = style();
    for Tested {
        sample,
        alerts,
        problems,
    } in &tested
    {
        let path = &sample.path.display().to_string();
        if args.json {
            print_json(&json!({
                "source": sample.source, "incident": sample.incident, "path": path, "problems": problems,
            }))?;
        } else {
            let sample = TestedSample {
                path,
                alerts,
                problems,
            };
            print(&sources::tested(&sample, &style))?;
        }
    }
    let failed = tested
        .iter()
        .filter(|tested| !tested.problems.is_empty())
        .count();
    let all = format::count(tested.len(), "sample");
    if failed == 0 {
        note(&format!("{all}, no fault"))?;
        return Ok(Exit::Done);
    }
    note(&format!("{failed} of {all} failed"))?;
    Ok(Exit::Failed)
}

fn of_folder(folder: &Path) -> anyhow::Result<Vec<Sample>> {
    let samples = samples::load(folder)
        .with_context(|| format!("cannot read the samples of {}", folder.display()))?;
    if samples.is_empty() {
        let folder = folder.display();
        bail!(
            "{folder} has no samples: a body belongs in {folder}/<source>/samples/<incident>/01.json"
        );
    }
    Ok(samples)
}

/// The samples of the built-in sources, except for sources that the user has changed.
fn builtin(config: &Config) -> anyhow::Result<Vec<Sample>> {
    let (changed, kept): (Vec<Sample>, Vec<Sample>) = samples::builtin()
        .into_iter()
        .partition(|sample| is_of_user(config, &sample.source));
    let mut names: Vec<String> = changed.into_iter().map(|sample| sample.source).collect();
    names.dedup();
    if !names.is_empty() {
        note(&format!(
            "left out, because tarsy.yaml has its own: {}",
            names.join(", ")
        ))?;
    }
    Ok(kept)
}

fn tested<'s>(samples: &'s [Sample], intake: &Intake) -> Vec<Tested<'s>> {
    let faults = samples::check(samples, intake);
    samples
        .iter()
        .map(|sample| {
            let parts = intake
                .read(&sample.body, &sample.hints(intake))
                .unwrap_or_default();
            let problems = faults.iter().filter(|fault| fault.path == sample.path);
            Tested {
                sample,
                alerts: parts
                    .iter()
                    .map(|part| format!("{}  {}", part.alert.status.as_str(), part.alert.title))
                    .collect(),
                problems: problems.map(|fault| fault.problem.clone()).collect(),
            }
        })
        .collect()
}
