//! The query string of the list: its filter, and the groups of similar sessions that are open.

use super::alike::Group;
use crate::api::ListQuery;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::text::short_id;

/// The period that is shown unless the address has another one.
pub(crate) const PERIOD: &str = "24h";

/// The parameters of the list, as they go into links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub filter: ListQuery,
    pub alike: Alike,
}

/// The display of similar sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Alike {
    /// Similar sessions are one row. A group that has a session with one of these ids is open.
    Folded { open: Vec<String> },
    /// Each session is a row.
    Each,
}

impl Default for Alike {
    fn default() -> Self {
        Self::Folded { open: Vec::new() }
    }
}

impl Alike {
    /// The parameter of an address: `0`, or ids with commas between them.
    pub(crate) fn parse(word: &str) -> Self {
        if word == "0" {
            return Self::Each;
        }
        let ids = word.split(',').map(str::trim).filter_map(SessionId::parse);
        Self::Folded {
            open: ids.take(MAX_OPEN).map(|id| id.to_string()).collect(),
        }
    }

    fn word(&self) -> String {
        match self {
            Self::Folded { open } => open.join(","),
            Self::Each => "0".to_owned(),
        }
    }

    /// The parameter with which one more group is open, or one fewer.
    fn toggled(&self, group: &Group<'_>) -> String {
        let Self::Folded { open } = self else {
            return group.name();
        };
        let mut open = open.clone();
        if group.is_one_of(&open) {
            open.retain(|id| !group.is_one_of(std::slice::from_ref(id)));
        } else {
            open.push(group.name());
        }
        open.join(",")
    }

    pub(super) fn is_open(&self, group: &Group<'_>) -> bool {
        matches!(self, Self::Folded { open } if group.is_one_of(open))
    }
}

/// Open groups of an address.
const MAX_OPEN: usize = 50;

impl Query {
    /// The parameters of an address.
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = || url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let alike = pairs().filter(|(name, _)| name == "alike").last();
        let alike = alike
            .map(|(_, word)| Alike::parse(&word))
            .unwrap_or_default();
        let mut filter = ListQuery::parse(query);
        // A field of the form: it is empty unless it was filled in.
        if let Some((_, from)) =
            pairs().find(|(name, value)| name == "from" && !value.trim().is_empty())
        {
            filter.since = Some(from.trim().to_owned());
        }
        Self { filter, alike }
    }

    /// The period of the list: all times where the address names only its end.
    pub(crate) fn since(&self) -> &str {
        let unless_named = if self.filter.until.is_empty() {
            PERIOD
        } else {
            ""
        };
        self.filter.since.as_deref().unwrap_or(unless_named)
    }

    /// The address of this page with a group of alike sessions opened or folded, at the place of the group.
    pub(super) fn toggle(&self, group: &Group<'_>) -> String {
        let alike = self.alike.toggled(group);
        let place = group.name();
        format!(
            "{}#g-{}",
            self.link(&[("alike", &alike), ("before", &self.filter.before)]),
            short_id(&place)
        )
    }

    /// The address of the list with other parameters, from its first page on. An empty value removes a parameter,
    /// except that of the period.
    pub(crate) fn link(&self, other: &[(&str, &str)]) -> String {
        let is_other = |name: &str| other.iter().any(|(key, _)| *key == name);
        let mut parameters = url::form_urlencoded::Serializer::new(String::new());
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() || name == "since" {
                parameters.append_pair(name, value);
            }
        };
        self.filter
            .pairs()
            .iter()
            .filter(|pair| !is_other(pair.name))
            .for_each(|pair| add(pair.name, pair.value));
        if !is_other("alike") {
            add("alike", &self.alike.word());
        }
        other.iter().for_each(|(name, value)| add(name, value));
        format!("/?{}", parameters.finish())
    }

    /// The address of the first page with this filter.
    pub(super) fn with(&self, filter: &ListQuery) -> String {
        Self {
            filter: filter.clone(),
            alike: self.alike.clone(),
        }
        .link(&[])
    }
}
