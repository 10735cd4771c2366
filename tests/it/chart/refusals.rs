//! Values that cannot work are refused when they are rendered, with a sentence that says what to do.

use serde_json::{Value, json};

use super::helm::{Case, Helm};

/// A values file, what is changed in it, and a part of the refusal.
fn refused() -> Vec<(&'static str, Value, &'static str)> {
    let connections = [
        (
            "default",
            json!({"image": {"repository": ""}}),
            "image.repository is empty",
        ),
        ("default", json!({"nats": {"url": ""}}), "no NATS"),
        (
            "default",
            json!({"nats": {"urlSecret": {"name": "n"}}}),
            "nats.url and nats.urlSecret.name are both set",
        ),
        (
            "default",
            json!({"nats": {"url": "nats://u:p@nats:4222"}}),
            "nats.url has a login",
        ),
        (
            "default",
            json!({"nats": {"login": {"kind": "nkey"}}}),
            "set nats.login.secret.name",
        ),
        (
            "default",
            json!({"nats": {"login": {"secret": {"name": "n"}}}}),
            "say with nats.login.kind what it has",
        ),
        (
            "default",
            json!({"database": {"urlSecret": {"name": ""}}}),
            "no database",
        ),
        (
            "default",
            json!({"database": {"url": "postgres://d"}}),
            "database.url and database.urlSecret.name",
        ),
        (
            "gitops",
            json!({"config": {"worker": {"slots": 2}}}),
            "config and existingConfigMap.name",
        ),
        (
            "trial",
            json!({"nats": {"url": "nats://n:4222"}}),
            "trial.enabled brings NATS",
        ),
        (
            "trial",
            json!({"trial": {"password": ""}}),
            "trial.password is empty",
        ),
        (
            "trial",
            json!({"migrations": {"mode": "hook"}}),
            "before the servers of trial exist",
        ),
        (
            "trial",
            json!({"migrations": {"urlSecret": {"name": "m"}}}),
            "migrations.urlSecret is for a Job",
        ),
        (
            "trial",
            json!({"migrations": {"passwordSecret": {"name": "m"}}}),
            "migrations.passwordSecret is for a Job",
        ),
    ];
    let llm = [
        (
            "default",
            json!({"llmService": {"token": {"secret": {"name": ""}}}}),
            "could spend the keys",
        ),
        (
            "default",
            json!({"llmService": {"token": {"value": "t"}}}),
            "llmService.token.secret and",
        ),
        (
            "default",
            json!({"llmService": {"address": "h:1"}}),
            "llmService.address is for a service outside",
        ),
        (
            "gitops",
            json!({"llmService": {"address": ""}}),
            "set llmService.address",
        ),
        (
            "default",
            json!({"llmService": {"tls": {"clientCaSecret": {"name": "c"}, "clientSecretName": "k"}}}),
            "over TLS only",
        ),
        (
            "production",
            json!({"llmService": {"tls": {"clientSecretName": ""}}}),
            "asks workers for a certificate",
        ),
        (
            "production",
            json!({"config": {"llm_service": {"tls": {"certificate": "/c", "key": "/k"}}}}),
            "config.llm_service.tls are both set",
        ),
        (
            "production",
            json!({"llmService": {"keys": [
                {"variable": "GEMINI_API_KEY", "secret": {"name": "s", "key": "a"}},
                {"variable": "GEMINI_API_KEY", "secret": {"name": "s", "key": "b"}},
                {"variable": "ANTHROPIC_API_KEY", "secret": {"name": "s", "key": "c"}},
            ]}}),
            "llmService.keys has GEMINI_API_KEY twice",
        ),
        (
            "production",
            json!({"receiver": {"token": {"secret": {"name": ""}}}}),
            "could post alerts",
        ),
        (
            "production",
            json!({"receiver": {"token": {"value": "t"}}}),
            "receiver.token.secret and",
        ),
        (
            "production",
            json!({"receiver": {"ingress": {"host": ""}}}),
            "needs receiver.ingress.host",
        ),
    ];
    let tracing = [
        (
            "default",
            json!({"tracing": {"content": true}}),
            "tracing is set without tracing.endpoint",
        ),
        (
            "default",
            json!({"tracing": {"headersSecret": {"name": "h"}}}),
            "tracing is set without tracing.endpoint",
        ),
        (
            "tracing",
            json!({"tracing": {"endpoint": "http://c:4317"}}),
            "tracing.caSecret is for TLS",
        ),
        (
            "tracing",
            json!({"worker": {"terminationGracePeriodSeconds": 61}}),
            "17 s for the last writes need 62",
        ),
    ];
    let scale = [
        (
            "keda",
            json!({"nats": {"login": {"kind": "creds", "secret": {"name": "n"}}}}),
            "autoscaling.keda.account is $G",
        ),
        (
            "hpa",
            json!({"autoscaling": {"minReplicas": 11}}),
            "minReplicas 11 is more than",
        ),
        (
            "hpa",
            json!({"autoscaling": {"minReplicas": 0}}),
            "only keda can start the first worker",
        ),
        (
            "keda",
            json!({"autoscaling": {"keda": {"monitoringEndpoint": ""}}}),
            "set autoscaling.keda.monitoringEndpoint",
        ),
        (
            "keda",
            json!({"database": {"maxConnections": 100}}),
            "20 workers with 9 connections each need 194",
        ),
        (
            "trial",
            json!({"worker": {"replicas": 4}}),
            "for development, and up to 4 workers",
        ),
        (
            "default",
            json!({"worker": {"terminationGracePeriodSeconds": 59}}),
            "for the last writes need 60",
        ),
        (
            "default",
            json!({"config": {"worker": {"drain_timeout": "2m"}}}),
            "for the last writes need 135",
        ),
        (
            "default",
            json!({"llmService": {"preStopSeconds": 60}}),
            "and 5 s need 95",
        ),
        (
            "default",
            json!({"config": {"llm_service": {"drain_timeout": "1h"}}}),
            "and 5 s need 3610",
        ),
        (
            "production",
            json!({"receiver": {"terminationGracePeriodSeconds": 24}}),
            "open requests need 25",
        ),
        (
            "slack",
            json!({"slackReceiver": {"terminationGracePeriodSeconds": 24}}),
            "slackReceiver.terminationGracePeriodSeconds 24 is too short",
        ),
        (
            "slack",
            json!({"config": {"receive": null}}),
            "slackReceiver.enabled needs config.receive.slack",
        ),
        (
            "slack",
            json!({"slackReceiver": {"ingress": {"host": ""}}}),
            "needs slackReceiver.ingress.host",
        ),
    ];
    connections
        .into_iter()
        .chain(llm)
        .chain(tracing)
        .chain(scale)
        .collect()
}

/// The same for routes, metrics and the number of workers.
fn refused_routes() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "gateway",
            json!({"receiver": {"httpRoute": {"parentRefs": []}}}),
            "needs receiver.httpRoute.parentRefs",
        ),
        (
            "gateway",
            json!({"receiver": {"httpRoute": {"hostnames": []}}}),
            "needs receiver.httpRoute.hostnames",
        ),
        (
            "keda",
            json!({"autoscaling": {"keda": {"fallback": {"replicas": 21}}}}),
            "autoscaling.keda.fallback.replicas 21 is more than autoscaling.maxReplicas 20",
        ),
        (
            "gateway",
            json!({"metrics": {"podMonitor": {"enabled": true}}}),
            "metrics.podMonitor and metrics.serviceMonitor are both enabled",
        ),
    ]
}

/// The same for the pods of workers, and for ports.
fn refused_pods() -> Vec<(&'static str, Value, &'static str)> {
    // The server of the example has to stay where its url leads.
    let served = json!({"name": "kubernetes", "image": "i", "port": 8080});
    vec![
        (
            "tools",
            json!({"worker": {"serviceAccount": {"automountToken": false}}}),
            "clusterRoles need",
        ),
        (
            "tools",
            json!({"worker": {"serviceAccount": {"create": false}}}),
            "an account of others",
        ),
        (
            "tools",
            json!({"worker": {"sidecars": [{"name": "a", "image": "i", "port": 9090}, served]}}),
            "a has the port 9090",
        ),
        (
            "tools",
            json!({"worker": {"sidecars": [{"name": "worker", "image": "i", "port": 1}, served]}}),
            "the name worker",
        ),
        (
            "default",
            json!({"metrics": {"port": 50051}}),
            "llmService.service.port and metrics.port are both 50051",
        ),
        (
            "production",
            json!({"metrics": {"port": 8475}}),
            "receiver.service.port and metrics.port are both 8475",
        ),
        (
            "slack",
            json!({"metrics": {"port": 8477}}),
            "slackReceiver.service.port and metrics.port are both 8477",
        ),
    ]
}

/// The same for the web server.
fn refused_web() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "web",
            json!({"web": {"proxySecret": {"name": ""}}}),
            "could read all investigations",
        ),
        (
            "web",
            json!({"web": {"token": {"value": "t", "secret": {"name": "s"}}}}),
            "web.token.secret and",
        ),
        (
            "web",
            json!({"config": {"web": {"auth": "token"}}}),
            "config.web.auth: proxy, which is not set",
        ),
        (
            "web",
            json!({"config": {"web": {"public_url": null}}}),
            "needs config.web.public_url",
        ),
        (
            "web",
            json!({"web": {"ingress": {"host": ""}}}),
            "needs web.ingress.host",
        ),
        (
            "web",
            json!({"web": {"ingress": {"host": "other.example.com"}}}),
            "is neither the host of config.web.public_url",
        ),
        (
            "web",
            json!({"metrics": {"port": 8476}}),
            "web.service.port and metrics.port are both 8476",
        ),
        (
            "web",
            json!({"web": {"terminationGracePeriodSeconds": 29}}),
            "open requests need 30",
        ),
    ]
}

/// The same for the autoscalers of the LLM service and the receiver.
fn refused_autoscalers() -> Vec<(&'static str, Value, &'static str)> {
    let few = json!({"enabled": true, "minReplicas": 4, "maxReplicas": 2});
    let no_target = json!({"enabled": true, "metric": {"name": "calls"}});
    let unmeasured =
        json!({"autoscaling": {"enabled": true}, "resources": {"requests": {"cpu": null}}});
    vec![
        (
            "default",
            json!({"llmService": {"autoscaling": few}}),
            "minReplicas 4 is more than llmService.autoscaling.maxReplicas 2",
        ),
        (
            "production",
            json!({"receiver": {"autoscaling": few}}),
            "receiver.autoscaling.minReplicas 4 is more",
        ),
        (
            "default",
            json!({"receiver": {"autoscaling": {"enabled": true}}}),
            "needs receiver.enabled: there is nothing",
        ),
        (
            "default",
            json!({"llmService": {"autoscaling": no_target}}),
            "metric.name needs llmService.autoscaling.metric.target",
        ),
        (
            "default",
            json!({"llmService": unmeasured}),
            "llmService.resources.requests.cpu, which is not set",
        ),
    ]
}

#[test]
fn values_that_cannot_work_are_refused_with_a_sentence() {
    let Some(helm) = Helm::find() else { return };
    let refused = [
        refused(),
        refused_routes(),
        refused_pods(),
        refused_web(),
        refused_autoscalers(),
    ]
    .concat();
    let cases: Vec<Case> = refused
        .iter()
        .map(|(file, set, _)| Case::with(file, set))
        .collect();
    for ((file, set, expected), rendered) in refused.iter().zip(helm.render(&cases)) {
        let fault = rendered.expect_err(&format!("{file} with {set} is accepted"));
        assert!(fault.contains(expected), "{file} with {set}: {fault}");
        // One change, one sentence: no refusal hides behind another one.
        assert_eq!(
            fault.matches("\n  - ").count(),
            1,
            "{file} with {set}: {fault}"
        );
    }
}

#[test]
fn all_faults_are_reported_at_once() {
    let Some(helm) = Helm::find() else { return };
    let nothing = Case {
        name: "nothing".to_owned(),
        values: json!({}),
    };
    let fault = helm.render(&[nothing]).remove(0).unwrap_err();
    for expected in [
        "image.repository",
        "no NATS",
        "no database",
        "llmService.token.secret.name",
    ] {
        assert!(fault.contains(expected), "{fault}");
    }
    assert_eq!(fault.matches("\n  - ").count(), 4, "{fault}");
}
