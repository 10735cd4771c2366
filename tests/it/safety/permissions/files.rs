//! The files in `deploy/nats` have the lists of `tarsy_bus::permissions`. `TARSY_WRITE_DEPLOY=1` writes them again.

use std::path::PathBuf;
use std::process::Command;

use tarsy_bus::permissions::NatsRole;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("deploy")
        .join(name)
}

/// The text of a file below `deploy/`.
pub(super) fn deployed(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("deploy/{name}: {error}"))
}

fn permissions_of(role: NatsRole) -> String {
    let list = |subjects: Vec<&str>| {
        subjects
            .iter()
            .map(|subject| format!("  \"{subject}\"\n"))
            .collect::<String>()
    };
    let may = role
        .abilities()
        .iter()
        .map(|ability| format!("#   {}\n", ability.describe()))
        .collect::<String>();
    let note = if role == NatsRole::Decider {
        "# Copy it for each person who decides with `tarsy approvals`, and write their `cli` of `approvals.people` in the\n\
         # place of `ana`. Only ana may use the login of this file.\n"
    } else {
        ""
    };
    format!(
        "# The permissions of the role {}, for `permissions: {{ include \"{0}.conf\" }}`. It may:\n{may}{note}publish: [\n{}]\nsubscribe: [\n{}]\n",
        role.as_str(),
        list(role.publish()),
        list(role.subscribe())
    )
}

/// The commands of `nsc` that make the same users with JWTs.
fn nsc() -> String {
    let users = NatsRole::ALL.map(|role| {
        format!(
            "nsc add user --account \"$account\" tarsy-{} \\\n  --allow-pub '{}' \\\n  --allow-sub '{}'\n",
            role.as_str(),
            role.publish().join(","),
            role.subscribe().join(",")
        )
    });
    let head = "#!/bin/sh\n# Makes a user for each role of tarsy in an account of NATS with JWTs: nsc.sh ACCOUNT\n\
                # Then `nsc generate creds --account ACCOUNT --name tarsy-worker` prints the file for NATS_CREDS_FILE.\n\
                # shellcheck disable=SC2016  # the names of subjects begin with a dollar sign\n\
                set -eu\naccount=${1:?the name of the account}\n\n";
    format!("{head}{}", users.join("\n"))
}

#[test]
fn the_deployed_permissions_are_those_of_the_roles() {
    let mut files: Vec<(String, String)> = NatsRole::ALL
        .map(|role| (format!("nats/{}.conf", role.as_str()), permissions_of(role)))
        .into();
    files.push(("nats/nsc.sh".to_owned(), nsc()));
    for (name, expected) in files {
        if std::env::var_os("TARSY_WRITE_DEPLOY").is_some() {
            std::fs::write(path(&name), &expected).unwrap();
        }
        assert_eq!(
            deployed(&name),
            expected,
            "deploy/{name}: TARSY_WRITE_DEPLOY=1 writes it again"
        );
    }
}

#[test]
fn a_server_accepts_the_deployed_configuration() {
    let server = std::env::var_os("TARSY_TEST_NATS_SERVER")
        .expect("TARSY_TEST_NATS_SERVER is not set: run ./dev test");
    let mut command = Command::new(server);
    command.arg("-t").arg("-c").arg(path("nats/nats.conf"));
    for role in NatsRole::ALL {
        command.env(
            format!("TARSY_{}_PASSWORD", role.as_str().to_uppercase()),
            "\"word\"",
        );
    }
    let checked = command.output().unwrap();
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
}
