//! Compares the arguments of a call with the JSON schema of its tool before the call is sent.
//!
//! Arguments with one sensible reading are written as the schema wants them (`fitted`). The comparison refuses only
//! what the schema clearly forbids. With a schema that cannot be used, or that would take too long, the call is sent
//! unchecked, because the server checks its arguments itself. No reference outside of the schema is followed.

mod cost;
mod faults;
mod fitted;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::{PatternOptions, Validator};
use rmcp::model::JsonObject;
use serde_json::Value;

use tarsy_mask::MASKED;

/// The longest comparison. `cost` limits the work long before; this is for a machine that is overloaded.
const MAX_TIME: Duration = Duration::from_secs(2);
/// A larger compiled pattern makes a schema unusable.
const MAX_PATTERN_BYTES: usize = 256 * 1024;
/// Steps back that a pattern may take. Patterns without look-around and back-references take none.
const MAX_BACKTRACKS: usize = 10_000;
/// Compiled schemas that are kept. When there are more, all are dropped and compiled again when they are needed.
const MAX_KEPT: usize = 128;

/// The result of comparing the arguments of a call with the schema of its tool.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::client) enum Comparison {
    /// The schema accepts the arguments.
    Fit,
    /// The schema cannot be used. The server decides.
    Unchecked,
    /// The schema forbids the arguments. The model gets this text, which quotes the schema and is not masked.
    Unfit(String),
}

impl Comparison {
    /// The word in metrics.
    pub(in crate::client) fn as_str(&self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Unchecked => "unchecked",
            Self::Unfit(_) => "unfit",
        }
    }
}

/// A schema that was compiled, or that cannot be.
type Compiled = Option<Arc<Validator>>;

/// Compares arguments with schemas, and keeps the schemas that were compiled.
#[derive(Debug, Default)]
pub(in crate::client) struct ArgumentChecks {
    compiled: Mutex<HashMap<Arc<str>, Compiled>>,
}

impl ArgumentChecks {
    /// Compares `arguments` with `schema`, a JSON schema as text, and writes them as it wants them. Takes two
    /// seconds at most. Cancel safe.
    pub(in crate::client) async fn compare(
        self: &Arc<Self>,
        schema: &str,
        arguments: &mut JsonObject,
    ) -> Comparison {
        // A masked value in a schema would forbid the true one.
        if schema.contains(MASKED) {
            return Comparison::Unchecked;
        }
        let given = Value::Object(arguments.clone());
        let checks = Arc::clone(self);
        let schema = Arc::<str>::from(schema);
        let comparing = tokio::task::spawn_blocking(move || checks.compare_fitted(&schema, &given));
        let Ok(Ok((comparison, fitted))) = tokio::time::timeout(MAX_TIME, comparing).await else {
            return Comparison::Unchecked;
        };
        if let Some(Value::Object(fitted)) = fitted {
            *arguments = fitted;
        }
        comparison
    }

    /// The comparison and, if it needs them, other arguments. Those that fit stay as they are.
    fn compare_fitted(&self, schema: &Arc<str>, arguments: &Value) -> (Comparison, Option<Value>) {
        let Ok(parsed) = serde_json::from_str(schema) else {
            return (Comparison::Unchecked, None);
        };
        let parsed = fitted::with_null(parsed);
        let comparison = self.compare_now(schema, &parsed, arguments);
        if !matches!(comparison, Comparison::Unfit(_)) {
            return (comparison, None);
        }
        let Some(fitted) = fitted::fitted(&parsed, arguments) else {
            return (comparison, None);
        };
        match self.compare_now(schema, &parsed, &fitted) {
            Comparison::Fit => (Comparison::Fit, Some(fitted)),
            Comparison::Unchecked => (comparison, None),
            // The faults that remain after the corrections are those that the model has to correct.
            unfit @ Comparison::Unfit(_) => (unfit, None),
        }
    }

    fn compare_now(&self, schema: &Arc<str>, parsed: &Value, arguments: &Value) -> Comparison {
        if !cost::is_bounded(parsed, arguments) {
            return Comparison::Unchecked;
        }
        let Some(validator) = self.compiled(schema, parsed) else {
            return Comparison::Unchecked;
        };
        faults::find(&validator, arguments)
    }

    fn compiled(&self, schema: &Arc<str>, parsed: &Value) -> Compiled {
        if let Some(known) = self.compiled.lock().get(schema) {
            return known.clone();
        }
        // Compiled without the lock, because it may take long. Two callers may compile one schema.
        let compiled = compile(parsed).map(Arc::new);
        let mut kept = self.compiled.lock();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(Arc::clone(schema), compiled.clone());
        compiled
    }
}

/// Formats are not compared: servers use them as hints, and read each in their own way.
fn compile(schema: &Value) -> Option<Validator> {
    let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
    let patterns = patterns
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES);
    let options = jsonschema::options()
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(patterns);
    options.build(schema).ok()
}

/// The text of arguments as the server gets it: a number that is too long for a program is not sent as a model wrote
/// it.
pub(in crate::client) fn as_sent(arguments: String) -> String {
    serde_json::from_str::<JsonObject>(&arguments)
        .map_or(arguments, |sent| Value::Object(sent).to_string())
}

#[cfg(test)]
mod tests;
