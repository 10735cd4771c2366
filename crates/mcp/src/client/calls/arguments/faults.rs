//! The faults of arguments as sentences for a model. They name places and rules, and repeat no value of an argument.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::Comparison;

/// Further faults are only counted as "more".
const MAX_FAULTS: usize = 5;
/// The rest of a longer fault is cut off.
const MAX_FAULT_BYTES: usize = 300;
/// The alternatives of `anyOf` and `oneOf` that one fault names.
const MAX_ALTERNATIVES: usize = 4;

/// Compares `arguments` with a compiled schema.
pub(super) fn find(validator: &Validator, arguments: &Value) -> Comparison {
    let mut lines = Vec::new();
    for error in validator.iter_errors(arguments) {
        if !is_certain(&error) {
            return Comparison::Unchecked;
        }
        if lines.len() == MAX_FAULTS {
            lines.push("- more".to_owned());
            break;
        }
        lines.push(line(&error));
    }
    if lines.is_empty() {
        return Comparison::Fit;
    }
    let head = "the call was not sent, because its arguments do not fit the schema of the tool:";
    Comparison::Unfit(format!(
        "{head}\n{}\nCorrect the arguments and call the tool again.",
        lines.join("\n")
    ))
}

/// Whether the arguments have a fault, and not the check itself.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "an enum of the crate with some forty kinds of faults"
)]
fn is_certain(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        ValidationErrorKind::BacktrackLimitExceeded { .. }
        | ValidationErrorKind::RegexEngineFailure { .. }
        | ValidationErrorKind::Referencing(_) => false,
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().flatten().all(is_certain)
        }
        ValidationErrorKind::PropertyNames { error } => is_certain(error),
        _ => true,
    }
}

fn line(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().as_str();
    let place = if place.is_empty() {
        "the arguments"
    } else {
        place
    };
    let fault = format!("- {place}: {}", sentence(error));
    if fault.len() <= MAX_FAULT_BYTES {
        return fault;
    }
    let end = fault.floor_char_boundary(MAX_FAULT_BYTES);
    format!("{}…", fault.get(..end).unwrap_or_default())
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "an enum of the crate with some forty kinds of faults"
)]
fn sentence(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let mut alternatives: Vec<String> = Vec::new();
            for first in context.iter().filter_map(|errors| errors.first()) {
                let alternative = first.masked().to_string();
                if !alternatives.contains(&alternative) && alternatives.len() < MAX_ALTERNATIVES {
                    alternatives.push(alternative);
                }
            }
            if alternatives.is_empty() {
                error.masked().to_string()
            } else {
                alternatives.join(", and ")
            }
        }
        _ => error.masked().to_string(),
    }
}
