//! `Difference`, a field of a stream or consumer that is not as expected.

use std::fmt;

/// Fields that may be larger than expected.
const AT_LEAST: [&str; 3] = ["num_replicas", "max_bytes", "max_age"];

/// A difference between a stream or consumer and the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `TARSY_ALERTS` or `TARSY_ALERTS/critical`.
    pub object: String,
    /// The field that differs; `None` if the stream or consumer is missing.
    pub field: Option<FieldDifference>,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDifference {
    pub name: &'static str,
    /// The value on the server, as JSON or a duration.
    pub found: String,
    pub expected: String,
    /// The reason for the expected value.
    pub why: &'static str,
}

impl Difference {
    pub(crate) fn missing(object: &str) -> Self {
        Self {
            object: object.to_owned(),
            field: None,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            None => write!(f, "{}: missing", self.object),
            Some(field) => {
                let is_bound = AT_LEAST.contains(&field.name)
                    && !["not set", "-1"].contains(&field.expected.as_str());
                let least = if is_bound { "at least " } else { "" };
                write!(
                    f,
                    "{}: {} is {}, must be {least}{} ({})",
                    self.object, field.name, field.found, field.expected, field.why
                )
            }
        }
    }
}
