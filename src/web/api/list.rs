//! The parameters of a list of sessions, for the API and the page.

use serde::Deserialize;

use crate::config::read::units::parse_duration;
use crate::engine::ports::RunStatus;
use crate::investigation::ids::SessionId;
use crate::reports::{SessionFilter, SessionPage};
use crate::web::fault::Fault;

/// Sessions of a page, unless the query has another number.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;
/// The longest search, in bytes.
const MAX_SEARCH: usize = 200;

/// The parameters as sent. An empty one counts as absent, as forms send it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::web) struct ListQuery {
    /// A word of [`RunStatus`].
    pub(in crate::web) status: String,
    /// A duration such as `24h`.
    pub(in crate::web) since: String,
    /// Words in the syntax of web searches.
    pub(in crate::web) q: String,
    /// The id after which the page begins.
    pub(in crate::web) before: String,
    /// From 1 to 500.
    pub(in crate::web) limit: String,
}

impl ListQuery {
    /// The page that the parameters select.
    pub(in crate::web) fn page(&self) -> Result<SessionPage, Fault> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let wrong = |name: &str, accepted: &str| Fault::Invalid(format!("{name}: accepted: {accepted}"));
        let status = given(&self.status).map(|word| {
            let known = RunStatus::ALL.into_iter().find(|status| status.as_str() == word);
            known.ok_or_else(|| wrong("status", &RunStatus::ALL.map(RunStatus::as_str).join(", ")))
        });
        let since = given(&self.since)
            .map(|text| parse_duration(&text).ok_or_else(|| wrong("since", "a duration such as 24h or 7d")));
        let before = given(&self.before)
            .map(|text| SessionId::parse(&text).ok_or_else(|| wrong("before", "the id of a session")));
        let limit = given(&self.limit).map(|text| {
            let number = text.parse().ok().filter(|number| (1..=MAX_LIMIT).contains(number));
            number.ok_or_else(|| wrong("limit", &format!("1 to {MAX_LIMIT}")))
        });
        if self.q.len() > MAX_SEARCH {
            return Err(wrong("q", &format!("at most {MAX_SEARCH} bytes")));
        }
        let filter = SessionFilter {
            limit: limit.transpose()?.unwrap_or(DEFAULT_LIMIT),
            status: status.transpose()?,
            since: since.transpose()?,
            search: given(&self.q),
        };
        Ok(SessionPage { filter, before: before.transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parameters_are_checked_and_empty_ones_are_absent() {
        let query = ListQuery { status: "failed".into(), since: "24h".into(), q: " oom ".into(), ..Default::default() };
        let filter = SessionFilter {
            limit: 50,
            status: Some(RunStatus::Failed),
            since: Some(Duration::from_hours(24)),
            search: Some("oom".to_owned()),
        };
        assert_eq!(query.page().unwrap(), SessionPage { filter, before: None });
        for (wrong, named) in [
            (ListQuery { status: "lost".into(), ..Default::default() }, "status: accepted: running, completed"),
            (ListQuery { since: "yesterday".into(), ..Default::default() }, "since"),
            (ListQuery { before: "7".into(), ..Default::default() }, "before"),
            (ListQuery { limit: "501".into(), ..Default::default() }, "limit: accepted: 1 to 500"),
            (ListQuery { limit: "0".into(), ..Default::default() }, "limit"),
            (ListQuery { q: "a".repeat(201), ..Default::default() }, "q: accepted: at most 200 bytes"),
        ] {
            assert!(wrong.page().unwrap_err().to_string().starts_with(named), "{wrong:?}");
        }
    }
}
