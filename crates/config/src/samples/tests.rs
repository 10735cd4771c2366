//! Every sample of a built-in source, and the faults that the check finds.

use crate::samples::*;
use crate::{BUILTIN, ConfiguredSources, parse_source};
use serde_json::{Value, json};
use tarsy_core::alert::Alert;
use tarsy_core::intake::sentences;
use tarsy_core::sources::Note;

fn intake() -> Intake {
    Intake::new(ConfiguredSources::default().all())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sources")
}

#[test]
fn every_builtin_source_has_no_fault_and_a_place_in_the_list() {
    let faults = BUILTIN
        .iter()
        .filter_map(|builtin| parse_source(builtin.name, builtin.text).err());
    assert_eq!(
        faults.map(|faults| faults.to_string()).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    let folders: Vec<String> = folders(&folder())
        .unwrap()
        .iter()
        .map(|path| name_of(path))
        .collect();
    let listed: Vec<&str> = BUILTIN.iter().map(|builtin| builtin.name).collect();
    let declared: Vec<&String> = folders
        .iter()
        .filter(|name| folder().join(name).join("source.yaml").exists())
        .collect();
    assert_eq!(listed, declared);
}

#[test]
fn every_sample_of_a_builtin_source_gives_its_alert() {
    let samples = load(&folder()).unwrap();
    let faults: Vec<String> = check(&samples, &intake())
        .iter()
        .map(SampleFault::to_string)
        .collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    let names = |samples: &[Sample]| -> Vec<String> {
        samples
            .iter()
            .map(|sample| {
                format!(
                    "{}/{} {}",
                    sample.source,
                    sample.incident,
                    name_of(&sample.path)
                )
            })
            .collect()
    };
    assert_eq!(
        names(&builtin()),
        names(&samples),
        "the program has every sample"
    );
    let without: Vec<&str> = BUILTIN
        .iter()
        .map(|builtin| builtin.name)
        .filter(|name| !samples.iter().any(|sample| sample.source == *name))
        .collect();
    assert_eq!(without, Vec::<&str>::new(), "each source has samples");
}

/// Prints the table of all samples: `cargo test --lib the_table_of_all_samples -- --nocapture`.
#[test]
fn the_table_of_all_samples_can_be_printed() {
    for sample in load(&folder()).unwrap() {
        for part in intake().read(&sample.body, &Hints::default()).unwrap() {
            let Part { alert, .. } = part;
            let severity = alert.severity.as_str();
            let status = alert.status.as_str();
            let place = format!("{}/{}", sample.source, sample.incident);
            println!(
                "{place:<40} {status:<12} {severity:<8} {:<40} {}",
                alert.alert_type, alert.title
            );
        }
    }
}

#[test]
fn the_check_finds_every_kind_of_fault() {
    let body = |state: &str, monitor: &str| {
        format!(
            r#"{{"event_type": "x", "last_updated": "1", "org": {{"id": "1"}}, "monitor_id": "{monitor}", "scope": "s",
            "title": "[{state}] CPU"}}"#
        )
    };
    let sample = |incident: &str, file: &str, body: String, expected: &str| Sample {
        source: "datadog".to_owned(),
        incident: incident.to_owned(),
        path: PathBuf::from(format!("{incident}/{file}")),
        body: body.into_bytes(),
        expected: expected.to_owned(),
    };
    let firing = "{title: CPU  s, type: CPU, severity: normal, status: firing}";
    let samples = [
        sample("a", "01", body("Triggered", "1"), firing),
        sample("a", "02", body("Recovered", "1"), firing),
        sample("a", "03", body("Triggered", "2"), firing),
        sample("b", "01", body("Triggered", "1"), firing),
        sample("c", "01", "{}".to_owned(), firing),
        sample(
            "d",
            "01",
            r#"{"x": 1}"#.to_owned(),
            "{title: x, type: generic, severity: normal, status: firing}",
        ),
        sample("e", "01", body("Triggered", "5"), "{title: CPU}"),
        sample("f", "01", body("Triggered", "6"), "[]"),
    ];
    let faults: Vec<String> = check(&samples, &intake())
        .iter()
        .map(SampleFault::to_string)
        .collect();
    let beginnings: Vec<&str> = faults
        .iter()
        .filter_map(|fault| fault.split("datadog@").next())
        .collect();
    let expected = [
        "a/02: status is \"resolved\"; expected \"firing\"",
        "a/03: the fingerprint [\"",
        "c/01: body has no content",
        "d/01: recognised as json; expected datadog",
        "e/01: type is missing in expected",
        "f/01: 1 alerts; expected 0",
        "b/01: its fingerprint ",
    ];
    assert_eq!(beginnings, expected);
}

fn home(status: &str) -> Value {
    json!({"host": "db-3", "title": "Disk full", "status": status, "severity": "critical"})
}

fn group(status: &str) -> Value {
    let labels = json!({"alertname": "DiskFull", "severity": "critical", "instance": "db-3"});
    let alert = json!({"status": status, "labels": labels});
    json!({"receiver": "t", "status": status, "alerts": [alert], "groupKey": "{}:{}", "version": "4"})
}

/// A body of another form is neither dropped nor taken for a test, whatever the source of its path.
#[test]
fn a_body_of_another_form_is_read_at_every_path() {
    let intake = intake();
    for source in intake
        .sources()
        .iter()
        .filter(|source| !source.is_only_named())
    {
        for form in [home, group] {
            let read = |body: Value| {
                let hints = Hints {
                    source: Some(source.name.clone()),
                    ..Hints::default()
                };
                intake.part(body.to_string().as_bytes(), &hints).unwrap()
            };
            let firing = read(form("firing"));
            let resolved = read(form("resolved"));
            let text = read(Value::String(form("firing").to_string()));
            for (part, status) in [
                (&firing, AlertStatus::Firing),
                (&text, AlertStatus::Firing),
                (&resolved, AlertStatus::Resolved),
            ] {
                let seen = (
                    part.alert.status,
                    part.alert.fingerprint.as_str(),
                    part.alert.source.as_str(),
                );
                assert_eq!(
                    seen,
                    (
                        status,
                        firing.alert.fingerprint.as_str(),
                        source.name.as_str()
                    ),
                    "{}",
                    part.alert.text
                );
            }
            assert_eq!(
                firing.alert.severity,
                tarsy_core::alert::Severity::Critical,
                "{}",
                source.name
            );
            let is_noted = firing
                .notes
                .iter()
                .any(|note| matches!(note, Note::OtherForm(_)));
            assert!(is_noted || source.declared().is_none(), "{}", source.name);
        }
    }
}

/// A default would drop what the vendor adds.
#[test]
fn no_builtin_source_drops_by_a_default() {
    for source in crate::builtin_sources()
        .iter()
        .filter_map(NamedSource::declared)
    {
        assert!(
            !matches!(
                source.status.default,
                Some(AlertStatus::Ignored | AlertStatus::Test)
            ),
            "{source:?}"
        );
    }
}

#[test]
fn bodies_of_systems_without_a_source_read_as_a_person_would_say() {
    let samples =
        load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/unknown")).unwrap();
    let faults: Vec<String> = check(&samples, &intake())
        .iter()
        .map(SampleFault::to_string)
        .collect();
    assert!(
        faults.is_empty() && samples.len() > 50,
        "\n{}\n",
        faults.join("\n")
    );
}

#[test]
fn every_decision_about_a_sample_has_one_sentence() {
    let unknown = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/unknown");
    let samples = load(&folder())
        .unwrap()
        .into_iter()
        .chain(load(&unknown).unwrap());
    let texts = [&b"disk full on db-1"[..], b"[RESOLVED] disk full on db-1"].map(<[u8]>::to_vec);
    for body in samples.map(|sample| sample.body).chain(texts) {
        for part in intake().read(&body, &Hints::default()).unwrap() {
            let Alert {
                source,
                status,
                severity,
                alert_type,
                title,
                ..
            } = &part.alert;
            let told = sentences(&part.trace);
            let said = |begin: String| {
                told.iter()
                    .filter(|sentence| sentence.starts_with(&begin))
                    .count()
            };
            let status = status.as_str();
            let severity = severity.as_str();
            let body = String::from_utf8_lossy(&body);
            assert_eq!(
                said(format!("The source is {source}, because ")),
                1,
                "{body}\n{told:#?}"
            );
            assert_eq!(
                said(format!("The status is {status}, because ")),
                1,
                "{body}\n{told:#?}"
            );
            assert_eq!(
                said(format!("The severity is {severity}, because ")),
                1,
                "{body}\n{told:#?}"
            );
            let of_key = [
                "The key is ",
                "The problem is told from others by its key: ",
            ];
            assert_eq!(
                of_key
                    .into_iter()
                    .map(|begin| said(begin.to_owned()))
                    .sum::<usize>(),
                1,
                "{body}\n{told:#?}"
            );
            // A long or uneven text is shortened in the alert.
            let begin = |text: &str| {
                text.split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(20)
                    .collect::<String>()
            };
            assert_eq!(
                said(format!("The type is {}", begin(alert_type))),
                1,
                "{body}\n{told:#?}"
            );
            assert_eq!(
                said(format!("The title is {}", begin(title))),
                1,
                "{body}\n{told:#?}"
            );
            assert!(
                told.iter().all(|sentence| sentence.ends_with('.')),
                "{told:#?}"
            );
        }
    }
}
