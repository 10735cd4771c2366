//! Samples of sources: recorded bodies with their expected alerts. `tarsy sources test` and the tests of the built-in
//! sources check them.
//!
//! `<folder>/<source>/samples/<incident>/<nn>.json` is a body, `<nn>.expected.yaml` beside it its alerts. All files of
//! one incident have one fingerprint, and no two incidents have the same.

mod expected;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::Utc;

use self::expected::Expected;
use tarsy_core::alert::AlertStatus;
use tarsy_core::intake::{Hints, Intake, Part};
use tarsy_core::sources::NamedSource;

/// A recorded body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The name of the source that has to recognise it.
    pub source: String,
    /// The name of the folder: one incident.
    pub incident: String,
    pub path: PathBuf,
    pub body: Vec<u8>,
    /// The text of the file with the expected alerts.
    pub expected: String,
}

/// A sample of a built-in source, as `build.rs` embeds it.
#[derive(Clone, Copy, Debug)]
struct Embedded {
    source: &'static str,
    incident: &'static str,
    /// The name of the file, such as `01.json`.
    file: &'static str,
    body: &'static [u8],
    expected: &'static str,
}

const EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/samples.rs"));

/// The samples of the built-in sources.
pub fn builtin() -> Vec<Sample> {
    EMBEDDED
        .iter()
        .map(|embedded| Sample {
            source: embedded.source.to_owned(),
            incident: embedded.incident.to_owned(),
            path: [embedded.source, embedded.incident, embedded.file]
                .iter()
                .collect(),
            body: embedded.body.to_vec(),
            expected: embedded.expected.to_owned(),
        })
        .collect()
}

/// The reason why a sample fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleFault {
    pub path: PathBuf,
    pub problem: String,
}

/// The fingerprints of an incident, by its first sample.
struct Incident<'s> {
    first: &'s Sample,
    prints: Vec<String>,
}

impl Sample {
    /// A source without a rule is reached by its name, as on `/hooks/<name>`.
    pub fn hints(&self, intake: &Intake) -> Hints {
        let is_only_named = intake
            .sources()
            .get(&self.source)
            .is_some_and(NamedSource::is_only_named);
        let source = is_only_named.then(|| self.source.clone());
        Hints {
            source,
            received_at: Some(Utc::now()),
            ..Hints::default()
        }
    }
}

impl fmt::Display for SampleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

/// Reads all samples below a folder, in the order of their paths.
///
/// # Errors
/// When a folder or a file cannot be read.
pub fn load(folder: &Path) -> io::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for source in folders(folder)? {
        let below = source.join("samples");
        for incident in if below.is_dir() {
            folders(&below)?
        } else {
            Vec::new()
        } {
            for path in entries(&incident)?
                .into_iter()
                .filter(|path| path.extension().is_some_and(|end| end == "json"))
            {
                let body = fs::read(&path)?;
                let expected =
                    fs::read_to_string(path.with_extension("expected.yaml")).map_err(|error| {
                        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                    })?;
                samples.push(Sample {
                    source: name_of(&source),
                    incident: name_of(&incident),
                    path,
                    body,
                    expected,
                });
            }
        }
    }
    Ok(samples)
}

/// Every fault of the samples, in their order.
pub fn check(samples: &[Sample], intake: &Intake) -> Vec<SampleFault> {
    let mut faults = Vec::new();
    let mut incidents: BTreeMap<(&str, &str), Incident<'_>> = BTreeMap::new();
    for sample in samples {
        let fault = |problem: String| SampleFault {
            path: sample.path.clone(),
            problem,
        };
        let parts = match intake.read(&sample.body, &sample.hints(intake)) {
            Ok(parts) => parts,
            Err(error) => {
                faults.push(fault(error.to_string()));
                continue;
            }
        };
        faults.extend(recognition(sample, intake, &parts).map(fault));
        let problems = match Expected::parse(&sample.expected) {
            Ok(expected) => expected::compare(&expected, &parts),
            Err(problem) => vec![problem],
        };
        faults.extend(problems.into_iter().map(fault));
        let alerts = parts
            .iter()
            .filter(|part| part.alert.status != AlertStatus::Ignored);
        let prints: Vec<String> = alerts.map(|part| part.alert.fingerprint.clone()).collect();
        if prints.is_empty() {
            continue;
        }
        let key = (sample.source.as_str(), sample.incident.as_str());
        let known = incidents.entry(key).or_insert_with(|| Incident {
            first: sample,
            prints: prints.clone(),
        });
        if known.prints != prints {
            let Incident {
                first,
                prints: known,
            } = known;
            let first = first.path.display();
            faults.push(fault(format!(
                "the fingerprint {prints:?} is another one than {known:?} of {first}"
            )));
        }
    }
    faults.extend(same_prints(&incidents));
    faults
}

/// Two incidents with a common fingerprint.
fn same_prints(incidents: &BTreeMap<(&str, &str), Incident<'_>>) -> Vec<SampleFault> {
    let mut seen: BTreeMap<&str, &Sample> = BTreeMap::new();
    let mut faults = Vec::new();
    for Incident {
        first: sample,
        prints,
    } in incidents.values()
    {
        for print in prints {
            if let Some(other) = seen.insert(print, sample) {
                let other = other.path.display();
                let problem = format!(
                    "its fingerprint {print} is that of {other}, which is another incident"
                );
                faults.push(SampleFault {
                    path: sample.path.clone(),
                    problem,
                });
            }
        }
    }
    faults
}

/// A body fits one source, which is its own.
fn recognition(sample: &Sample, intake: &Intake, parts: &[Part]) -> Option<String> {
    let source = parts
        .first()
        .map(|part| part.alert.source.as_str())
        .unwrap_or_default();
    if source != sample.source {
        return Some(format!(
            "recognised as {source}; expected {}",
            sample.source
        ));
    }
    if sample.hints(intake).source.is_some() {
        return None;
    }
    let value = serde_json::from_slice(&sample.body).unwrap_or_default();
    let fitting: Vec<&str> = intake
        .sources()
        .fitting(&value)
        .into_iter()
        .map(|source| source.name.as_str())
        .collect();
    let other = fitting.iter().any(|name| *name != sample.source);
    other.then(|| {
        format!(
            "the rules of {} fit; expected only that of {}",
            fitting.join(", "),
            sample.source
        )
    })
}

fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(entries(folder)?
        .into_iter()
        .filter(|path| path.is_dir())
        .collect())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?
        .map(|entry| entry.map(|entry| entry.path()));
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
