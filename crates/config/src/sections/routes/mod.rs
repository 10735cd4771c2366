//! `routes`: assigns alerts, by labels and other facts, a chain, fewer tools, a priority, a cooldown, an hourly
//! limit, or no investigation.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use crate::read::names::Names;
use crate::read::reader::{Field, Map};
use crate::tool_pattern::ToolPattern;
use crate::write::{is_default, written};
use tarsy_core::alert::Severity;
use tarsy_core::routing::{Facts, Matcher};

/// Each route is the value of a label in metrics.
const MAX_ROUTES: usize = 64;
const MAX_NAME_CHARS: usize = 40;
const MAX_REASON_CHARS: usize = 120;
const MAX_PER_HOUR: u32 = 10_000;

/// The routes in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Routes(Vec<AlertRoute>);

/// A route: its settings apply to the alerts that meet all of its matchers. An absent key changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AlertRoute {
    /// Shown on the timeline, and a value of the metric.
    #[serde(serialize_with = "written")]
    pub name: String,
    /// All of them have to hold; an empty list holds for every alert.
    #[serde(rename = "match", serialize_with = "written")]
    pub matchers: Vec<Matcher>,
    /// The chain that investigates it, unless its header names one.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub chain: Option<String>,
    /// Of the tools that the chain offers, those that one of these patterns names.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub tools: Option<Vec<ToolPattern>>,
    /// The queue that `tarsy receive` chooses, unless the request names one. A worker ignores it.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: Option<Severity>,
    /// Instead of `dedupe.cooldown`.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub cooldown: Option<Duration>,
    /// Investigations that it opens in an hour, at least 1. Alerts above that are listed in a session.
    #[serde(skip_serializing_if = "is_default")]
    pub max_per_hour: Option<u32>,
    /// Whether it ends without an investigation.
    #[serde(skip_serializing_if = "is_default")]
    pub ignore: bool,
    /// The reason why it is ignored, for people.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub reason: Option<String>,
}

impl AlertRoute {
    fn matches(&self, facts: &Facts) -> bool {
        self.matchers.iter().all(|matcher| matcher.matches(facts))
    }

    /// The reason why its alerts are ignored, in one line; `None` for a route that ignores none.
    pub fn ignored_because(&self) -> Option<String> {
        let reason = self
            .reason
            .as_deref()
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        self.ignore.then(|| format!("route {}{reason}", self.name))
    }

    /// Whether each alert of `other` surely meets its matchers.
    fn covers(&self, other: &Self) -> bool {
        self.matchers.iter().all(|matcher| {
            other
                .matchers
                .iter()
                .any(|known| matcher.follows_from(known))
        })
    }

    fn read(map: &mut Map<'_>, names: &Names) -> Self {
        let name = map
            .required("name", "a name")
            .and_then(|field| name(&field));
        let matchers = map.required("match", "a list of matchers, such as ['team=\"storage\"']");
        let matchers = matchers.and_then(|field| field.list()).unwrap_or_default();
        let tools = map.list("tools", |field| {
            let text = crate::declared::texts::tool_pattern(field)?;
            ToolPattern::parse(&text)
        });
        let priority = map.get("priority");
        let route = Self {
            name: name.unwrap_or_default(),
            matchers: matchers.iter().filter_map(matcher).collect(),
            chain: map.reference("chain", &names.chains),
            tools: tools.filter(|tools| !tools.is_empty()),
            priority: priority.and_then(|field| field.choice(&Severity::ALL, Severity::as_str)),
            cooldown: map.duration("cooldown", 0..=30 * 24 * 3_600),
            max_per_hour: map.number("max_per_hour", 1..=MAX_PER_HOUR),
            ignore: map.flag("ignore").unwrap_or_default(),
            reason: None,
        };
        let reason = map.get("reason").and_then(|field| reason(&field, &route));
        Self { reason, ..route }
    }

    /// The first key of an action that has no effect on an ignored alert.
    fn without_effect(&self) -> Option<&'static str> {
        let keys = [
            ("chain", self.chain.is_some()),
            ("tools", self.tools.is_some()),
            ("priority", self.priority.is_some()),
            ("cooldown", self.cooldown.is_some()),
            ("max_per_hour", self.max_per_hour.is_some()),
        ];
        keys.into_iter()
            .find(|(_, is_given)| *is_given && self.ignore)
            .map(|(key, _)| key)
    }
}

fn name(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=MAX_NAME_CHARS).contains(&text.len()) && text.chars().all(is_name) {
        return Some(text);
    }
    field.expected("a name of at most 40 letters, digits, - and _");
    None
}

fn matcher(field: &Field<'_>) -> Option<Matcher> {
    let text = field.text()?;
    Matcher::parse(&text)
        .inspect_err(|fault| field.fault(format!("{text:?}: {fault}")))
        .ok()
}

fn reason(field: &Field<'_>, route: &AlertRoute) -> Option<String> {
    let text = field.text()?;
    if !route.ignore {
        field.fault("a reason without ignore: true".to_owned());
    }
    if text.trim().is_empty()
        || text.chars().count() > MAX_REASON_CHARS
        || text.contains(char::is_control)
    {
        field.expected("one line of at most 120 characters");
    }
    Some(text)
}

impl Routes {
    pub(crate) fn read(map: &mut Map<'_>, names: &Names) -> Self {
        let Some(section) = map.get("routes") else {
            return Self::default();
        };
        let fields = section.list().unwrap_or_default();
        if fields.len() > MAX_ROUTES {
            section.fault(format!(
                "{} routes; accepted: at most {MAX_ROUTES}",
                fields.len()
            ));
        }
        let mut known = BTreeSet::new();
        let mut routes = Vec::new();
        for field in fields {
            let route = field.section(|map| AlertRoute::read(map, names));
            if let Some(key) = route.without_effect() {
                field.fault(format!("{key} has no effect beside ignore: true"));
            }
            if !route.name.is_empty() && !known.insert(route.name.clone()) {
                field.fault(format!("a second route {:?}", route.name));
            }
            routes.push(route);
        }
        Self(routes)
    }

    pub fn iter(&self) -> impl Iterator<Item = &AlertRoute> {
        self.0.iter()
    }

    /// The first route whose matchers all hold.
    pub fn first(&self, facts: &Facts) -> Option<&AlertRoute> {
        self.0.iter().find(|route| route.matches(facts))
    }

    /// Routes that no alert reaches, because all of theirs belong to an earlier one; each with that one.
    pub fn covered(&self) -> Vec<(&AlertRoute, &AlertRoute)> {
        let covering = |(at, route)| {
            let earlier = self.0.iter().take(at).find(|earlier| earlier.covers(route));
            earlier.map(|earlier| (route, earlier))
        };
        self.0.iter().enumerate().filter_map(covering).collect()
    }
}

#[cfg(test)]
mod tests;
