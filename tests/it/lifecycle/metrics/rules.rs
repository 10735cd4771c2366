//! The alerts, recording rules and dashboards, as Prometheus parses them. Their tests are in `tests/monitoring/`.

use std::collections::BTreeSet;

use tarsy_store::OPERATIONS;
use tarsy_telemetry::names::all;

use super::checked;
use super::expressions::{
    annotation_expressions, dashboards, files, metric_names, panel_expressions, panels, repository,
    rule_files, rules,
};
use crate::support::monitoring::program;

#[test]
fn prometheus_accepts_the_rules_and_all_their_tests_pass() {
    let Some(promtool) = program("TARSY_TEST_PROMTOOL") else {
        return;
    };
    for file in rule_files() {
        let answer = checked(
            &promtool,
            &[
                "check",
                "rules",
                "--lint=all",
                "--lint-fatal",
                file.to_str().unwrap(),
            ],
            "",
        );
        assert!(answer.contains("SUCCESS"), "{answer}");
    }
    for file in files("tests/monitoring", "yaml") {
        let answer = checked(&promtool, &["test", "rules", file.to_str().unwrap()], "");
        assert!(answer.contains("SUCCESS"), "{answer}");
    }
}

#[test]
fn each_alert_fires_in_one_test_stays_silent_in_another_and_has_a_page() {
    let tests: Vec<String> = files("tests/monitoring", "yaml")
        .into_iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let tests: Vec<&str> = tests
        .iter()
        .flat_map(|text| text.split("\n  - name: ").skip(1))
        .collect();
    let alerts = rules("alert");
    assert!(alerts.len() > 20, "{alerts:?}");
    for alert in &alerts {
        let name = &alert.place;
        let of_alert = |test: &&&str| test.contains(&format!("        alertname: {name}\n"));
        let (silent, firing): (Vec<&str>, Vec<&str>) = tests
            .iter()
            .filter(of_alert)
            .partition(|test| test.trim_end().ends_with("exp_alerts: []"));
        assert_eq!((firing.len(), silent.len()), (1, 1), "{name}");
        assert!(
            firing[0].contains("exp_labels:") && firing[0].contains("exp_annotations:"),
            "{name}"
        );
        let page = std::fs::read_to_string(repository().join(format!("docs/runbooks/{name}.md")));
        let page = page.unwrap_or_else(|error| panic!("docs/runbooks/{name}.md: {error}"));
        assert!(page.starts_with(&format!("# {name}\n")), "{name}: {page}");
        for part in [
            "**Symptom.**",
            "**Meaning.**",
            "**Look at.**",
            "**Remedy.**",
        ] {
            assert!(page.contains(part), "the page of {name} has no part {part}");
        }
    }
    let names: BTreeSet<String> = alerts.into_iter().map(|alert| alert.place).collect();
    for page in files("docs/runbooks", "md") {
        let name = page.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            name == "README" || names.contains(&name),
            "docs/runbooks/{name}.md belongs to no alert"
        );
    }
    for rule in rule_files() {
        let text = std::fs::read_to_string(rule).unwrap();
        for name in text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("runbook_url: docs/runbooks/"))
        {
            assert!(names.contains(name.trim_end_matches(".md")), "{name}");
        }
    }
}

#[test]
fn every_metric_of_the_rules_and_dashboards_is_exported_or_recorded() {
    let mut known: BTreeSet<String> = rules("record").into_iter().map(|rule| rule.place).collect();
    for metric in all() {
        match metric.kind.buckets() {
            Some(_) => known
                .extend(["bucket", "sum", "count"].map(|part| format!("{}_{part}", metric.name))),
            None => drop(known.insert(metric.name.to_owned())),
        }
    }
    let places = [
        rules("alert"),
        rules("record"),
        panel_expressions(),
        annotation_expressions(),
    ]
    .concat();
    for expression in &places {
        let names = metric_names(&expression.text);
        assert!(
            !names.is_empty() || expression.text.contains("ALERTS"),
            "{expression:?}"
        );
        for name in names {
            assert!(known.contains(&name), "{name} is no metric: {expression:?}");
        }
    }
}

#[test]
fn every_operation_of_the_store_is_a_label_value() {
    let metric = all()
        .find(|metric| metric.name == "tarsy_db_query_duration_seconds")
        .unwrap();
    assert_eq!(metric.labels[0].unwrap().values, OPERATIONS);
}

#[test]
fn every_expression_of_the_dashboards_parses() {
    let Some(promtool) = program("TARSY_TEST_PROMTOOL") else {
        return;
    };
    let expressions = [panel_expressions(), annotation_expressions()].concat();
    let rule = |(index, expression): (usize, &super::expressions::Expression)| {
        format!(
            "      - {{record: 'panel:{index}', expr: {}}}\n",
            serde_json::json!(expression.text)
        )
    };
    let rules: String = expressions.iter().enumerate().map(rule).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        format!("groups:\n  - name: panels\n    rules:\n{rules}"),
    )
    .unwrap();
    let answer = checked(
        &promtool,
        &["check", "rules", file.path().to_str().unwrap()],
        "",
    );
    assert!(
        answer.contains(&format!("{} rules found", expressions.len())),
        "{answer}"
    );
}

#[test]
fn every_panel_has_a_title_of_its_own_a_unit_and_a_description() {
    let mut uids = BTreeSet::new();
    for (name, dashboard) in dashboards() {
        assert!(
            uids.insert(dashboard["uid"].as_str().unwrap().to_owned()),
            "{name}: the uid is used twice"
        );
        let (mut ids, mut titles) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: {panel}");
            assert!(
                titles.insert(panel["title"].as_str().unwrap()),
                "{name}: {panel}"
            );
            let place = &panel["gridPos"];
            assert!(
                place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24,
                "{name}: {panel}"
            );
        }
        for panel in panels(&dashboard) {
            assert_eq!(
                panel["datasource"]["uid"], "${datasource}",
                "{name}: {panel}"
            );
            assert!(
                panel["fieldConfig"]["defaults"]["unit"]
                    .as_str()
                    .is_some_and(|unit| !unit.is_empty()),
                "{panel}"
            );
            assert!(
                panel["description"]
                    .as_str()
                    .is_some_and(|text| text.ends_with('.')),
                "{name}: {panel}"
            );
            for target in panel["targets"].as_array().unwrap() {
                assert_eq!(
                    target["datasource"]["uid"], "${datasource}",
                    "{name}: {target}"
                );
                assert!(
                    !target["legendFormat"].as_str().unwrap().is_empty(),
                    "{name}: {target}"
                );
            }
        }
    }
}
