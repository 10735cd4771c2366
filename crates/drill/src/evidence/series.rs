//! Decides whether a query in `PromQL` selects a recorded series.
//!
//! A series has a metric and labels. A query asks for it if it selects this metric, if the labels satisfy each of its
//! matchers, and if it aggregates in a way that leaves the series as it is. Rates, arithmetic, offsets and comparisons
//! are other questions.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Aggregations that leave a single series unchanged.
const AGGREGATIONS: [&str; 4] = ["sum", "avg", "max", "min"];

/// A recorded series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Series {
    /// The names of the metric; exporters have different ones for the same values.
    pub metrics: Vec<String>,
    pub labels: BTreeMap<String, String>,
    /// The labels that the query has to group by. By default it may group by any labels of the series.
    pub by: Option<Vec<String>>,
}

impl Series {
    /// Whether a query asks for the series.
    pub(super) fn answers(&self, query: &str) -> bool {
        Query::parse(query).is_some_and(|query| {
            let groups = match &self.by {
                Some(by) => {
                    query.by.len() == by.len() && query.by.iter().all(|label| by.contains(label))
                }
                None => query.by.iter().all(|label| self.labels.contains_key(label)),
            };
            groups
                && self.metrics.contains(&query.metric)
                && query.matchers.iter().all(|matcher| self.satisfies(matcher))
        })
    }

    fn satisfies(&self, matcher: &Matcher) -> bool {
        let label = self.labels.get(&matcher.label).map(String::as_str);
        match (matcher.operator, label) {
            ("=", Some(label)) => label == matcher.value,
            // A query excludes containers without a name, which no recorded series has.
            ("!=", label) => label.is_none_or(|label| label != matcher.value),
            ("=~", Some(label)) => is_like(&matcher.value, label),
            ("!~", Some(label)) => !is_like(&matcher.value, label),
            ("!~", None) => true,
            _ => false,
        }
    }
}

/// A selector with aggregations around it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    metric: String,
    matchers: Vec<Matcher>,
    by: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Matcher {
    label: String,
    operator: &'static str,
    value: String,
}

impl Query {
    /// `None` for anything that is more than a selector with aggregations.
    fn parse(text: &str) -> Option<Self> {
        let mut query = Self::default();
        let rest = query.expression(text.trim())?;
        rest.trim().is_empty().then_some(query)
    }

    /// Reads an expression and returns the text after it.
    fn expression<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let text = text.trim_start();
        if let Some(inner) = text.strip_prefix('(') {
            return self.expression(inner)?.trim_start().strip_prefix(')');
        }
        let (name, rest) = word(text)?;
        if AGGREGATIONS.contains(&name.to_lowercase().as_str()) {
            let rest = self.grouping(rest)?;
            let inner = rest.trim_start().strip_prefix('(')?;
            let behind = self.expression(inner)?.trim_start().strip_prefix(')')?;
            return self.grouping(behind);
        }
        if rest.trim_start().starts_with('(') {
            return None;
        }
        name.clone_into(&mut self.metric);
        match rest.trim_start().strip_prefix('{') {
            Some(inner) => self.matchers(inner),
            None => Some(rest),
        }
    }

    /// Reads `by (a, b)`, if it is there.
    fn grouping<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let Some((keyword, rest)) = word(text.trim_start()) else {
            return Some(text);
        };
        if !keyword.eq_ignore_ascii_case("by") {
            return None;
        }
        let (labels, behind) = rest.trim_start().strip_prefix('(')?.split_once(')')?;
        let labels = labels
            .split(',')
            .map(str::trim)
            .filter(|label| !label.is_empty());
        self.by.extend(labels.map(str::to_owned));
        Some(behind)
    }

    fn matchers<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let mut rest = text.trim_start();
        loop {
            if let Some(behind) = rest.strip_prefix('}') {
                return Some(behind);
            }
            let (label, behind) = word(rest)?;
            let behind = behind.trim_start();
            let operator = ["=~", "!~", "!=", "="]
                .into_iter()
                .find(|operator| behind.starts_with(operator))?;
            let quoted = behind.strip_prefix(operator)?.trim_start();
            let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (value, behind) = quoted.strip_prefix(quote)?.split_once(quote)?;
            self.matchers.push(Matcher {
                label: label.to_owned(),
                operator,
                value: value.to_owned(),
            });
            rest = behind.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
    }
}

/// The name at the beginning of a text, and the text after it.
fn word(text: &str) -> Option<(&str, &str)> {
    let length = text.len()
        - text
            .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
            .len();
    let (name, rest) = text.split_at_checked(length)?;
    name.starts_with(|c: char| !c.is_ascii_digit())
        .then_some((name, rest))
}

/// Whether a label fits a pattern of alternatives with `.*` and `.+`; `None` of the other signs of expressions is read.
fn is_like(pattern: &str, label: &str) -> bool {
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    let pattern = pattern.strip_suffix('$').unwrap_or(pattern);
    let pattern = pattern
        .strip_prefix('(')
        .and_then(|inner| inner.strip_suffix(')'))
        .unwrap_or(pattern);
    pattern
        .split('|')
        .any(|one| is_glob(&one.replace('\\', "").replace(".+", ".*"), label))
}

fn is_glob(pattern: &str, label: &str) -> bool {
    let Some((first, pieces)) = pattern.split_once(".*") else {
        return pattern == label;
    };
    let Some(mut rest) = label.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = pieces.rsplit_once(".*").unwrap_or(("", pieces));
    for piece in middle.split(".*") {
        let Some((_, behind)) = rest.split_once(piece) else {
            return false;
        };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(by: Option<&[&str]>) -> Series {
        let labels = [
            ("namespace", "checkout"),
            ("pod", "checkout-7d9-x2"),
            ("container", "checkout"),
        ];
        Series {
            metrics: vec!["container_memory_working_set_bytes".to_owned()],
            labels: labels
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            by: by.map(|by| by.iter().map(|label| (*label).to_owned()).collect()),
        }
    }

    #[test]
    fn every_spelling_of_the_selector_asks_for_the_series() {
        for query in [
            "container_memory_working_set_bytes",
            "container_memory_working_set_bytes{}",
            "container_memory_working_set_bytes{namespace=\"checkout\", container='checkout',}",
            " ( max by (pod) (container_memory_working_set_bytes{pod=~\"checkout-.*\"}) ) ",
            "sum(container_memory_working_set_bytes{pod=~\"^(checkout-7d9.+|other)$\",container!=\"\",container!=\"POD\"}) by (pod, container)",
            "avg(container_memory_working_set_bytes{image!~\"pause.*\"})",
        ] {
            assert!(series(None).answers(query), "{query}");
        }
    }

    #[test]
    fn another_question_is_not_answered() {
        for query in [
            "",
            "container_memory_rss",
            "rate(container_memory_working_set_bytes[5m])",
            "container_memory_working_set_bytes[1h]",
            "container_memory_working_set_bytes > 5e8",
            "container_memory_working_set_bytes / container_spec_memory_limit_bytes",
            "container_memory_working_set_bytes offset 1d",
            "container_memory_working_set_bytes{namespace=\"shop\"}",
            "container_memory_working_set_bytes{pod=~\"cart-.*\"}",
            "container_memory_working_set_bytes{cluster=\"west\"}",
            "sum by (node) (container_memory_working_set_bytes)",
            "sum without (pod) (container_memory_working_set_bytes)",
            "max_over_time(container_memory_working_set_bytes[1h])",
            "container_memory_working_set_bytes{pod=\"checkout-7d9-x2\"",
        ] {
            assert!(!series(None).answers(query), "{query}");
        }
    }

    #[test]
    fn a_grouped_series_answers_only_queries_that_group_so() {
        let grouped = series(Some(&["route"]));
        assert!(grouped.answers("sum by (route) (container_memory_working_set_bytes)"));
        assert!(!grouped.answers("sum(container_memory_working_set_bytes)"));
    }
}
