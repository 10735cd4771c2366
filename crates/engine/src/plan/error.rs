//! The errors of planning.

/// The reason why no plan could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The header names a chain that is not defined.
    #[error("header Tarsy-Chain names {named:?}; defined: {}", defined.join(", "))]
    UnknownChain { named: String, defined: Vec<String> },
    /// The header names tools that the chain does not offer.
    #[error(
        "header Tarsy-Tools: {pattern:?} names no tool that the chain and the route of the alert offer"
    )]
    UnknownTools { pattern: String },
    /// The configuration refers to a name that it does not define. Cannot happen after its validation.
    #[error("configuration does not define {kind} {name:?}")]
    Undefined {
        /// `chain`, `agent` or `provider`.
        kind: &'static str,
        name: String,
    },
}

pub(super) fn undefined(kind: &'static str, name: &str) -> PlanError {
    PlanError::Undefined {
        kind,
        name: name.to_owned(),
    }
}
