//! The result of a check of `tarsy doctor`.

use serde::Serialize;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The name of the check, such as `nats` or `mcp k8s`.
    pub check: String,
    pub verdict: Verdict,
    /// The finding in one line.
    pub detail: String,
    /// The command or change that repairs the fault.
    pub fix: Option<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    Ok,
    /// Neither good nor bad.
    Info,
    /// The part works, but an operator should know of the finding.
    Warn,
    /// The part does not work.
    Fail,
}

tarsy_core::words!(pub Verdict);

impl Check {
    /// A finding without a fix.
    pub fn new(check: impl Into<String>, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            verdict,
            detail: detail.into(),
            fix: None,
        }
    }

    /// The same finding with its fix.
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }
}
