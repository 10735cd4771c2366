//! The rules and dashboards of the chart, and the expressions in them.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// An expression with the place where it stands.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) place: String,
    pub(super) text: String,
}

pub(super) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files with this extension, in order.
pub(super) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository().join(folder))
        .unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    assert!(
        !files.is_empty(),
        "{folder} has no file with the extension {extension}"
    );
    files
}

pub(super) fn rule_files() -> Vec<PathBuf> {
    files("deploy/helm/tarsy/files/rules", "yaml")
}

/// Every rule: its name after `alert` or `record`, and its expression.
pub(super) fn rules(kind: &str) -> Vec<Expression> {
    let mut found = Vec::new();
    for file in rule_files() {
        let text = std::fs::read_to_string(&file).unwrap();
        for rule in text
            .split("\n      - ")
            .filter_map(|rule| rule.strip_prefix(&format!("{kind}: ")))
        {
            let (name, rest) = rule.split_once('\n').unwrap();
            let (_, lines) = rest
                .split_once("expr: |\n")
                .unwrap_or_else(|| panic!("{name} has no expression"));
            let lines: Vec<&str> = lines
                .lines()
                .take_while(|line| line.starts_with("          "))
                .collect();
            let text = lines.join("\n");
            assert!(!text.trim().is_empty(), "{name} has no expression");
            found.push(Expression {
                place: name.to_owned(),
                text,
            });
        }
    }
    found
}

/// Each dashboard with the name of its file.
pub(super) fn dashboards() -> Vec<(String, Value)> {
    let files = files("deploy/helm/tarsy/files/dashboards", "json");
    let read = |file: PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        (
            name,
            serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap(),
        )
    };
    files.into_iter().map(read).collect()
}

/// The panels that show something.
pub(super) fn panels(dashboard: &Value) -> Vec<&Value> {
    dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|panel| panel["type"] != "row")
        .collect()
}

/// The expressions of all panels, with values for Grafana's variables.
pub(super) fn panel_expressions() -> Vec<Expression> {
    let mut found = Vec::new();
    for (name, dashboard) in dashboards() {
        for panel in panels(&dashboard) {
            let targets = panel["targets"].as_array().unwrap();
            assert!(
                !targets.is_empty(),
                "{name}: {} asks nothing",
                panel["title"]
            );
            for target in targets {
                let place = format!("{name}: {}", panel["title"].as_str().unwrap());
                found.push(Expression {
                    place,
                    text: with_values(target["expr"].as_str().unwrap()),
                });
            }
        }
    }
    found
}

pub(super) fn annotation_expressions() -> Vec<Expression> {
    let of = |(name, dashboard): (String, Value)| {
        let annotations = dashboard["annotations"]["list"].as_array().unwrap().clone();
        annotations.into_iter().map(move |annotation| Expression {
            place: format!(
                "{name}: annotation {}",
                annotation["name"].as_str().unwrap()
            ),
            text: with_values(annotation["expr"].as_str().unwrap()),
        })
    };
    dashboards().into_iter().flat_map(of).collect()
}

fn with_values(expression: &str) -> String {
    let values = [
        ("$__rate_interval", "5m"),
        ("$namespace", ".*"),
        ("$provider", ".*"),
        ("$price_input", "2"),
        ("$price_output", "12"),
    ];
    let text = values
        .iter()
        .fold(expression.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        });
    assert!(!text.contains('$'), "a variable without a value: {text}");
    text
}

/// The expression without its comparisons with a number, which leave nothing while all is well.
pub(super) fn without_thresholds(expression: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in expression.split_whitespace() {
        let number = word.trim_end_matches(')');
        if matches!(words.last(), Some(&(">" | "<" | "==" | ">=" | "<=")))
            && number.parse::<f64>().is_ok()
        {
            words.pop();
            words.push(&word[number.len()..]);
        } else {
            words.push(word);
        }
    }
    words.join(" ")
}

/// The names of metrics in an expression: words with one of these beginnings.
pub(super) fn metric_names(expression: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let words = expression.split(|letter| !is_part(letter));
    let starts = ["tarsy_", "tarsy:", "gen_ai_client", "process_"];
    words
        .filter(|word| starts.iter().any(|start| word.starts_with(start)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn an_expression_without_thresholds_keeps_everything_else() {
    assert_eq!(without_thresholds("a > 0.72 and b == 0"), "a  and b ");
    assert_eq!(
        without_thresholds("sum(x) / (sum(y) > 0) > 0.1"),
        "sum(x) / (sum(y) ) "
    );
    assert_eq!(
        without_thresholds("a >= b unless on (c) d"),
        "a >= b unless on (c) d"
    );
    assert_eq!(
        metric_names("sum by (le) (rate(tarsy_a_bucket{x=\"y\"}[5m])) > tarsy:b:c"),
        ["tarsy_a_bucket", "tarsy:b:c"]
    );
}
