//! `routes`: assigns alerts, by labels and other facts, a chain, fewer tools, a priority, a cooldown, an hourly
//! limit, or no investigation.

use std::collections::BTreeSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::{As, Secs, words};
use crate::declared::texts::{
    ChainName, Reason, RouteMatcher, RouteName, SkillName, ToolPattern as ToolName,
};
use crate::read::reader::{Field, Map};
use crate::tool_pattern::ToolPattern;
use crate::write::is_default;
use tarsy_core::alert::Severity;
use tarsy_core::routing::{Facts, Matcher};

/// Each route is the value of a label in metrics.
const MAX_ROUTES: usize = 64;
const MAX_PER_HOUR: u32 = 10_000;

/// The routes in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Routes(Vec<AlertRoute>);

/// A route: its settings apply to the alerts that meet all of its matchers. An absent key changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct AlertRoute {
    /// Shown on the timeline, and a value of the metric.
    #[serde(with = "As::<RouteName>")]
    #[schemars(extend("x-required" = "a name"))]
    pub name: String,
    /// All of them have to hold; an empty list holds for every alert.
    #[serde(rename = "match", with = "As::<Vec<RouteMatcher>>")]
    #[schemars(extend("x-required" = MATCHERS))]
    pub matchers: Vec<Matcher>,
    /// Of the tools that the chain offers, those that one of these patterns names.
    #[serde(with = "As::<Vec<ToolName>>", skip_serializing_if = "is_default")]
    pub tools: Option<Vec<ToolPattern>>,
    /// Skills whose texts are a part of the prompts of its investigations, beside those that the settings require.
    #[serde(with = "As::<Vec<SkillName>>", skip_serializing_if = "is_default")]
    pub required_skills: Vec<String>,
    /// The queue that `tarsy receive` chooses, unless the request names one. A worker ignores it.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "words::<Severity>")]
    pub priority: Option<Severity>,
    /// The chain that investigates it, unless its header names one.
    #[serde(with = "As::<ChainName>", skip_serializing_if = "is_default")]
    pub chain: Option<String>,
    /// Instead of `dedupe.cooldown`.
    #[serde(with = "As::<Secs<0, 2_592_000>>", skip_serializing_if = "is_default")]
    pub cooldown: Option<Duration>,
    /// Investigations that it opens in an hour, at least 1. Alerts above that are listed in a session.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 1, max = MAX_PER_HOUR))]
    pub max_per_hour: Option<u32>,
    /// Whether it ends without an investigation.
    #[serde(skip_serializing_if = "is_default")]
    pub ignore: bool,
    /// The reason why it is ignored, for people.
    #[serde(with = "As::<Reason>", skip_serializing_if = "is_default")]
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

    fn check(&mut self, field: &Field<'_>) {
        self.tools = self.tools.take().filter(|tools| !tools.is_empty());
        if !self.ignore
            && let Some(field) = field.get("reason")
        {
            field.fault("a reason without ignore: true".to_owned());
        }
        if let Some(key) = self.without_effect() {
            field.fault(format!("{key} has no effect beside ignore: true"));
        }
    }

    /// The first key of an action that has no effect on an ignored alert.
    fn without_effect(&self) -> Option<&'static str> {
        let keys = [
            ("chain", self.chain.is_some()),
            ("tools", self.tools.is_some()),
            ("required_skills", !self.required_skills.is_empty()),
            ("priority", self.priority.is_some()),
            ("cooldown", self.cooldown.is_some()),
            ("max_per_hour", self.max_per_hour.is_some()),
        ];
        keys.into_iter()
            .find(|(_, is_given)| *is_given && self.ignore)
            .map(|(key, _)| key)
    }
}

/// The words of what the key `match` accepts.
const MATCHERS: &str = "a list of matchers, such as ['team=\"storage\"']";

impl Routes {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
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
            let route: AlertRoute = field.declared_and_checked(AlertRoute::check);
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
        let mut covered = Vec::new();
        for (at, route) in self.0.iter().enumerate() {
            let mut earlier = self.0.iter().take(at);
            if let Some(earlier) = earlier.find(|earlier| earlier.covers(route)) {
                covered.push((route, earlier));
            }
        }
        covered
    }
}

#[cfg(test)]
mod tests;
