//! The samples of the built-in destinations: an alert as its sender posts it, and the requests of its note.
//! `TARSY_WRITE_SAMPLES=1` writes what is expected.

use std::fs;
use std::path::{Path, PathBuf};

use tarsy_config::Config;
use tarsy_config::sections::destinations::BUILTIN_DESTINATION_NAMES;
use tarsy_core::intake::{Hints, Intake};

use super::message;
use crate::preview;

#[test]
fn each_builtin_destination_makes_the_requests_of_its_samples() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/destinations");
    let is_written = std::env::var_os("TARSY_WRITE_SAMPLES").is_some();
    for name in BUILTIN_DESTINATION_NAMES {
        let folder = all.join(name).join("samples");
        let config = fs::read_to_string(folder.join("tarsy.yaml")).unwrap();
        let config = Config::parse("tarsy.yaml", &config, &|_| None)
            .unwrap_or_else(|faults| panic!("{name}: {faults}"));
        let destination = config.destinations[*name].destination().unwrap();
        let intake = Intake::new(config.sources.all());
        let alerts = alerts(&folder);
        assert!(!alerts.is_empty(), "{name} has no sample");
        for path in alerts {
            let body = fs::read(&path).unwrap();
            let alert = intake.normalise(&body, &Hints::default()).unwrap();
            let requests = preview(destination, &message(alert.refs))
                .unwrap_or_else(|reason| panic!("{}: {reason}", path.display()));
            let shown: Vec<String> = requests
                .into_iter()
                .map(|request| format!("### {}\n{}", request.purpose, request.http))
                .collect();
            let shown = shown.join("\n");
            let expected = path.with_extension("expected.http");
            if is_written {
                fs::write(&expected, &shown).unwrap();
            }
            assert_eq!(
                shown,
                fs::read_to_string(&expected).unwrap(),
                "{}",
                path.display()
            );
        }
    }
}

fn alerts(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut alerts: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    alerts.sort();
    alerts
}
