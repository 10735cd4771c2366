//! The parameters of a list of sessions, for the API and the page.

use chrono::{DateTime, Utc};

use crate::fault::Fault;
pub(crate) use tarsy_config::read::moment::{self, Edge, parse_moment};
use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::RunStatus;
use tarsy_reports::{Label, Questions, SessionFilter, SessionPage};

/// Sessions of a page, unless the query has another number.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;
/// The longest search, and the longest name of a chain or source, in bytes.
const MAX_SEARCH: usize = 200;
/// Values of one parameter.
const MAX_VALUES: usize = 20;

/// The parameters as sent. An empty one counts as absent, as forms send it; a name that is not listed here, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListQuery {
    /// Words of [`RunStatus`].
    pub status: Vec<String>,
    /// Words of [`Severity`].
    pub severity: Vec<String>,
    pub chain: Vec<String>,
    pub source: Vec<String>,
    /// Each `key=value`; a session has to have all of them.
    pub label: Vec<String>,
    /// A moment, or an empty text for all times; `None` where the address has neither.
    pub since: Option<String>,
    /// A moment.
    pub until: String,
    /// Words in the syntax of web searches.
    pub q: String,
    /// A word of [`Questions`]; an empty one is that of the reader: the API shows them.
    pub questions: String,
    /// The id after which the page begins.
    pub before: String,
    /// A number from 1 to 500.
    pub limit: String,
}

/// The selection that the parameters make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub page: SessionPage,
    /// The parameters that say something.
    pub query: ListQuery,
    /// The faults of the invalid parameters, with the accepted values.
    pub faults: Vec<String>,
}

/// A value of the filter, as a person reads it, and the parameters without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub name: &'static str,
    pub value: String,
    pub without: ListQuery,
}

impl ListQuery {
    /// The parameters of an address. Those that select by words may be repeated, or have several words with commas
    /// between them; of any other one the last value counts.
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let mut read = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let value = value.trim();
            let words = |list: &mut Vec<String>| list.extend(value.split(',').filter_map(given));
            match name.as_ref() {
                "since" => read.since = Some(value.to_owned()),
                _ if value.is_empty() => {}
                "status" => words(&mut read.status),
                "severity" => words(&mut read.severity),
                "chain" => words(&mut read.chain),
                "source" => words(&mut read.source),
                "label" => read.label.push(value.to_owned()),
                "until" => read.until = value.to_owned(),
                "q" => read.q = value.to_owned(),
                "questions" => read.questions = value.to_owned(),
                "before" => read.before = value.to_owned(),
                "limit" => read.limit = value.to_owned(),
                _ => {}
            }
        }
        for list in [
            &mut read.status,
            &mut read.severity,
            &mut read.chain,
            &mut read.source,
            &mut read.label,
        ] {
            let mut seen = std::collections::BTreeSet::new();
            list.retain(|word| seen.insert(word.clone()));
        }
        read
    }

    /// The page that the parameters select.
    ///
    /// # Errors
    /// When one of them is wrong.
    pub(crate) fn page(&self, now: DateTime<Utc>) -> Result<SessionPage, Fault> {
        let Selection {
            page, mut faults, ..
        } = self.selection(now);
        if faults.is_empty() {
            Ok(page)
        } else {
            Err(Fault::Invalid(faults.swap_remove(0)))
        }
    }

    /// The selection that the valid parameters make.
    pub(crate) fn selection(&self, now: DateTime<Utc>) -> Selection {
        let mut checked = CheckedQuery {
            query: self.clone(),
            faults: Vec::new(),
        };
        let accepted = RunStatus::ALL.map(RunStatus::as_str).join(", ");
        let accepted = format!("{accepted}, {WAITING}");
        let statuses = checked.words("status", |query| &mut query.status, &accepted, status);
        let waits_for_approval = statuses.contains(&Status::WaitingForApproval);
        let statuses = statuses.into_iter().filter_map(Status::run).collect();
        let severities = checked.words(
            "severity",
            |query| &mut query.severity,
            &Severity::ALL.map(Severity::as_str).join(", "),
            |word| word.parse().ok(),
        );
        let chains = checked.words("chain", |query| &mut query.chain, "names of chains", short);
        let sources = checked.words(
            "source",
            |query| &mut query.source,
            "names of sources",
            short,
        );
        let labels = checked.words(
            "label",
            |query| &mut query.label,
            "key=value, for example namespace=checkout",
            |text| text.parse::<Label>().ok(),
        );
        let since = self.since.as_deref().unwrap_or_default();
        let since = checked.one("since", since, moment::ACCEPTED, |text| {
            parse_moment(text, Edge::Begin, now)
        });
        let until = checked.one("until", &self.until, moment::ACCEPTED, |text| {
            parse_moment(text, Edge::End, now)
        });
        let before = checked.one(
            "before",
            &self.before,
            "the id of a session",
            SessionId::parse,
        );
        let limits = format!("1 to {MAX_LIMIT}");
        let limit = checked.one("limit", &self.limit, &limits, limit_of);
        let lengths = format!("at most {MAX_SEARCH} bytes");
        let search = checked.one("q", &self.q, &lengths, short);
        let words = Questions::ALL.map(Questions::as_str).join(", ");
        let questions = checked.one("questions", &self.questions, &words, questions_of);
        let filter = SessionFilter {
            limit: limit.unwrap_or(DEFAULT_LIMIT),
            statuses,
            waits_for_approval,
            severities,
            chains,
            sources,
            labels,
            since,
            until,
            search,
            questions: questions.unwrap_or_default(),
            about: Vec::new(),
        };
        Selection {
            page: SessionPage { filter, before },
            query: checked.query,
            faults: checked.faults,
        }
    }

    /// Each parameter with its value, for an address. An empty period differs from none.
    pub(crate) fn pairs(&self) -> Vec<Pair<'_>> {
        let lists = [
            ("status", &self.status),
            ("severity", &self.severity),
            ("chain", &self.chain),
            ("source", &self.source),
            ("label", &self.label),
        ];
        let lists = lists
            .into_iter()
            .flat_map(|(name, list)| list.iter().map(move |value| Pair { name, value }));
        let since = self.since.iter().map(|value| Pair {
            name: "since",
            value,
        });
        let texts = [
            ("until", &self.until),
            ("q", &self.q),
            ("questions", &self.questions),
            ("limit", &self.limit),
        ];
        let texts = texts
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| Pair { name, value });
        lists.chain(since).chain(texts).collect()
    }

    /// Each value that hides sessions.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let lists: [(&'static str, List); 5] = [
            ("status", |query| &mut query.status),
            ("severity", |query| &mut query.severity),
            ("chain", |query| &mut query.chain),
            ("source", |query| &mut query.source),
            ("label", |query| &mut query.label),
        ];
        for (name, list) in lists {
            for value in list(&mut self.clone()) {
                let mut without = self.clone();
                list(&mut without).retain(|other| other != value);
                parts.push(Part {
                    name,
                    value: value.clone(),
                    without,
                });
            }
        }
        let texts: [(&'static str, Text); 3] = [
            ("since", |query| query.since.get_or_insert_default()),
            ("until", |query| &mut query.until),
            ("words", |query| &mut query.q),
        ];
        for (name, text) in texts {
            let mut without = self.clone();
            let value = std::mem::take(text(&mut without));
            if !value.is_empty() {
                parts.push(Part {
                    name,
                    value,
                    without,
                });
            }
        }
        parts
    }
}

/// A parameter of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair<'q> {
    pub name: &'static str,
    pub value: &'q str,
}

/// The values of one parameter.
type List = fn(&mut ListQuery) -> &mut Vec<String>;
/// The value of a parameter that has only one.
type Text = fn(&mut ListQuery) -> &mut String;

/// A query without its wrong parameters, each of which leaves a fault.
struct CheckedQuery {
    query: ListQuery,
    faults: Vec<String>,
}

impl CheckedQuery {
    fn words<T>(
        &mut self,
        name: &str,
        list: List,
        accepted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        let words = std::mem::take(list(&mut self.query));
        let mut values = Vec::new();
        let is_too_many = words.len() > MAX_VALUES;
        for word in words.into_iter().take(MAX_VALUES) {
            match read(&word) {
                Some(value) => {
                    list(&mut self.query).push(word);
                    values.push(value);
                }
                None => self.faults.push(format!("{name}: accepted: {accepted}")),
            }
        }
        if is_too_many {
            self.faults
                .push(format!("{name}: accepted: at most {MAX_VALUES} values"));
        }
        values
    }

    fn one<T>(
        &mut self,
        name: &str,
        sent: &str,
        accepted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let value = read(&given(sent)?);
        if value.is_none() {
            self.faults.push(format!("{name}: accepted: {accepted}"));
            match name {
                "since" => self.query.since = None,
                "until" => self.query.until.clear(),
                "before" => self.query.before.clear(),
                "limit" => self.query.limit.clear(),
                "questions" => self.query.questions.clear(),
                _ => self.query.q.clear(),
            }
        }
        value
    }
}

fn given(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The word for sessions that run and wait for a person.
pub(crate) const WAITING: &str = "waiting_for_approval";

/// A word of `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Run(RunStatus),
    WaitingForApproval,
}

impl Status {
    fn run(self) -> Option<RunStatus> {
        match self {
            Self::Run(status) => Some(status),
            Self::WaitingForApproval => None,
        }
    }
}

/// `timed-out` is the word of the commands.
fn status(word: &str) -> Option<Status> {
    let word = word.replace('-', "_");
    if word == WAITING {
        return Some(Status::WaitingForApproval);
    }
    let mut all = RunStatus::ALL.into_iter();
    all.find(|status| status.as_str() == word).map(Status::Run)
}

fn limit_of(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|limit| (1..=MAX_LIMIT).contains(limit))
}

fn short(text: &str) -> Option<String> {
    (text.len() <= MAX_SEARCH).then(|| text.to_owned())
}

fn questions_of(word: &str) -> Option<Questions> {
    Questions::ALL
        .into_iter()
        .find(|questions| questions.as_str() == word)
}

#[cfg(test)]
mod tests;
