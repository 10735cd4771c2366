//! The conditions that select sessions for a list.

use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::sql_types::Timestamptz;

use crate::reports::Label;

/// Adds the condition that a column has one of these words; none for an empty list. One word is compared by `=`: the
/// rows of an index are then in the order of its second column, which they are not for several words.
macro_rules! one_of {
    ($query:ident, $column:expr, $words:expr) => {
        let words: Vec<String> = $words.map(ToString::to_string).collect();
        match words.as_slice() {
            [] => {}
            [one] => $query = $query.filter($column.eq(one.clone())),
            _ => $query = $query.filter($column.eq_any(words)),
        }
    };
}

/// Adds the conditions of a filter to a boxed query of sessions with their alerts, whose type has no name that two
/// queries share. Search and labels use the expressions of the two indexes: any other expression would read every body.
macro_rules! filtered {
    ($query:ident, $filter:ident) => {
        use crate::store::reads::filter::{self, one_of};
        one_of!($query, alert_sessions::status, $filter.statuses.iter().map(|status| status.as_str()));
        one_of!($query, alerts::severity, $filter.severities.iter().map(|severity| severity.as_str()));
        one_of!($query, alert_sessions::chain, $filter.chains.iter());
        one_of!($query, alerts::source, $filter.sources.iter());
        if let Some(since) = $filter.since {
            $query = match since {
                crate::investigation::clock::Moment::At(at) => $query.filter(alert_sessions::created_at.ge(at)),
                crate::investigation::clock::Moment::Ago(ago) => {
                    let begin = filter::ago().bind::<diesel::sql_types::Double, _>(ago.as_secs_f64()).sql(")");
                    $query.filter(alert_sessions::created_at.ge(begin))
                }
            };
        }
        if let Some(until) = $filter.until {
            $query = match until {
                crate::investigation::clock::Moment::At(at) => $query.filter(alert_sessions::created_at.lt(at)),
                crate::investigation::clock::Moment::Ago(ago) => {
                    let end = filter::ago().bind::<diesel::sql_types::Double, _>(ago.as_secs_f64()).sql(")");
                    $query.filter(alert_sessions::created_at.lt(end))
                }
            };
        }
        match $filter.questions {
            crate::reports::Questions::Shown => {}
            crate::reports::Questions::Hidden => $query = $query.filter(alert_sessions::parent_id.is_null()),
        }
        if !$filter.about.is_empty() {
            let about: Vec<uuid::Uuid> = $filter.about.iter().map(|id| id.0).collect();
            $query = $query.filter(alert_sessions::parent_id.eq_any(about));
        }
        for label in &$filter.labels {
            let found = diesel::dsl::sql::<diesel::sql_types::Bool>(
                "alert_sessions.session_id IN (SELECT alert_id FROM alerts WHERE body IS NOT NULL AND ",
            )
            .sql("to_tsvector('simple', left(body, 150000)) @@ (plainto_tsquery('simple', ")
            .bind::<diesel::sql_types::Text, _>(filter::line(label))
            .sql(") || plainto_tsquery('simple', ")
            .bind::<diesel::sql_types::Text, _>(filter::item(label))
            .sql(") || plainto_tsquery('simple', ")
            .bind::<diesel::sql_types::Text, _>(filter::pair(label))
            .sql(") || plainto_tsquery('simple', ")
            .bind::<diesel::sql_types::Text, _>(filter::lines(label))
            .sql(")) AND left(body, 150000) ~ ")
            .bind::<diesel::sql_types::Text, _>(filter::pattern(label))
            .sql(")");
            $query = $query.filter(found);
        }
        if let Some(words) = &$filter.search {
            let found = diesel::dsl::sql::<diesel::sql_types::Bool>(
                "alert_sessions.session_id IN (SELECT alert_id FROM alerts WHERE body IS NOT NULL AND ",
            )
            .sql("to_tsvector('simple', left(body, 150000)) @@ websearch_to_tsquery('simple', ")
            .bind::<diesel::sql_types::Text, _>(words.clone())
            .sql(") UNION ALL SELECT session_id FROM alert_sessions WHERE final_analysis IS NOT NULL AND ")
            .sql("to_tsvector('simple', left(final_analysis, 150000)) @@ websearch_to_tsquery('simple', ")
            .bind::<diesel::sql_types::Text, _>(words.clone())
            .sql("))");
            $query = $query.filter(found);
        }
    };
}

pub(super) use {filtered, one_of};

/// The beginning of a time that the database counts back from its own clock.
pub(super) fn ago() -> SqlLiteral<Timestamptz> {
    sql("now() - make_interval(secs => ")
}

// How a label is written in the text of an alert. Each form has words of its own: those of `a.b/c: d` are others than
// those of `a.b/c=d`.

pub(super) fn line(label: &Label) -> String {
    format!("{}: {}", label.key, label.value)
}

pub(super) fn item(label: &Label) -> String {
    format!("{}:{}", label.key, label.value)
}

pub(super) fn pair(label: &Label) -> String {
    format!("{}={}", label.key, label.value)
}

pub(super) fn lines(label: &Label) -> String {
    format!("{}\n{}", label.key, label.value)
}

/// The same forms as a regular expression: a line `key: value`, also of a numbered list; `key=value` between spaces,
/// commas or braces; or a line with the name of a label before one with its value.
pub(super) fn pattern(label: &Label) -> String {
    let (key, value) = (escaped(&label.key), escaped(&label.value));
    format!(
        r#"(^|\n)[ \t]*(- |[0-9]+: )?{key}: ?{value}[ \t]*(\n|$)|(^|[\s,{{]){key}="?{value}"?($|[\s,}}])|(^|\n)[ \t]*(name|tag|key): {key}\n[ \t]*value: {value}[ \t]*(\n|$)"#
    )
}

/// A text as a regular expression of Postgres that matches it alone.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for letter in text.chars() {
        if letter.is_ascii_punctuation() && letter != '_' {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}
