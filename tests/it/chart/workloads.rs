//! Tests of the Deployments of the roles under different values, and of their network policies.

use serde_json::{Value, json};

use super::helm::{Case, Helm, Release, text};

/// Objects of this kind with the last word of their names.
fn named<'r>(release: &'r Release, kind: &str) -> Vec<(&'r str, &'r Value)> {
    let objects = release.of_kind(kind).into_iter();
    objects
        .map(|object| {
            (
                text(&object["metadata"]["name"]).trim_start_matches("release-tarsy-"),
                object,
            )
        })
        .collect()
}

#[test]
fn each_role_takes_the_settings_of_its_deployment_from_the_values() {
    let Some(helm) = Helm::find() else { return };
    let spread =
        json!([{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]);
    let sources = json!([{"secretRef": {"name": "more"}}]);
    let role = json!({
        "strategy": {"type": "Recreate"},
        "envFrom": sources,
        "extraInitContainers": [{"name": "fetch", "image": "registry.example.com/fetch:1"}],
        "topologySpreadConstraints": spread,
    });
    let mut receiver = role.clone();
    receiver["enabled"] = json!(true);
    receiver["token"] = json!({"secret": {"name": "receiver", "key": "token"}});
    let mut slack = role.clone();
    slack["enabled"] = json!(true);
    let app = json!({"app": "A1", "team": "T1", "signing_secret_file": "/s"});
    let set = json!({
        "worker": role, "llmService": role, "web": role, "receiver": receiver, "slackReceiver": slack,
        "config": {"receive": {"slack": app}}, "revisionHistoryLimit": 7,
    });
    let release = helm.render(&[Case::with("web", &set)]).remove(0).unwrap();
    let deployments = named(&release, "Deployment");
    let mut names: Vec<&str> = deployments.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(names, ["llm-service", "receiver", "slack", "web", "worker"]);
    for (name, deployment) in deployments {
        let spec = &deployment["spec"];
        let pod = &spec["template"]["spec"];
        assert_eq!(spec["strategy"], json!({"type": "Recreate"}), "{name}");
        assert_eq!(spec["revisionHistoryLimit"], 7, "{name}");
        assert_eq!(pod["topologySpreadConstraints"], spread, "{name}");
        assert_eq!(pod["initContainers"][0]["name"], "fetch", "{name}");
        assert_eq!(pod["containers"][0]["envFrom"], sources, "{name}");
    }
}

#[test]
fn a_worker_keeps_the_state_of_its_pod_unless_the_values_say_otherwise() {
    let Some(helm) = Helm::find() else { return };
    let volume = json!({"name": "pod-state", "emptyDir": {"sizeLimit": "1Mi"}});
    let mount = json!({"name": "pod-state", "mountPath": "/var/lib/tarsy"});
    let uid =
        json!({"name": "TARSY_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}});
    let state = json!({"name": "TARSY_POD_STATE", "value": "/var/lib/tarsy"});
    for keeps in [true, false] {
        let set = if keeps {
            json!({})
        } else {
            json!({"worker": {"takeOverAfterRestart": false}})
        };
        let release = helm.render(&[Case::with("web", &set)]).remove(0).unwrap();
        for (name, deployment) in named(&release, "Deployment") {
            let pod = &deployment["spec"]["template"]["spec"];
            let container = &pod["containers"][0];
            let has =
                |list: &Value, one: &Value| list.as_array().is_some_and(|list| list.contains(one));
            let found = [
                has(&pod["volumes"], &volume),
                has(&container["volumeMounts"], &mount),
                has(&container["env"], &uid),
                has(&container["env"], &state),
            ];
            assert_eq!(found, [keeps && name == "worker"; 4], "{name}");
            assert_eq!(
                container["securityContext"]["readOnlyRootFilesystem"], true,
                "{name}"
            );
        }
    }
}

#[test]
fn a_network_policy_leads_only_to_what_the_values_name() {
    let Some(helm) = Helm::find() else { return };
    let to = |name: &str| json!([{"namespaceSelector": {"matchLabels": {"name": name}}}]);
    let policy = json!({
        "enabled": true, "natsTo": to("nats"), "databaseTo": to("postgres"), "dnsTo": to("kube-system"),
        "apiServer": {"cidrs": ["10.0.0.1/32"], "ports": [6443]},
    });
    let narrow = helm
        .render(&[Case::with("default", &json!({"networkPolicy": policy}))])
        .remove(0)
        .unwrap();
    let policies = named(&narrow, "NetworkPolicy");
    for (name, policy) in &policies {
        for rule in policy["spec"]["egress"].as_array().unwrap() {
            assert!(
                rule["to"].as_array().is_some_and(|to| !to.is_empty()),
                "{name} leads everywhere: {rule}"
            );
        }
    }
    let worker = policies
        .iter()
        .find(|(name, _)| *name == "worker")
        .unwrap()
        .1;
    let rule = json!({"ports": [{"port": 6443, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]});
    assert!(
        worker["spec"]["egress"].as_array().unwrap().contains(&rule),
        "{worker:#}"
    );
}

#[test]
fn tools_that_read_the_cluster_need_a_way_to_its_api_server() {
    let Some(helm) = Helm::find() else { return };
    let set = |policy: Value| json!({"networkPolicy": policy});
    let closed = Case::with("tools", &set(json!({"enabled": true})));
    let fault = helm.render(&[closed]).remove(0).unwrap_err();
    assert!(
        fault.contains("set networkPolicy.apiServer.cidrs"),
        "{fault}"
    );
    let open = Case::with(
        "tools",
        &set(json!({"enabled": true, "apiServer": {"cidrs": ["10.0.0.1/32"]}})),
    );
    assert!(helm.render(&[open]).remove(0).is_ok());
}

#[test]
fn the_way_of_a_migration_exists_before_the_release_does() {
    let Some(helm) = Helm::find() else { return };
    let case = |set: Value| Case::with("default", &set);
    let on = json!({"networkPolicy": {"enabled": true}});
    let release = helm.render(&[case(on.clone())]).remove(0).unwrap();
    for (name, policy) in named(&release, "NetworkPolicy") {
        let hook = &policy["metadata"]["annotations"]["helm.sh/hook"];
        assert_eq!(
            hook == "pre-install,pre-upgrade",
            name == "migrate",
            "{name} {hook}"
        );
    }
    let mut plain = on;
    plain["migrations"] = json!({"mode": "job"});
    let release = helm.render(&[case(plain)]).remove(0).unwrap();
    let policies = named(&release, "NetworkPolicy");
    let migrate = policies
        .iter()
        .find(|(name, _)| name.starts_with("migrate"))
        .unwrap()
        .1;
    assert_eq!(migrate["metadata"]["annotations"], Value::Null);
}

#[test]
fn a_service_monitor_finds_the_metrics_of_each_role_once() {
    let Some(helm) = Helm::find() else { return };
    let release = helm
        .render(&[Case::with("gateway", &json!({}))])
        .remove(0)
        .unwrap();
    let wanted = &release.of_kind("ServiceMonitor")[0]["spec"]["selector"]["matchLabels"];
    let is_found = |service: &Value| {
        let labels = &service["metadata"]["labels"];
        wanted
            .as_object()
            .unwrap()
            .iter()
            .all(|(key, value)| labels[key] == *value)
    };
    let services = named(&release, "Service");
    let mut found: Vec<&str> = services
        .iter()
        .filter(|(_, service)| is_found(service))
        .map(|(name, _)| *name)
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "llm-service-metrics",
            "receiver-metrics",
            "web-metrics",
            "worker-metrics"
        ]
    );
    for (name, service) in services.iter().filter(|(_, service)| is_found(service)) {
        assert_eq!(
            service["spec"]["ports"][0]["targetPort"], "metrics",
            "{name}"
        );
    }
}
