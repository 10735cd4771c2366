//! Every pod is restricted, keeps its secrets in files, and is restarted for its own faults only.

use serde_json::{Value, json};

use super::helm::{Case, Helm, containers, text};

/// The volumes that the profile `restricted` of Pod Security permits.
const VOLUMES: [&str; 8] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The violations of this pod against the profile `restricted`, and against the further rules of this chart.
fn violations(pod: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |holds: bool, fault: String| {
        if !holds {
            found.push(fault);
        }
    };
    for key in ["hostNetwork", "hostPID", "hostIPC"] {
        check(pod[key].is_null(), format!("{key} is set"));
    }
    let shared = &pod["securityContext"];
    check(
        shared["runAsNonRoot"] == true,
        "it may run as root".to_owned(),
    );
    check(
        shared["runAsUser"].as_u64().is_some_and(|user| user > 0),
        "its user is not set".to_owned(),
    );
    check(
        shared["seccompProfile"]["type"] == "RuntimeDefault",
        "it has no seccomp profile".to_owned(),
    );
    check(
        pod["enableServiceLinks"] == false,
        "it gets variables of services".to_owned(),
    );
    check(
        pod["automountServiceAccountToken"].is_boolean(),
        "it gets a token by default".to_owned(),
    );
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        let kinds: Vec<&String> = volume
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| *key != "name")
            .collect();
        check(
            kinds.iter().all(|kind| VOLUMES.contains(&kind.as_str())),
            format!("volume {kinds:?}"),
        );
    }
    for container in containers(pod) {
        let (name, own) = (text(&container["name"]), &container["securityContext"]);
        check(
            own["allowPrivilegeEscalation"] == false,
            format!("{name} may gain privileges"),
        );
        check(
            own["readOnlyRootFilesystem"] == true,
            format!("{name} may write to its image"),
        );
        check(
            own["capabilities"] == json!({"drop": ["ALL"]}),
            format!("{name} has capabilities"),
        );
        check(
            own["privileged"].is_null() && own["runAsNonRoot"] != false,
            format!("{name} is privileged"),
        );
        let ports = container["ports"].as_array().into_iter().flatten();
        check(
            ports.clone().all(|port| port["hostPort"].is_null()),
            format!("{name} has a port of the node"),
        );
        for limit in ["requests", "limits"] {
            check(
                container["resources"][limit]["memory"].is_string(),
                format!("{name} has no {limit} of memory"),
            );
        }
    }
    found
}

#[test]
fn every_pod_fits_the_restricted_profile() {
    let Some(helm) = Helm::find() else { return };
    let mut seen = 0;
    for (case, release) in helm.releases() {
        for (name, pod) in release.pods() {
            assert_eq!(violations(pod), Vec::<String>::new(), "{case}: {name}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn a_pod_that_is_not_restricted_is_found() {
    let good = json!({
        "enableServiceLinks": false, "automountServiceAccountToken": false,
        "securityContext": {"runAsNonRoot": true, "runAsUser": 1, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "c", "resources": {"requests": {"memory": "1Mi"}, "limits": {"memory": "1Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}
            },
        }],
    });
    assert_eq!(violations(&good), Vec::<String>::new());
    for (path, value) in [
        ("/hostNetwork", json!(true)),
        ("/securityContext/runAsNonRoot", json!(false)),
        ("/securityContext/seccompProfile/type", json!("Unconfined")),
        ("/enableServiceLinks", json!(true)),
        (
            "/volumes",
            json!([{"name": "v", "hostPath": {"path": "/"}}]),
        ),
        ("/containers/0/securityContext/capabilities/drop", json!([])),
        (
            "/containers/0/securityContext/readOnlyRootFilesystem",
            json!(false),
        ),
        ("/containers/0/resources/limits", json!({})),
    ] {
        let mut bad = good.clone();
        match bad.pointer_mut(path) {
            Some(place) => *place = value,
            None => bad[path.trim_start_matches('/')] = value,
        }
        assert_eq!(violations(&bad).len(), 1, "{path}");
    }
}

#[test]
fn liveness_asks_the_process_itself_and_no_neighbour() {
    let Some(helm) = Helm::find() else { return };
    for (case, release) in helm.releases() {
        let is_own =
            |object: &&&Value| text(&object["metadata"]["name"]).starts_with("release-tarsy");
        for deployment in release.of_kind("Deployment").iter().filter(is_own) {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            for (probe, path) in [
                ("startupProbe", "/healthz"),
                ("livenessProbe", "/healthz"),
                ("readinessProbe", "/readyz"),
            ] {
                assert_eq!(
                    container[probe]["httpGet"],
                    json!({"path": path, "port": "metrics"}),
                    "{case} {probe}"
                );
            }
        }
    }
}

#[test]
fn secrets_are_files_and_each_pod_has_only_its_own() {
    let Some(helm) = Helm::find() else { return };
    let release = helm.release(Case::with("production", &json!({})));
    let mut found = Vec::new();
    for (name, pod) in release.pods() {
        for container in containers(pod) {
            for variable in container["env"].as_array().into_iter().flatten() {
                assert!(
                    variable["valueFrom"]["secretKeyRef"].is_null(),
                    "{name}: {variable}"
                );
            }
        }
        let sources = pod["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|volume| volume["projected"]["sources"].as_array());
        let paths = sources
            .flatten()
            .flat_map(|source| source["secret"]["items"].as_array().unwrap().iter());
        let mut paths: Vec<&str> = paths.map(|item| text(&item["path"])).collect();
        paths.sort_unstable();
        found.push((name.rsplit('-').next().unwrap().to_owned(), paths.join(" ")));
    }
    found.sort();
    let expected = [
        (
            "migrate",
            "database/ca.crt database/password database/url nats/ca.crt nats/creds nats/tls.crt nats/tls.key",
        ),
        (
            "receiver",
            "nats/ca.crt nats/creds nats/tls.crt nats/tls.key receive/token",
        ),
        (
            "service",
            "client-ca/ca.crt keys/ANTHROPIC_API_KEY keys/GEMINI_API_KEY llm/token tls/tls.crt tls/tls.key",
        ),
        ("test", "nats/ca.crt nats/creds nats/tls.crt nats/tls.key"),
        (
            "worker",
            "database/ca.crt database/password database/url llm/ca.crt llm/tls.crt llm/tls.key llm/token nats/ca.crt nats/creds \
             nats/tls.crt nats/tls.key notifications/slack-token",
        ),
    ];
    assert_eq!(
        found,
        expected.map(|(pod, files)| (pod.to_owned(), files.to_owned()))
    );
}

#[test]
fn the_receiver_of_slack_has_its_own_login_and_neither_database_nor_bot_token() {
    let Some(helm) = Helm::find() else { return };
    let release = helm.release(Case::with("slack", &json!({})));
    let pods = release.pods();
    let pod = pods.iter().find(|(name, _)| name.ends_with("-slack"));
    let spec = &pod.unwrap().1;
    let container = &spec["containers"][0];
    let args: Vec<&str> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    assert_eq!(args[..2], ["receive", "--slack-only"]);
    let variables = container["env"].as_array().unwrap();
    let names: Vec<&str> = variables.iter().map(|found| text(&found["name"])).collect();
    assert!(
        !names
            .iter()
            .any(|name| name.starts_with("DATABASE") || name.starts_with("TARSY_LLM")),
        "{names:?}"
    );
    let user = variables.iter().find(|found| found["name"] == "NATS_USER");
    assert_eq!(user.unwrap()["value"], "tarsy-slack");
    let volumes = spec["volumes"].to_string();
    for part in [
        "slack/signing-secret",
        r#""key":"slack""#,
        r#""key":"slack.yaml""#,
    ] {
        assert!(volumes.contains(part), "{part}: {volumes}");
    }
    assert!(!volumes.contains("slack-token"), "{volumes}");
}

#[test]
fn a_worker_has_the_key_of_slack_where_the_receiver_has_it_and_no_signing_secret() {
    let Some(helm) = Helm::find() else { return };
    let release = helm.release(Case::with("slack", &json!({})));
    let item = json!({"key": "channel", "path": "slack/channel-key"}).to_string();
    for role in ["-worker", "-slack"] {
        let pods = release.pods();
        let pod = pods.iter().find(|(name, _)| name.ends_with(role));
        let volumes = pod.unwrap().1["volumes"].to_string();
        assert!(volumes.contains(&item), "{role}: {volumes}");
        let is_receiver = role == "-slack";
        assert_eq!(volumes.contains("slack/signing-secret"), is_receiver);
    }
}

#[test]
fn the_web_server_has_the_secrets_of_a_role_that_only_reads() {
    let Some(helm) = Helm::find() else { return };
    let release = helm.release(Case::with("web", &json!({})));
    let (_, pod) = release
        .pods()
        .into_iter()
        .find(|(name, _)| name.ends_with("-web"))
        .unwrap();
    let sources = pod["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|volume| volume["projected"]["sources"].as_array());
    let files: Vec<(String, String)> = sources
        .flatten()
        .map(|source| {
            let secret = &source["secret"];
            (
                text(&secret["name"]).to_owned(),
                text(&secret["items"][0]["path"]).to_owned(),
            )
        })
        .collect();
    let expected = [
        ("nats-passwords", "nats/password"),
        ("tarsy-reader", "database/url"),
        ("tarsy-reader-password", "database/password"),
        ("tarsy-proxy", "web/proxy"),
    ];
    assert_eq!(
        files,
        expected.map(|(secret, path)| (secret.to_owned(), path.to_owned()))
    );
    let map = release.object("ConfigMap", "release-tarsy");
    let hosts = text(&map["data"]["queue.yaml"]);
    assert!(
        hosts.contains("release-tarsy-web.")
            && hosts.contains("public_url: https://tarsy.example.com"),
        "{hosts}"
    );
}

#[test]
fn a_role_with_its_own_address_does_not_get_the_workers_password() {
    let Some(helm) = Helm::find() else { return };
    let set = json!({
        "database": {"urlSecret": {"name": "w"}, "passwordSecret": {"name": "shared"}},
        "web": {"databaseUrlSecret": {"name": "r"}, "databasePasswordSecret": {"name": ""}},
        "migrations": {"urlSecret": {"name": "m"}, "passwordSecret": {"name": ""}},
    });
    let release = helm.release(Case::with("web", &set));
    let has = |kind, name| {
        release.object(kind, name)["spec"]["template"]
            .to_string()
            .contains("\"shared\"")
    };
    assert!(has("Deployment", "-worker"));
    assert!(!has("Deployment", "-web") && !has("Job", "-migrate"));
}

#[test]
fn a_secret_in_the_values_is_rendered_into_secrets_only() {
    let Some(helm) = Helm::find() else { return };
    let words = json!({
        "trial": {"password": "w0rd-of-trial"},
        "llmService": {"token": {"value": "w0rd-of-llm"}},
        "receiver": {"token": {"value": "w0rd-of-receiver"}},
    });
    let release = helm.release(Case::with("trial", &words));
    let (secrets, others): (Vec<_>, Vec<_>) = release
        .objects
        .iter()
        .partition(|(_, object)| object["kind"] == "Secret");
    let with_word = |objects: &[&(String, Value)]| {
        objects
            .iter()
            .filter(|(_, object)| object.to_string().contains("w0rd"))
            .count()
    };
    assert_eq!((with_word(&secrets), with_word(&others)), (1, 0));
    assert!(!release.notes.contains("w0rd"), "{}", release.notes);
}
