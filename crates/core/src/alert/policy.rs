//! The policy for alert statuses: the effect of each status, as far as operators choose it.

use serde::{Deserialize, Serialize};

use super::{Alert, AlertStatus};

/// The effect on a running investigation when its whole alert is resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum OnResolved {
    /// The investigation continues: the model gets the change before its next call, and looks for the cause.
    #[default]
    Continue,
    /// The next answer of the model is its last one.
    Conclude,
    /// The investigation is cancelled.
    Cancel,
}

crate::words!(pub OnResolved, pub ALL);

/// The handling of an acknowledged alert without an open investigation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum OnAcknowledged {
    /// The alert ends without an investigation, because a person is already dealing with it.
    #[default]
    End,
    /// The alert is investigated like one that fires.
    Investigate,
}

crate::words!(pub OnAcknowledged, pub ALL);

impl Alert {
    /// Whether it needs an investigation if there is none.
    pub fn is_investigated(&self, on_acknowledged: OnAcknowledged) -> bool {
        match self.status {
            AlertStatus::Firing => true,
            AlertStatus::Acknowledged => on_acknowledged == OnAcknowledged::Investigate,
            AlertStatus::Resolved | AlertStatus::Test | AlertStatus::Ignored => false,
        }
    }

    /// The same alert, as one that asks for nothing for this reason. A resolution and a test stay what they are.
    #[must_use]
    pub fn ignored(self, because: String) -> Self {
        match self.status {
            AlertStatus::Resolved | AlertStatus::Test | AlertStatus::Ignored => self,
            AlertStatus::Firing | AlertStatus::Acknowledged => Self {
                status: AlertStatus::Ignored,
                ignored_because: Some(because),
                members: Vec::new(),
                reports: Vec::new(),
                ..self
            },
        }
    }

    /// The reason why it ends without an investigation, for people.
    pub fn not_investigated_because(&self) -> String {
        match self.status {
            AlertStatus::Firing | AlertStatus::Resolved => {
                "resolved before it was investigated".to_owned()
            }
            AlertStatus::Acknowledged => "acknowledged: a person has it".to_owned(),
            AlertStatus::Test => format!("test of {} arrived", self.source),
            AlertStatus::Ignored => match &self.ignored_because {
                Some(why) => format!("ignored: {why}"),
                None => "ignored".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::alert;

    #[test]
    fn each_status_is_investigated_or_ends_with_its_reason() {
        let ends = |status, why: Option<&str>, on| {
            let alert = Alert {
                status,
                ignored_because: why.map(str::to_owned),
                ..alert("Disk")
            };
            (!alert.is_investigated(on)).then(|| alert.not_investigated_because())
        };
        let source = alert("Disk").source;
        for (status, why, expected) in [
            (AlertStatus::Firing, None, None),
            (
                AlertStatus::Resolved,
                None,
                Some("resolved before it was investigated".to_owned()),
            ),
            (
                AlertStatus::Acknowledged,
                None,
                Some("acknowledged: a person has it".to_owned()),
            ),
            (
                AlertStatus::Test,
                None,
                Some(format!("test of {source} arrived")),
            ),
            (
                AlertStatus::Ignored,
                Some("a note"),
                Some("ignored: a note".to_owned()),
            ),
        ] {
            assert_eq!(ends(status, why, OnAcknowledged::End), expected);
        }
        assert_eq!(
            ends(AlertStatus::Acknowledged, None, OnAcknowledged::Investigate),
            None
        );
    }
}
