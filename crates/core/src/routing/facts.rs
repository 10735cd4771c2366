//! The values of an alert that matchers compare.

use std::collections::BTreeMap;
use std::fmt;

use crate::intake::Part;
use crate::readable::text::beginning;

/// The most labels of an alert that are compared: the first ones by name.
pub const MAX_LABELS: usize = 64;
/// The longest name and the longest value of a label, in bytes. A longer value is cut, a label with a longer name is
/// left out.
pub const MAX_LABEL_BYTES: usize = 256;

/// The names of what an alert has beside its labels.
pub const OWN_NAMES: [&str; 5] = ["@type", "@source", "@severity", "@subject", "@title"];

/// The values of one alert by their names. They are not masked: they are compared and never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<String, String>);

impl fmt::Debug for Facts {
    /// Omits the values, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Facts {
    /// The facts of an alert whose message has a subject with this end, such as `shop.eu`. Its labels are those that
    /// all of its firing alerts share.
    pub fn new(part: &Part, suffix: &str) -> Self {
        let Part { alert, labels, .. } = part;
        let named = labels
            .iter()
            .filter(|(name, _)| name.len() <= MAX_LABEL_BYTES)
            .take(MAX_LABELS);
        let mut facts: BTreeMap<String, String> = named
            .map(|(name, value)| (name.clone(), beginning(value, MAX_LABEL_BYTES).to_owned()))
            .collect();
        let values = [
            &alert.alert_type,
            &alert.source,
            alert.severity.as_str(),
            suffix,
            &alert.title,
        ];
        facts.extend(
            OWN_NAMES
                .iter()
                .zip(values)
                .map(|(name, value)| ((*name).to_owned(), value.to_owned())),
        );
        Self(facts)
    }

    /// The facts of an alert of Prometheus about which only its name is known.
    pub fn of_name(name: &str) -> Self {
        let names = ["alertname", "@type", "@title"];
        Self(names.map(|fact| (fact.to_owned(), name.to_owned())).into())
    }

    /// The value of a label, or of one of [`OWN_NAMES`]; empty for an absent one.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }
}

#[cfg(any(test, feature = "testing"))]
impl<const N: usize> From<[(&str, &str); N]> for Facts {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::Alert;
    use crate::alert::Severity;
    use crate::testing::alert;

    fn part(labels: BTreeMap<String, String>) -> Part {
        let alert = Alert {
            severity: Severity::High,
            title: "Disk of db-3".to_owned(),
            ..alert("Disk")
        };
        Part {
            index: 0,
            alert,
            labels,
            links: BTreeMap::new(),
            trace: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn an_alert_has_its_own_facts_and_no_label_replaces_them() {
        let labels = [("@severity", "low"), ("team", "storage")];
        let part = part(
            labels
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        );
        let facts = Facts::new(&part, "shop.eu");
        let found = ["@type", "@severity", "@subject", "@title", "team", "absent"]
            .map(|name| facts.get(name));
        assert_eq!(
            found,
            ["Disk", "high", "shop.eu", "Disk of db-3", "storage", ""]
        );
        assert_eq!(
            format!("{facts:?}").matches("storage").count(),
            0,
            "{facts:?}"
        );
    }

    #[test]
    fn labels_beyond_the_bounds_are_cut_or_left_out() {
        let mut labels: BTreeMap<String, String> = (0..100)
            .map(|number| (format!("l{number:03}"), "v".to_owned()))
            .collect();
        labels.insert("a".to_owned(), "é".repeat(200));
        labels.insert("b".repeat(MAX_LABEL_BYTES + 1), "v".to_owned());
        let facts = Facts::new(&part(labels), "");
        assert_eq!(facts.get("a"), "é".repeat(128));
        assert_eq!((facts.get("l062"), facts.get("l063")), ("v", ""));
        assert_eq!(facts.0.len(), MAX_LABELS + OWN_NAMES.len());
    }
}
