//! Forms of values in a file: how they are read, written and described in a schema, for `#[serde(with = "…")]`.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

use crate::read::units::show_duration;
use crate::write::{self, Written};
use tarsy_core::alert::Severity;
use tarsy_core::alert::policy::{OnAcknowledged, OnResolved};
use tarsy_core::approvals::Channel;
use tarsy_core::plan::{
    NativeToolsMode, OnTimeout, PastScope, Strategy, SuccessPolicy, ThinkingLevel, WhenResolved,
};

/// A form that a schema describes.
pub(crate) trait Form {
    fn schema() -> Schema;
}

/// A value in a form of texts.
pub(crate) struct As<F>(PhantomData<F>);

impl<F: Form> As<F> {
    pub(crate) fn serialize<T: Written, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        write::written(value, serializer)
    }

    pub(crate) fn deserialize<'de, T: Written, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let form = T::Form::deserialize(deserializer)?;
        T::from_form(form).ok_or_else(|| serde::de::Error::custom("not in the form of this value"))
    }
}

impl<F: Form> JsonSchema for As<F> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Form".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        F::schema()
    }
}

/// A value in a form, as it is.
pub(crate) fn form<F: Form>(_: &mut SchemaGenerator) -> Schema {
    F::schema()
}

/// A mapping of names to values in a form.
pub(crate) fn entries<F: Form>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": F::schema()})
}

/// A list of values in a form.
impl<F: Form> Form for Vec<F> {
    fn schema() -> Schema {
        json_schema!({"type": "array", "items": F::schema()})
    }
}

/// A duration from `FROM` to `TO` seconds.
pub(crate) struct Secs<const FROM: u64, const TO: u64>;

impl<const FROM: u64, const TO: u64> Form for Secs<FROM, TO> {
    fn schema() -> Schema {
        json_schema!({
            "type": "string", "x-form": "duration", "x-range": [FROM, TO]
        })
    }
}

/// The text of a duration, which serde reads again.
pub(super) fn duration_value(duration: Duration) -> Value {
    show_duration(duration).into()
}

/// A size from `FROM` to `TO` bytes.
pub(crate) struct Bytes<const FROM: u64, const TO: u64>;

impl<const FROM: u64, const TO: u64> Bytes<FROM, TO> {
    pub(crate) fn serialize<S: Serializer>(
        value: &(impl Into<Option<u64>> + Copy),
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        write::bytes(value, serializer)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

impl<const FROM: u64, const TO: u64> JsonSchema for Bytes<FROM, TO> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "integer"], "x-form": "bytes", "x-range": [FROM, TO]})
    }
}

/// A number of tokens from `FROM` to `TO`.
pub(crate) fn tokens<const FROM: u64, const TO: u64>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "integer"], "x-form": "tokens", "x-range": [FROM, TO]})
}

/// The words of a type of another crate.
pub(crate) fn words<T: Words>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": T::words()})
}

/// One of the words of a type.
pub(crate) struct Word<T>(PhantomData<T>);

impl<T: Words> Form for Word<T> {
    fn schema() -> Schema {
        json_schema!({"enum": T::words()})
    }
}

/// The strategies that can write the synthesis of parallel agents.
pub(crate) struct SynthesisStrategy;

impl Words for SynthesisStrategy {
    fn words() -> Vec<&'static str> {
        let mut strategies = Strategy::ALL.to_vec();
        strategies.retain(|strategy| strategy.synthesises());
        strategies.into_iter().map(Strategy::as_str).collect()
    }
}

/// A type whose values are words.
pub(crate) trait Words {
    fn words() -> Vec<&'static str>;
}

macro_rules! words {
    ($($type:ty),*) => {$(
        impl Words for $type {
            fn words() -> Vec<&'static str> {
                Self::ALL.into_iter().map(Self::as_str).collect()
            }
        }
    )*};
}

words!(
    Channel,
    NativeToolsMode,
    OnAcknowledged,
    OnResolved,
    OnTimeout,
    PastScope,
    Severity,
    Strategy,
    SuccessPolicy,
    ThinkingLevel,
    WhenResolved
);
