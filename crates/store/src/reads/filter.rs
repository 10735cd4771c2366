//! The conditions that select sessions for a list.

use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::sql_types::{Bool, Nullable, Text, Timestamptz};

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
/// queries share. Search and labels read the index of `session_words`, and no text.
macro_rules! filtered {
    ($query:ident, $filter:ident) => {
        use tarsy_core::search;
        use crate::reads::filter::{self, one_of};
        if $filter.waits_for_approval {
            let words: Vec<&str> = $filter.statuses.iter().map(|status| status.as_str()).collect();
            $query = $query.filter(filter::waits_for_approval().or(alert_sessions::status.eq_any(words)));
        } else {
            one_of!($query, alert_sessions::status, $filter.statuses.iter().map(|status| status.as_str()));
        }
        one_of!($query, alerts::severity, $filter.severities.iter().map(|severity| severity.as_str()));
        one_of!($query, alert_sessions::chain, $filter.chains.iter());
        one_of!($query, alerts::source, $filter.sources.iter());
        if let Some(since) = $filter.since {
            $query = match since {
                tarsy_core::clock::Moment::At(at) => $query.filter(alert_sessions::created_at.ge(at)),
                tarsy_core::clock::Moment::Ago(ago) => {
                    let begin = filter::ago().bind::<diesel::sql_types::Double, _>(ago.as_secs_f64()).sql(")");
                    $query.filter(alert_sessions::created_at.ge(begin))
                }
            };
        }
        if let Some(until) = $filter.until {
            $query = match until {
                tarsy_core::clock::Moment::At(at) => $query.filter(alert_sessions::created_at.lt(at)),
                tarsy_core::clock::Moment::Ago(ago) => {
                    let end = filter::ago().bind::<diesel::sql_types::Double, _>(ago.as_secs_f64()).sql(")");
                    $query.filter(alert_sessions::created_at.lt(end))
                }
            };
        }
        match $filter.questions {
            tarsy_reports::Questions::Shown => {}
            tarsy_reports::Questions::Hidden => $query = $query.filter(alert_sessions::parent_id.is_null()),
        }
        if !$filter.about.is_empty() {
            let about: Vec<uuid::Uuid> = $filter.about.iter().map(|id| id.0).collect();
            $query = $query.filter(alert_sessions::parent_id.eq_any(about));
        }
        let labels = $filter.labels.iter().map(|label| Some(search::label_query(&label.key, &label.value)));
        for words in labels.chain($filter.search.iter().map(|words| search::query(words))) {
            $query = match words {
                None => $query.filter(diesel::dsl::sql::<diesel::sql_types::Bool>("false")),
                Some(words) => {
                    let found = diesel::dsl::sql::<diesel::sql_types::Bool>(
                        "alert_sessions.session_id IN (SELECT w.session_id FROM session_words w WHERE w.words @@ ",
                    );
                    $query.filter(found.bind::<diesel::sql_types::Text, _>(words).sql("::tsquery)"))
                }
            };
        }
    };
}

/// The columns of a `SessionLine`, in the order of its fields.
macro_rules! session_line {
    () => {
        (
            alert_sessions::session_id,
            alert_sessions::created_at,
            alert_sessions::finished_at,
            alert_sessions::status,
            alert_sessions::stop_reason,
            alert_sessions::mark,
            alerts::severity.nullable(),
            alerts::title.nullable(),
            alerts::alert_type.nullable(),
            alert_sessions::chain,
            alert_sessions::worker_name,
            alert_sessions::parent_id,
            crate::reads::filter::newest_verdict(),
        )
    };
}

pub(super) use {filtered, one_of, session_line};

/// The newest verdict of a person about a session of the list.
pub(super) fn newest_verdict() -> SqlLiteral<Nullable<Text>> {
    sql(
        "(SELECT v.verdict FROM verdicts v WHERE v.session_id = alert_sessions.session_id \
         ORDER BY v.created_at DESC, v.verdict_id DESC LIMIT 1)",
    )
}

/// Whether a session waits for a person: it has no owner, and its lease has not ended.
pub(super) fn waits_for_approval() -> SqlLiteral<Bool> {
    sql(WAITS_FOR_APPROVAL)
}

/// The condition in the statements of other reads.
pub(super) const WAITS_FOR_APPROVAL: &str = "(alert_sessions.status = 'running' AND alert_sessions.lease_owner IS NULL \
     AND alert_sessions.lease_expires_at > clock_timestamp())";

/// The beginning of a time that the database counts back from its own clock.
pub(super) fn ago() -> SqlLiteral<Timestamptz> {
    sql("now() - make_interval(secs => ")
}
