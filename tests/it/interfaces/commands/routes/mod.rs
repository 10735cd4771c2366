//! `tarsy routes test`, on the real program.

use serde_json::json;

use super::run_with;

const ROUTES: &str = "
mcp_servers: {k8s: {command: k}}
agent_chains:
  usual: {default: true, stages: [{agents: [{name: sre}]}]}
  payments: {alert_types: [Pay], stages: [{agents: [{name: sre}]}]}
routes:
- {name: quiet, match: [alertname=Watchdog], ignore: true, reason: it always fires}
- {name: payments, match: ['namespace=~\"pay.*\"'], chain: payments, tools: ['k8s.*'], priority: low, cooldown: 6h}
- {name: late, match: [alertname=Watchdog, x=y]}
";

#[tokio::test]
async fn the_route_of_an_alert_is_shown_with_its_reasons_and_actions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tarsy.yaml");
    std::fs::write(&file, ROUTES).unwrap();
    let config = file.to_str().unwrap();
    let test = async |labels: serde_json::Value, more: &[&str]| {
        let body = json!({"labels": labels, "status": "firing"}).to_string();
        let args = [&["routes", "test", "--config", config], more].concat();
        run_with(&[], &args, body.as_bytes()).await
    };
    let pay = json!({"alertname": "Slow", "namespace": "payments", "severity": "critical"});
    let shown = test(pay.clone(), &["-H", "tarsy-tools: k8s.get"])
        .await
        .exits(0)
        .out;
    for line in [
        "  route     payments, because namespace=~\"pay.*\"",
        "  not       quiet: alertname=Watchdog does not hold for \"Slow\"",
        "  chain     payments, by the route",
        "  tools     those of the chain that are named by k8s.* and by k8s.get",
        "  priority  low, if tarsy receive publishes it",
        "  cooldown  21600 s",
    ] {
        assert!(shown.lines().any(|found| found == line), "{line}\n{shown}");
    }
    let json = test(pay.clone(), &["--json", "-H", "Tarsy-Chain: usual"])
        .await
        .exits(0)
        .json();
    let of = |key: &str| json[0][key].clone();
    assert_eq!(
        (of("route"), of("chain"), of("chain_from")),
        (json!("payments"), json!("usual"), json!("header"))
    );
    assert_eq!(
        (of("tools_of_route"), of("cooldown_s")),
        (json!(["k8s.*"]), json!(21_600))
    );
    let quiet = test(json!({"alertname": "Watchdog"}), &["--json"])
        .await
        .exits(0)
        .json();
    assert_eq!(quiet[0]["ignored_because"], "route quiet: it always fires");
    let none = test(json!({"alertname": "Pay"}), &["--json"])
        .await
        .exits(0)
        .json();
    assert_eq!(
        (&none[0]["route"], &none[0]["chain_from"]),
        (&json!(null), &json!("alert_types"))
    );
    assert!(
        test(pay, &["-H", "Tarsy-Tools: pods"])
            .await
            .exits(1)
            .err
            .contains("\"pods\" names no tool")
    );

    let checked = run_with(&[], &["config", "check", "--config", config], b"")
        .await
        .exits(0)
        .out;
    let hint =
        "routes.late: no alert reaches it: quiet, which is before it, matches all of its alerts";
    assert!(checked.contains(hint), "{checked}");
}
