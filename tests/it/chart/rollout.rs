//! Tests of an upgrade, an autoscaler and a drain.

use serde_json::{Value, json};
use tarsy_bus::Priority;

use super::helm::{Case, Helm, Release, text};

/// The pods' template of a Deployment.
fn template<'a>(release: &'a Release, name: &str) -> &'a Value {
    &release.object("Deployment", name)["spec"]["template"]
}

#[test]
fn a_change_of_the_configuration_rolls_only_the_pods_that_read_it() {
    let Some(helm) = Helm::find() else { return };
    let before = helm.release(Case::with("production", &json!({})));
    let rolled = |set: &Value| {
        let after = helm.release(Case::with("production", set));
        let names = ["-worker", "-llm-service", "-receiver"];
        names.map(|name| template(&before, name) != template(&after, name))
    };
    assert_eq!(rolled(&json!({})), [false, false, false]);
    assert_eq!(
        rolled(&json!({"config": {"defaults": {"max_iterations": 7}}})),
        [true, true, false]
    );
    assert_eq!(
        rolled(&json!({"config": {"worker": {"slots": 9}}})),
        [true, true, true]
    );
    assert_eq!(
        rolled(&json!({"networkPolicy": {"enabled": false}})),
        [false, false, false]
    );
    let gitops =
        |checksum: &str| helm.release(Case::with("gitops", &json!({"configChecksum": checksum})));
    assert_ne!(
        template(&gitops("1"), "-worker"),
        template(&gitops("2"), "-worker")
    );
    let trial = |token: &str| {
        helm.release(Case::with(
            "trial",
            &json!({"receiver": {"token": {"value": token}}}),
        ))
    };
    assert_ne!(
        template(&trial("1"), "-receiver"),
        template(&trial("2"), "-receiver")
    );
}

#[test]
fn the_migration_runs_before_the_workers_in_each_mode() {
    let Some(helm) = Helm::find() else { return };
    let hook = helm.release(Case::with("production", &json!({})));
    let weight = |kind: &str| {
        let annotations = &hook.object(kind, "-migrate")["metadata"]["annotations"];
        assert_eq!(annotations["helm.sh/hook"], "pre-install,pre-upgrade");
        text(&annotations["helm.sh/hook-weight"])
            .parse::<i32>()
            .unwrap()
    };
    assert!(weight("ServiceAccount") < weight("ConfigMap") && weight("ConfigMap") < weight("Job"));
    // The objects that the hook mounts: none of them belongs to the release, which does not exist yet.
    let pod = &hook.object("Job", "-migrate")["spec"]["template"]["spec"];
    assert_eq!(
        pod["volumes"][1]["configMap"]["name"],
        "release-tarsy-migrate"
    );

    let job =
        |set: Value| helm.release(Case::with("gitops", &set)).of_kind("Job")[0]["metadata"].clone();
    let plain = job(json!({}));
    assert_eq!(
        plain["annotations"],
        json!({"argocd.argoproj.io/hook": "PreSync"})
    );
    assert_eq!(
        job(json!({"configChecksum": "2026-11-23"}))["name"],
        plain["name"]
    );
    // A Job cannot be changed.
    assert_ne!(job(json!({"image": {"tag": "2"}}))["name"], plain["name"]);

    let start = helm.release(Case::with("trial", &json!({})));
    assert_eq!(
        template(&start, "-worker")["spec"]["initContainers"][0]["args"][0],
        "migrate"
    );
    assert_eq!(start.of_kind("Job").len(), 0);
    let none = helm.release(Case::with(
        "default",
        &json!({"migrations": {"mode": "none"}}),
    ));
    assert_eq!(none.of_kind("Job").len(), 0);
    assert!(none.notes.contains("run `tarsy migrate`"), "{}", none.notes);
}

/// The objects that a pod needs before it can be created, as kinds and names: of this release or of others.
fn needs(pod: &Value) -> Vec<(&'static str, String)> {
    let volumes = pod["volumes"].as_array().unwrap();
    let sources = volumes.iter().flat_map(|volume| {
        volume["projected"]["sources"]
            .as_array()
            .into_iter()
            .flatten()
    });
    let secrets = sources.map(|source| ("Secret", text(&source["secret"]["name"]).to_owned()));
    let maps = volumes
        .iter()
        .filter_map(|volume| volume["configMap"]["name"].as_str());
    let account = (
        "ServiceAccount",
        text(&pod["serviceAccountName"]).to_owned(),
    );
    secrets
        .chain(maps.map(|name| ("ConfigMap", name.to_owned())))
        .chain([account])
        .collect()
}

#[test]
fn what_the_migration_needs_is_there_before_its_hook_runs() {
    let Some(helm) = Helm::find() else { return };
    let inline = json!({
        "existingConfigMap": {"name": ""}, "config": {"worker": {"slots": 2}},
        "database": {"url": "postgres://d", "urlSecret": {"name": ""}},
    });
    let waved = json!({"migrations": {"annotations": {"argocd.argoproj.io/sync-wave": "3"}}});
    let hook = json!({"migrations": {"mode": "hook", "annotations": {}}});
    let argo = ("argocd.argoproj.io/hook", "argocd.argoproj.io/sync-wave");
    let of_helm = ("helm.sh/hook", "helm.sh/hook-weight");
    for (file, set, (phase, order)) in [
        ("gitops", json!({}), argo),
        ("gitops", inline, argo),
        ("gitops", waved, argo),
        ("gitops", hook, of_helm),
        ("production", json!({}), of_helm),
    ] {
        let release = helm.release(Case::with(file, &set));
        let job = release.of_kind("Job")[0];
        let rank = |object: &Value| {
            let order = object["metadata"]["annotations"][order]
                .as_str()
                .unwrap_or("0");
            order.parse::<i32>().unwrap()
        };
        for (kind, name) in needs(&job["spec"]["template"]["spec"]) {
            let own = release
                .of_kind(kind)
                .into_iter()
                .find(|object| object["metadata"]["name"] == name.as_str());
            let Some(own) = own else { continue };
            assert_eq!(
                own["metadata"]["annotations"][phase], job["metadata"]["annotations"][phase],
                "{set}: {kind}"
            );
            assert!(rank(own) < rank(job), "{set}: {kind} {name}");
        }
    }
}

#[test]
fn keda_adds_the_lag_of_all_four_consumers_and_owns_the_number() {
    let Some(helm) = Helm::find() else { return };
    let release = helm.release(Case::with("keda", &json!({})));
    assert!(release.object("Deployment", "-worker")["spec"]["replicas"].is_null());
    let spec = &release.object("ScaledObject", "-worker")["spec"];
    let consumers: Vec<&str> = Priority::ALL
        .iter()
        .map(|priority| priority.as_str())
        .collect();
    let triggers = spec["triggers"].as_array().unwrap();
    let found: Vec<&str> = triggers
        .iter()
        .map(|trigger| text(&trigger["metadata"]["consumer"]))
        .collect();
    assert_eq!(found, consumers);
    assert_eq!(
        spec["advanced"]["scalingModifiers"]["formula"],
        consumers.join(" + ")
    );
    for trigger in triggers {
        assert_eq!(
            (&trigger["name"], &trigger["metadata"]["stream"]),
            (&trigger["metadata"]["consumer"], &json!("TARSY_ALERTS"))
        );
        assert!(
            trigger["metadata"]
                .as_object()
                .unwrap()
                .values()
                .all(Value::is_string),
            "{trigger}"
        );
    }
    // A worker more for each six alerts, as many as it has slots.
    assert_eq!(spec["advanced"]["scalingModifiers"]["target"], "6");
    // Without the length of the queue half of the twenty workers run.
    assert_eq!(
        spec["fallback"],
        json!({"failureThreshold": 3, "replicas": 10})
    );
    let fallback = json!({"replicas": 4, "behavior": "currentReplicasIfHigher"});
    let release = helm.release(Case::with(
        "keda",
        &json!({"autoscaling": {"keda": {"fallback": fallback}}}),
    ));
    let expected =
        json!({"failureThreshold": 3, "replicas": 4, "behavior": "currentReplicasIfHigher"});
    assert_eq!(
        release.object("ScaledObject", "-worker")["spec"]["fallback"],
        expected
    );
}

#[test]
fn a_disruption_budget_stands_where_several_pods_may_run() {
    let Some(helm) = Helm::find() else { return };
    let names = |case: Case| {
        let release = helm.release(case);
        let mut names: Vec<String> = release
            .of_kind("PodDisruptionBudget")
            .iter()
            .map(|budget| text(&budget["metadata"]["name"]).to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(Case::with("trial", &json!({}))), Vec::<String>::new());
    assert_eq!(
        names(Case::with("keda", &json!({}))),
        ["release-tarsy-llm-service", "release-tarsy-worker"]
    );
    let off = json!({"worker": {"podDisruptionBudget": {"enabled": false}}});
    assert_eq!(
        names(Case::with("keda", &off)),
        ["release-tarsy-llm-service"]
    );
}

#[test]
fn every_selector_finds_the_pods_of_its_own_component_only() {
    let Some(helm) = Helm::find() else { return };
    for (case, release) in helm.releases() {
        let pods = release
            .objects
            .iter()
            .filter_map(|(_, object)| object["spec"]["template"]["metadata"]["labels"].as_object());
        let pods: Vec<_> = pods.collect();
        let selectors = release.objects.iter().filter_map(|(_, object)| {
            let spec = &object["spec"];
            let selector = match text(&object["kind"]) {
                "Deployment" | "StatefulSet" | "PodDisruptionBudget" => {
                    &spec["selector"]["matchLabels"]
                }
                "Service" => &spec["selector"],
                "NetworkPolicy" => &spec["podSelector"]["matchLabels"],
                _ => return None,
            };
            Some((
                text(&object["metadata"]["name"]),
                selector.as_object().unwrap(),
            ))
        });
        let own = selectors
            .filter(|(name, _)| name.starts_with("release-tarsy") && !name.ends_with("-test"));
        for (name, selector) in own {
            let found: Vec<_> = pods
                .iter()
                .filter(|labels| {
                    selector
                        .iter()
                        .all(|(key, value)| labels.get(key) == Some(value))
                })
                .collect();
            assert_eq!(found.len(), 1, "{case}: {name}");
            let role = name.trim_end_matches("-metrics");
            assert!(
                role.ends_with(text(&found[0]["app.kubernetes.io/component"])),
                "{case}: {name}"
            );
        }
    }
}

#[test]
fn the_notes_add_up_how_long_a_drain_may_take() {
    let Some(helm) = Helm::find() else { return };
    let release = helm.release(Case::with("production", &json!({})));
    let spec = &template(&release, "-worker")["spec"];
    assert_eq!(spec["terminationGracePeriodSeconds"], 90);
    for line in [
        "  1m (worker.drain_timeout)",
        "  15 s for the last checkpoint",
        "  90 s until Kubernetes kills it",
    ] {
        assert!(release.notes.contains(line), "{line}: {}", release.notes);
    }
    let warned = helm.release(Case::with(
        "default",
        &json!({"llmService": {"token": {"secret": {"name": ""}}, "allowUnauthenticated": true}}),
    ));
    assert!(
        warned
            .notes
            .contains("WARNING: every pod that reaches the LLM service"),
        "{}",
        warned.notes
    );
}

#[test]
fn the_notes_warn_of_a_web_server_with_the_database_role_of_the_workers() {
    let Some(helm) = Helm::find() else { return };
    let warning = "WARNING: the web server has the database address of the workers";
    let own = helm.release(Case::with("web", &json!({})));
    assert!(!own.notes.contains(warning), "{}", own.notes);
    let shared = helm.release(Case::with(
        "web",
        &json!({"web": {"databaseUrlSecret": {"name": ""}}}),
    ));
    assert!(
        shared.notes.contains(warning) && shared.notes.contains("tarsy_reader"),
        "{}",
        shared.notes
    );
}

#[test]
fn policies_let_each_role_reach_only_what_it_needs() {
    let Some(helm) = Helm::find() else { return };
    let policy = json!({"networkPolicy": {"workerEgress": [], "notificationPorts": []}});
    let release = helm.release(Case::with("production", &policy));
    let ports = |name: &str, direction: &str| {
        let rules = release.object("NetworkPolicy", name)["spec"][direction]
            .as_array()
            .unwrap();
        let ports = rules
            .iter()
            .flat_map(|rule| rule["ports"].as_array().unwrap())
            .map(|port| port["port"].as_u64().unwrap());
        let mut ports: Vec<u64> = ports.collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    };
    let reach = |name: &str| (ports(name, "ingress"), ports(name, "egress"));
    assert_eq!(reach("-worker"), (vec![9090], vec![53, 4222, 5432, 50051]));
    assert_eq!(reach("-llm-service"), (vec![9090, 50051], vec![53, 443]));
    assert_eq!(reach("-receiver"), (vec![8475, 9090], vec![53, 4222]));
    assert_eq!(reach("-migrate"), (vec![], vec![53, 4222, 5432]));
    assert_eq!(reach("-test"), (vec![], vec![53, 4222]));
    let web = helm.release(Case::with("web", &json!({})));
    let rules = web.object("NetworkPolicy", "-web")["spec"].clone();
    let of = |direction: &str| -> Vec<u64> {
        let rules = rules[direction]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|rule| rule["ports"].as_array().unwrap());
        rules.map(|port| port["port"].as_u64().unwrap()).collect()
    };
    assert_eq!(
        (of("ingress"), of("egress")),
        (vec![9090, 8476], vec![53, 53, 4222, 5432])
    );
    let slack = helm.release(Case::with("slack", &json!({})));
    let rules = slack.object("NetworkPolicy", "-slack")["spec"].clone();
    assert_eq!(rules["ingress"][1]["ports"][0]["port"], 8477);
    assert!(rules["ingress"][1]["from"].is_array(), "{rules:#}");
    let egress = rules["egress"].to_string();
    assert!(
        egress.contains("4222") && !egress.contains("5432") && !egress.contains("443"),
        "{egress}"
    );
    let egress = release.object("NetworkPolicy", "-llm-service")["spec"]["egress"].to_string();
    assert!(
        egress.contains(r#""except":["169.254.0.0/16"]"#),
        "{egress}"
    );
    let sns = json!({"networkPolicy": {"receiverEgress": [{"ports": [{"port": 443, "protocol": "TCP"}]}]}});
    let receiver = helm
        .release(Case::with("production", &sns))
        .object("NetworkPolicy", "-receiver")["spec"]
        .clone();
    assert!(
        receiver["egress"].to_string().contains(r#""port":443"#),
        "{receiver}"
    );
    // With routes the workers reach their ports, and no metadata service.
    let routes = helm.release(Case::with(
        "production",
        &json!({"networkPolicy": {"workerEgress": []}}),
    ));
    let egress = routes.object("NetworkPolicy", "-worker")["spec"]["egress"].to_string();
    assert!(
        egress.contains(r#""port":443"#) && egress.contains(r#""except":["169.254.0.0/16"]"#),
        "{egress}"
    );
    // The ports of mail servers are added, once each.
    let route = |smtp: Value| json!({"kind": "email", "smtp": smtp, "from": "a@b.example", "to": ["c@d.example"]});
    let mail = json!({
        "networkPolicy": {"workerEgress": []},
        "config": {"notifications": {
            "a": route(json!({"host": "h"})),
            "b": route(json!({"host": "h", "tls": "required"})),
            "c": route(json!({"host": "h", "tls": "none", "allow_plaintext": true})),
            "d": route(json!({"host": "h", "port": 2525})),
            "e": route(json!({"host": "i", "port": 2525})),
        }},
    });
    let release = helm.release(Case::with("production", &mail));
    let egress = release.object("NetworkPolicy", "-worker")["spec"]["egress"].clone();
    let rules = egress.as_array().unwrap().iter();
    let ports = rules.map(|rule| rule["ports"].as_array().unwrap().iter());
    let ports: Vec<Vec<u64>> = ports
        .map(|ports| ports.map(|port| port["port"].as_u64().unwrap()).collect())
        .collect();
    assert!(ports.contains(&vec![443, 587, 465, 25, 2525]), "{ports:?}");
}

#[test]
fn an_autoscaler_owns_the_number_of_pods_and_a_budget_counts_its_maximum() {
    let Some(helm) = Helm::find() else { return };
    let release = helm.release(Case::with(
        "hpa",
        &json!({"receiver": {"autoscaling": {"maxReplicas": 1, "minReplicas": 1}}}),
    ));
    for (name, range) in [
        ("-worker", [2, 10]),
        ("-llm-service", [2, 5]),
        ("-receiver", [1, 1]),
    ] {
        let autoscaler = &release.object("HorizontalPodAutoscaler", name)["spec"];
        assert_eq!(
            [&autoscaler["minReplicas"], &autoscaler["maxReplicas"]],
            [&json!(range[0]), &json!(range[1])]
        );
        assert_eq!(
            autoscaler["scaleTargetRef"]["name"],
            json!(format!("release-tarsy{name}"))
        );
        assert_eq!(
            release.object("Deployment", name)["spec"]["replicas"],
            Value::Null,
            "{name}"
        );
        let budgets = release.of_kind("PodDisruptionBudget");
        let has_budget = budgets
            .iter()
            .any(|budget| text(&budget["metadata"]["name"]).ends_with(name));
        assert_eq!(has_budget, range[1] > 1, "{name}");
    }
    let metrics =
        |name: &str| release.object("HorizontalPodAutoscaler", name)["spec"]["metrics"][0].clone();
    assert_eq!(
        metrics("-llm-service")["pods"]["metric"]["name"],
        "tarsy_llm_requests_in_flight"
    );
    let cpu = json!({"type": "Utilization", "averageUtilization": 70});
    assert_eq!(
        metrics("-receiver")["resource"],
        json!({"name": "cpu", "target": cpu})
    );
    let fixed = helm.release(Case::with("production", &json!({})));
    assert_eq!(
        fixed.of_kind("HorizontalPodAutoscaler"),
        Vec::<&Value>::new()
    );
    assert_eq!(
        fixed.object("Deployment", "-llm-service")["spec"]["replicas"],
        3
    );
}
