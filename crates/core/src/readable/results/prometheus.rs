//! Answers of the Prometheus HTTP API: `{"status": …, "data": {"resultType": …, "result": […]}}`, or `data` alone.
//!
//! Source: <https://prometheus.io/docs/prometheus/latest/querying/api/#expression-query-result-formats>

use std::time::Duration;

use chrono::DateTime;
use serde_json::Value;

use super::json::{self, shortened};
use crate::readable::format;

/// A time series, or a value of an instant query.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// `name{label=value, …}`; not cleaned.
    pub name: String,
    /// The name says that the values are bytes.
    is_bytes: bool,
    pub points: Vec<Point>,
}

/// A value with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Unix time in seconds.
    pub at: f64,
    /// The value as Prometheus writes it: a number, `NaN` or `+Inf`.
    pub value: String,
}

/// The answer in one line: `480 → 511 in 40 min (9 values) name{labels}`.
pub(super) fn line(value: &Value) -> Option<String> {
    let all = series(value)?;
    let count = match all.len() {
        0 => "no series".to_owned(),
        1 => String::new(),
        many => format!("{many} series: "),
    };
    let each = all
        .iter()
        .take(20)
        .map(Series::line)
        .collect::<Vec<_>>()
        .join("; ");
    let others = others(value)
        .into_iter()
        .map(|other| format!("; {other}"))
        .collect::<String>();
    Some(shortened(format!("{count}{each}{others}")))
}

/// Every value of every series, with its time.
pub(super) fn lines(value: &Value) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for series in series(value)? {
        lines.push(series.name);
        lines.extend(
            series
                .points
                .iter()
                .map(|Point { at, value }| format!("  {}  {value}", time(*at))),
        );
    }
    lines.extend(others(value));
    Some(lines)
}

/// The other parts of the answer, such as warnings.
fn others(value: &Value) -> Vec<String> {
    let object = value
        .as_object()
        .filter(|object| object.contains_key("data"));
    let others = object
        .into_iter()
        .flatten()
        .filter(|(name, _)| !matches!(name.as_str(), "status" | "data"));
    others
        .map(|(name, value)| format!("{name}: {}", json::line(value)))
        .collect()
}

/// The series of an answer of Prometheus; `None` for any other text.
pub(super) fn series(value: &Value) -> Option<Vec<Series>> {
    let data = value.get("data").unwrap_or(value);
    let result = data.get("result")?.as_array()?;
    match data.get("resultType")?.as_str()? {
        "matrix" => result
            .iter()
            .map(|one| Series::parse(one, one.get("values")?.as_array()?))
            .collect(),
        "vector" => result
            .iter()
            .map(|one| Series::parse(one, std::slice::from_ref(one.get("value")?)))
            .collect(),
        "scalar" | "string" => Some(vec![Series::parse(
            data,
            std::slice::from_ref(data.get("result")?),
        )?]),
        _ => None,
    }
}

impl Series {
    fn parse(value: &Value, points: &[Value]) -> Option<Self> {
        let points = points
            .iter()
            .map(|point: &Value| {
                let [at, value] = point.as_array()?.as_slice() else {
                    return None;
                };
                Some(Point {
                    at: at.as_f64()?,
                    value: value.as_str()?.to_owned(),
                })
            })
            .collect::<Option<Vec<_>>>()?;
        let labels = value.get("metric").and_then(Value::as_object);
        let own = labels
            .and_then(|labels| labels.get("__name__"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let labels = labels
            .into_iter()
            .flatten()
            .filter(|(label, _)| *label != "__name__");
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{name}={}", json::line(value)))
            .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(", "))
        };
        Some(Self {
            name: format!("{own}{labels}"),
            is_bytes: own.ends_with("_bytes"),
            points,
        })
    }

    fn line(&self) -> String {
        let values = match self.points.as_slice() {
            [] => "no value".to_owned(),
            [only] => self.shown(&only.value),
            [first, .., last] => {
                let from = self.shown(&first.value);
                let to = self.shown(&last.value);

                let span = Duration::try_from_secs_f64(last.at - first.at).unwrap_or_default();
                let count = format::count(self.points.len(), "value");
                format!("{from} → {to} in {} ({count})", format::span(span))
            }
        };
        format!("{values} {}", self.name).trim_end().to_owned()
    }

    /// Bytes in units of 1024, as Kubernetes writes them; the whole result has them exactly.
    pub fn shown(&self, value: &str) -> String {
        let bytes = value
            .parse::<f64>()
            .ok()
            .filter(|bytes| self.is_bytes && bytes.is_finite());
        match bytes {
            Some(bytes) if bytes >= 1024.0 * 1024.0 * 1024.0 => {
                format!("{:.1} Gi", bytes / 1024.0 / 1024.0 / 1024.0)
            }
            Some(bytes) if bytes >= 1024.0 * 1024.0 => format!("{:.1} Mi", bytes / 1024.0 / 1024.0),
            Some(_) | None => value.to_owned(),
        }
    }
}

fn time(at: f64) -> String {
    let millis = Duration::try_from_secs_f64(at)
        .ok()
        .and_then(|at| i64::try_from(at.as_millis()).ok());
    let time = millis.and_then(DateTime::from_timestamp_millis);
    time.map_or_else(
        || at.to_string(),
        |time| time.format("%Y-%m-%d %H:%M:%SZ").to_string(),
    )
}
