//! JSON as tables, and back.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::presented;
use crate::readable::presentation::Shown;

/// The lines of the first table below its heading.
fn table(text: &str) -> Vec<Vec<&str>> {
    let lines = text
        .split('\n')
        .skip_while(|line| !line.starts_with("[table 1"));
    lines
        .skip(1)
        .map(|line| line.split('\t').collect())
        .collect()
}

fn value(cell: &str) -> Value {
    serde_json::from_str(cell).unwrap_or_else(|_| Value::String(cell.to_owned()))
}

/// The objects of a table of rows.
fn objects(text: &str) -> Value {
    let table = table(text);
    let (header, rows) = table.split_first().unwrap();
    rows.iter().map(|row| object(header, row)).collect()
}

fn object(header: &[&str], row: &[&str]) -> Value {
    let mut object = Map::new();
    for (name, cell) in header.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
        match name.split_once('.') {
            Some((outer, inner)) => {
                let member = object.entry(outer).or_insert_with(|| json!({}));
                member
                    .as_object_mut()
                    .unwrap()
                    .insert(inner.to_owned(), value(cell));
            }
            None => {
                object.insert((*name).to_owned(), value(cell));
            }
        }
    }
    Value::Object(object)
}

#[test]
fn rows_keep_their_texts_and_tell_null_from_an_absent_value() {
    let text = r#"{
  "items": [
    {"name": "orders", "size": 1.50, "note": null},
    {"name": "12", "size": 9007199254740993},
    {"name": "", "size": 1e400, "note": "tab\there"}
  ],
  "next": null
}"#;
    let shown = presented(text);
    let expected = "{\"items\":<table 1>,\n\"next\":null}\n[table 1: 3 rows, tab-separated]\n\
                    name\tsize\tnote\norders\t1.50\tnull\n\"12\"\t9007199254740993\t\n\"\"\t1e400\t\"tab\\there\"";
    assert_eq!(shown.text, expected);
    let facts = shown.facts.unwrap();
    assert_eq!(
        (facts.own_lines, facts.shown),
        (vec![3], vec![Shown::Table])
    );
}

#[test]
fn series_that_share_their_times_become_columns() {
    let times = [
        "2026-11-27T02:11:00Z",
        "2026-11-27T02:16:00Z",
        "2026-11-27T02:21:00Z",
    ];
    let series = |label: &str, values: [f64; 3]| json!({"Label": label, "Timestamps": times, "Values": values, "StatusCode": "Complete"});
    let empty = json!({"Label": "None", "Timestamps": [], "Values": []});
    let text = json!([
        series("CPU", [1.5, 2.0, 91.0]),
        series("IOPS", [7.0, 8.0, 9.5]),
        empty
    ]);
    let shown = presented(&text.to_string());
    let table = table(&shown.text);
    let has = |row: &[&str]| table.contains(&row.to_vec());
    assert!(has(&["Label", "CPU", "IOPS", "None"]), "{}", shown.text);
    assert!(
        has(&["StatusCode", "Complete", "Complete", ""]),
        "{}",
        shown.text
    );
    assert!(
        has(&["Timestamps", "Values", "Values", "Values"]),
        "{}",
        shown.text
    );
    assert!(has(&[times[2], "91.0", "9.5", ""]), "{}", shown.text);
    let facts = shown.facts.unwrap();
    assert_eq!(
        facts.in_heading(None),
        " · 2026-11-27 02:11:00Z to 02:21:00Z"
    );
}

#[test]
fn a_matrix_of_prometheus_becomes_columns_with_readable_times() {
    let series = |pod: &str, from: u32| {
        let values: Vec<Value> = (0..20)
            .map(|step| json!([1_795_738_200 + step * 60, format!("{}", from + step)]))
            .collect();
        json!({"metric": {"__name__": "up", "namespace": "payments", "pod": pod}, "values": values})
    };
    let result = [series("a", 1), series("b", 100), series("c", 5)];
    let text = json!({"status": "success", "data": {"resultType": "matrix", "result": result}});
    let shown = presented(&text.to_string());
    let table = table(&shown.text);
    let has = |row: &[&str]| table.contains(&row.to_vec());
    assert!(has(&["pod", "", "a", "b", "c"]), "{}", shown.text);
    assert!(
        has(&["time", "utc", "value", "value", "value"]),
        "{}",
        shown.text
    );
    assert!(
        has(&["1795738260", "2026-11-27T00:11:00Z", "2", "101", "6"]),
        "{}",
        shown.text
    );
    assert!(
        shown.text.starts_with("{\"status\":\"success\",\n"),
        "{}",
        shown.text
    );
}

#[test]
fn text_that_is_no_json_and_json_that_saves_nothing_stay() {
    for text in [
        "[1,2,3]",
        "{\"a\": 1} and more",
        "[1,",
        r#"[{"a":1},{"a":2},{"a":3}]"#,
    ] {
        assert_eq!(presented(text).text, text);
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z0-9 .\"{<\\\\\t\n-]{0,12}".prop_map(Value::from),
        "(null|true|12|-1e5|<table 1>|\\[\\]|)".prop_map(Value::from),
    ]
}

proptest! {
    #[test]
    fn a_table_gives_back_the_same_json_values(
        rows in prop::collection::vec((scalar(), prop::option::of(scalar()), scalar(), scalar()), 3..20),
    ) {
        let mut whole = Vec::new();
        for (one, maybe, inner, other) in rows {
            let mut object = json!({"a_long_name_of_a_key": one, "labels_of_it": {"pod_name": inner, "state": other}});
            if let Some(maybe) = maybe {
                object.as_object_mut().unwrap().insert("sometimes".to_owned(), maybe);
            }
            whole.push(object);
        }
        let whole = Value::Array(whole);
        let shown = presented(&serde_json::to_string_pretty(&whole).unwrap());
        prop_assert_eq!(shown.facts.unwrap().shown, [Shown::Table]);
        prop_assert_eq!(objects(&shown.text), whole);
    }
}
