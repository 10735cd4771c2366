//! A title names what is broken, and not the exporter that reports it.

use super::*;

fn title(labels: &Value) -> String {
    read_json(&json!({"alerts": [{"labels": labels}]})).title
}

#[test]
fn the_labels_of_an_exporter_give_way_to_those_of_the_object() {
    let ksm = json!({"job": "kube-state-metrics", "namespace": "monitoring", "pod": "kps-kube-state-metrics-5f7",
        "container": "kube-state-metrics", "service": "kps-kube-state-metrics", "instance": "10.244.1.5:8080"});
    let node_exporter = json!({"job": "node-exporter", "namespace": "monitoring", "pod": "kps-node_exporter-x2",
        "container": "node-exporter", "service": "kps-prometheus-node-exporter", "instance": "10.0.0.7:9100"});
    let blackbox = json!({"job": "monitoring/blackbox", "namespace": "monitoring", "pod": "blackbox-5d", "service": "blackbox",
        "instance": "https://shop.example.com/health"});
    let kubelet = json!({"job": "kubelet", "namespace": "kube-system", "service": "kps-kubelet", "instance": "10.0.0.7:10250"});
    let mysql = json!({"job": "mysqld-exporter", "namespace": "monitoring", "pod": "mysqld-exporter-1", "instance": "db-3:3306"});
    for (target, own, expected) in [
        (
            &ksm,
            json!({"alertname": "A", "node": "worker-7"}),
            "A  worker-7",
        ),
        (
            &ksm,
            json!({"alertname": "A", "namespace": "shop", "deployment": "web"}),
            "A  shop/web",
        ),
        (
            &ksm,
            json!({"alertname": "A", "namespace": "shop", "pod": "web-1", "container": "app"}),
            "A  shop/web-1",
        ),
        (
            &ksm,
            json!({"alertname": "A", "namespace": "shop", "job_name": "backup"}),
            "A  shop/backup",
        ),
        (
            &ksm,
            json!({"alertname": "A", "exported_namespace": "shop", "exported_pod": "web-1"}),
            "A  shop/web-1",
        ),
        (
            &ksm,
            json!({"alertname": "A", "persistentvolume": "pv-9"}),
            "A  pv-9",
        ),
        (
            &ksm,
            json!({"alertname": "A"}),
            "A  monitoring/kps-kube-state-metrics-5f7",
        ),
        (
            &ksm,
            json!({"alertname": "A", "namespace": "shop", "pod": "mysqld-exporter-1", "node": "n"}),
            "A  shop/mysqld-exporter-1",
        ),
        (
            &node_exporter,
            json!({"alertname": "A", "device": "/dev/sda1", "mountpoint": "/"}),
            "A  10.0.0.7:9100",
        ),
        (
            &node_exporter,
            json!({"alertname": "A", "nodename": "worker-7"}),
            "A  worker-7",
        ),
        (
            &blackbox,
            json!({"alertname": "A"}),
            "A  https://shop.example.com/health",
        ),
        (
            &blackbox,
            json!({"alertname": "A", "target": "shop.example.com", "instance": "10.2.3.4:9115"}),
            "A  shop.example.com",
        ),
        (
            &kubelet,
            json!({"alertname": "A", "node": "worker-7"}),
            "A  worker-7",
        ),
        (
            &kubelet,
            json!({"alertname": "A", "namespace": "shop", "pod": "web-1", "metrics_path": "/metrics/cadvisor"}),
            "A  shop/web-1",
        ),
        (&mysql, json!({"alertname": "A"}), "A  db-3:3306"),
    ] {
        let mut labels = target.clone();
        labels
            .as_object_mut()
            .unwrap()
            .extend(own.as_object().unwrap().clone());
        assert_eq!(title(&labels), expected, "{labels}");
    }
}

#[test]
fn labels_of_other_collectors_are_known() {
    for (labels, expected) in [
        (
            json!({"alertname": "A", "service.name": "checkout", "k8s.namespace.name": "shop", "k8s.pod.name": "checkout-7"}),
            "A  shop/checkout-7",
        ),
        (
            json!({"alertname": "A", "service_name": "checkout"}),
            "A  checkout",
        ),
        (
            json!({"alertname": "A", "k8s_deployment_name": "web", "k8s_namespace_name": "shop"}),
            "A  shop/web",
        ),
        (
            json!({"alertname": "A", "kubernetes_namespace": "shop", "kubernetes_pod_name": "web-1"}),
            "A  shop/web-1",
        ),
        (
            json!({"alertname": "A", "kube_namespace": "shop", "pod_name": "web-1"}),
            "A  shop/web-1",
        ),
        (json!({"alertname": "A", "host.name": "db-3"}), "A  db-3"),
        (
            json!({"alertname": "A", "k8s.node.name": "worker-7"}),
            "A  worker-7",
        ),
        (
            json!({"alertname": "A", "pod": "web-1", "instance": "10.2.3.4:80"}),
            "A  web-1",
        ),
        (
            json!({"alertname": "A", "namespace": "shop", "node": "worker-7"}),
            "A  shop/worker-7",
        ),
        (
            json!({"alertname": "A", "namespace": "shop", "app.kubernetes.io/name": "web"}),
            "A  shop/web",
        ),
    ] {
        assert_eq!(title(&labels), expected, "{labels}");
    }
}

#[test]
fn the_own_alerts_of_grafana_name_the_rule() {
    for name in ["DatasourceNoData", "DatasourceError"] {
        let labels =
            json!({"alertname": name, "rulename": "Payments error rate", "datasource_uid": "x"});
        assert_eq!(title(&labels), format!("{name}: Payments error rate"));
    }
}

#[test]
fn an_event_of_kubernetes_and_a_rule_of_a_monitor_are_named_by_what_happens() {
    let event = read_json(
        &json!({"metadata": {"name": "web-1.17c0", "namespace": "shop"}, "reason": "BackOff", "type": "Warning",
        "message": "Back-off", "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-1"}}),
    );
    assert_eq!(
        (event.alert_type.as_str(), event.title.as_str()),
        ("BackOff", "BackOff  shop/web-1")
    );
    let monitor =
        read_json(&json!({"monitor": "Nightly backup", "rule": "schedule", "type": "ALERT"}));
    assert_eq!(monitor.alert_type, "Nightly backup");
}

proptest! {
    #[test]
    fn an_exporter_never_hides_the_node(exporter in prop_oneof!["kube-state-metrics", "node-exporter", "cadvisor", "[a-z]{3,8}-exporter"], node in "worker-[0-9]{1,3}", prefix in "[a-z]{2,6}") {
        let pod = format!("{prefix}-{exporter}-5f7d9c");
        let labels = json!({"alertname": "A", "node": node, "pod": pod, "namespace": "monitoring", "job": exporter, "instance": "10.1.2.3:80"});
        prop_assert_eq!(title(&labels), format!("A  {node}"));
    }
}
