//! `tarsy destinations` on the real program.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::run_with;

/// A configuration with a destination at an address where nothing listens.
fn config(folder: &Path) -> String {
    let file = folder.join("tarsy.yaml");
    let text = "\
web: {public_url: 'https://tarsy.example.com'}
destinations:
  pagerduty: {with: {from: tarsy@example.com}, secret_env: PD_TOKEN, when: [ended, covered]}
  desk: {base: 'http://127.0.0.1:9', allow_http: true, needs: {incident: '^.+$'}, post: '/notes/{incident}', json: {text: '{title}'}}
";
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn alert() -> String {
    let samples: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/config/destinations/pagerduty/samples");
    samples.join("webhook.json").display().to_string()
}

#[tokio::test]
async fn destinations_of_the_program_and_of_the_file_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let listed = run_with(
        &[],
        &["destinations", "list", "--json", "--config", &config],
        b"",
    )
    .await
    .exits(0)
    .json();
    let of = |name: &str| {
        listed
            .iter()
            .find(|each| each["name"] == name)
            .cloned()
            .unwrap()
    };
    let expected = json!({
        "name": "pagerduty", "from": "tarsy.yaml", "when": ["ended", "covered"], "needs": ["incident"],
        "repetition": "found again",
    });
    assert_eq!(of("pagerduty"), expected);
    assert_eq!(of("desk")["repetition"], "a remark");
    assert_eq!(of("jira")["from"], "built in");
    assert_eq!(listed.len(), 11);
}

#[tokio::test]
async fn the_requests_of_a_note_are_printed_and_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let alert = alert();
    let arguments = [
        "destinations",
        "test",
        "pagerduty",
        "--alert",
        &alert,
        "--config",
        &config,
    ];
    let printed = run_with(&[("PD_TOKEN", "s3cret-t0ken")], &arguments, b"")
        .await
        .exits(0)
        .out;
    for part in [
        "GET https://api.pagerduty.com/incidents/PGR0VU2/notes",
        "POST https://api.pagerduty.com/incidents/PGR0VU2/notes",
        "authorization: Token token=[secret]",
        "A test, no investigation",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!printed.contains("s3cret"), "{printed}");

    let arguments = [
        "destinations",
        "test",
        "desk",
        "--alert",
        &alert,
        "--send",
        "--config",
        &config,
    ];
    let failed = run_with(&[], &arguments, b"").await.exits(1).err;
    assert!(failed.contains("desk has not taken the note"), "{failed}");
    let arguments = ["destinations", "check", "desk", "--config", &config];
    let failed = run_with(&[], &arguments, b"").await.exits(1).out;
    assert!(failed.contains("desk: it cannot be reached"), "{failed}");
    let arguments = [
        "destinations",
        "test",
        "disk",
        "--alert",
        &alert,
        "--config",
        &config,
    ];
    let unknown = run_with(&[], &arguments, b"").await.exits(1).err;
    assert!(unknown.contains("did you mean desk?"), "{unknown}");
}
