//! Results of tools as people read them: JSON as `key: value`, answers of Prometheus as series.
//!
//! Other texts are not changed. What is returned may contain anything that the tool wrote: the caller cleans it.

mod json;
mod prometheus;

use serde_json::Value;

pub use prometheus::{Point, Series};

/// The mark at which a long result is cut (`cut.rs`).
const CUT_MARK: &str = "\n[… ";
/// A terminal shows no longer line.
const MAX_LINE_BYTES: usize = 800;
/// Deeper values are `{…}` in one line.
const MAX_LINE_DEPTH: usize = 4;

/// A result in one line; `None` if it is not JSON. A result that was cut is read as far as it goes.
pub fn line(content: &str) -> Option<String> {
    let content = content.trim();
    if !content.starts_with(['{', '[']) {
        return None;
    }
    if let Ok(value) = serde_json::from_str(content) {
        return Some(value_line(&value));
    }
    let (head, _) = content.split_once(CUT_MARK)?;
    let value = json::begun(head)?;
    Some(format!("{} …", value_line(&value)))
}

/// A whole result in lines: JSON with one value a line, answers of Prometheus with one series after another.
pub fn lines(content: &str) -> Vec<String> {
    let value = serde_json::from_str::<Value>(content.trim())
        .ok()
        .filter(|value| value.is_object() || value.is_array());
    let Some(value) = value else {
        return content.trim_end().lines().map(str::to_owned).collect();
    };
    prometheus::lines(&value).unwrap_or_else(|| {
        let pretty = serde_json::to_string_pretty(&value).unwrap_or_else(|_| content.to_owned());
        pretty.lines().map(str::to_owned).collect()
    })
}

/// The time series of a result; `None` if it is no answer of Prometheus.
pub fn series(content: &str) -> Option<Vec<Series>> {
    let content = content.trim();
    let value = content
        .starts_with('{')
        .then(|| serde_json::from_str(content).ok())
        .flatten()?;
    prometheus::series(&value)
}

fn value_line(value: &Value) -> String {
    prometheus::line(value).unwrap_or_else(|| json::line(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_read_as_names_and_values() {
        for (content, expected) in [
            (
                r#"{"pod": "a", "restarts": 14, "ready": false, "node": null}"#,
                "pod: a, restarts: 14, ready: false, node: null",
            ),
            (
                r#"{"limits": {"memory": "512Mi"}, "ports": [80, 443], "env": []}"#,
                "limits: {memory: 512Mi}, ports: [80, 443], env: []",
            ),
            (r#"[{"a": 1}, {"a": 2}]"#, "2 items: {a: 1}, {a: 2}"),
            (r#"["one", "two"]"#, "2 items: one, two"),
            (
                r#"{"a": {"b": {"c": {"d": {"e": 1}}}}}"#,
                "a: {b: {c: {d: {…}}}}",
            ),
            (
                r#"{"text": "two\n  lines, and \"quotes\""}"#,
                r#"text: two lines, and "quotes""#,
            ),
            ("{}", "{}"),
            ("[]", "0 items"),
        ] {
            assert_eq!(line(content).as_deref(), Some(expected));
        }
        for other in [
            "",
            "plain text",
            "\"text\"",
            "480Mi",
            "{not json",
            "[ERROR] disk full",
        ] {
            assert_eq!(line(other), None, "{other}");
        }
    }

    #[test]
    fn a_cut_result_is_read_as_far_as_it_goes() {
        let cut = "{\"items\": [\n{\"a\": 1},\n{\"a\": 2, \"b\": \"x\n[… 900 of 1000 bytes left out here …]\n\"}]}";
        assert_eq!(line(cut).as_deref(), Some("items: [{a: 1}, {a: 2}] …"));
        assert_eq!(
            line("{\"a\": [[[\n[… 9 of 10 bytes left out here …]\n").as_deref(),
            Some("a: [[[]]] …")
        );
    }

    #[test]
    fn an_answer_of_prometheus_is_a_series() {
        let values =
            [("480", 0), ("490", 300), ("511", 2400)].map(|(value, at)| json!([at, value]));
        let metric = json!({"__name__": "memory_mi", "pod": "checkout", "job": "kubelet"});
        let matrix = json!({"status": "success", "note": "in Mi", "data": {"resultType": "matrix",
            "result": [{"metric": metric, "values": values}]}});
        let wanted =
            "480 → 511 in 40 min (3 values) memory_mi{pod=checkout, job=kubelet}; note: in Mi";
        let found = line(&matrix.to_string()).unwrap();
        let sorted = wanted.replace("pod=checkout, job=kubelet", "job=kubelet, pod=checkout");
        assert!(found == wanted || found == sorted, "{found}");
        assert_eq!(lines(&matrix.to_string()).len(), 5);
        let vector = json!({"status": "success", "data": {"resultType": "vector", "result": [
            {"metric": {"pod": "a"}, "value": [10, "1.5"]}, {"metric": {"pod": "b"}, "value": [10, "NaN"]}]}});
        assert_eq!(
            line(&vector.to_string()).unwrap(),
            "2 series: 1.5 {pod=a}; NaN {pod=b}"
        );
        let none = json!({"status": "success", "data": {"resultType": "matrix", "result": []}});
        assert_eq!(line(&none.to_string()).unwrap(), "no series");
        let scalar =
            json!({"status": "success", "data": {"resultType": "scalar", "result": [10, "7"]}});
        assert_eq!(line(&scalar.to_string()).unwrap(), "7");
        let bytes = json!({"resultType": "vector", "result": [
            {"metric": {"__name__": "rss_bytes"}, "value": [10, "536870912"]}]});
        assert_eq!(line(&bytes.to_string()).unwrap(), "512.0 Mi rss_bytes");
        // Another kind of answer, or one that is not of Prometheus, is JSON as any other.
        let strange = json!({"data": {"resultType": "matrix", "result": [{"values": 4}]}});
        assert_eq!(
            line(&strange.to_string()).unwrap(),
            "data: {resultType: matrix, result: [{values: 4}]}"
        );
    }

    #[test]
    fn a_whole_result_loses_no_value() {
        let json = r#"{"a": [1, {"b": "c"}]}"#;
        let joined = lines(json).join("\n");
        assert_eq!(
            serde_json::from_str::<Value>(&joined).unwrap(),
            serde_json::from_str::<Value>(json).unwrap()
        );
        assert_eq!(lines("one\n  two\n"), ["one", "  two"]);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_no_line_is_long(content in "[\\[{\"a1:,\\]}… \n]{0,200}", at in 0_usize..200) {
            line(&content);
            lines(&content);
            let json = json!({"a": content, "b": [content], "data": {"resultType": content}}).to_string();
            let cut = format!("{}{CUT_MARK}", json.get(..json.floor_char_boundary(at)).unwrap());
            for each in [json, cut] {
                prop_assert!(line(&each).is_none_or(|line| line.len() <= MAX_LINE_BYTES + 200 && !line.contains('\n')));
            }
        }
    }
}
