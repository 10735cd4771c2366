//! Serializers for the values of a configuration file, for `#[serde(serialize_with = "…")]` in the sections.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

use super::read::units::{parse_duration, show_bytes, show_duration, show_tokens};
use super::tool_pattern::ToolPattern;
use super::url_pattern::UrlPattern;
use tarsy_core::plan::{PastScope, Strategy};
use tarsy_core::public_url::PublicUrl;
use tarsy_core::routing::Matcher;
use tarsy_core::runbook::RunbookHost;
use tarsy_mask::OwnPattern;

/// A value whose form in a file differs from its own.
pub(super) trait Written {
    type Form: Serialize + DeserializeOwned;

    fn form(&self) -> Self::Form;

    /// The value of a form whose variables are resolved.
    fn from_form(form: Self::Form) -> Option<Self>
    where
        Self: Sized;
}

/// Writes a value in its form of a file.
pub(super) fn written<T: Written, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.form().serialize(serializer)
}

/// Writes a size, or none.
pub(super) fn bytes<S: Serializer>(
    value: &(impl Into<Option<u64>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let bytes: Option<u64> = (*value).into();
    bytes.map(show_bytes).serialize(serializer)
}

/// Writes a number of tokens.
pub(super) fn tokens<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    show_tokens(*value).serialize(serializer)
}

/// Whether a key can be left out, because an absent one has this value.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The text of each type in a file, and the value of a text whose variables are resolved.
macro_rules! texts {
    ($($type:ty: $form:expr, $of:expr;)*) => {$(
        impl Written for $type {
            type Form = String;

            fn form(&self) -> String {
                let form: fn(&Self) -> String = $form;
                form(self)
            }

            fn from_form(form: String) -> Option<Self> {
                let of: fn(&str) -> Option<Self> = $of;
                of(&form)
            }
        }
    )*};
}

/// A `${` in a text was written as `$${` and must not become a reference.
fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

texts! {
    String: |text| escaped(text), |text| Some(text.to_owned());
    OwnPattern: |pattern| escaped(pattern.as_str()), |text| Self::new(text).ok();
    Duration: |duration| show_duration(*duration), parse_duration;
    ToolPattern: |pattern| escaped(&pattern.to_string()), Self::parse;
    Matcher: |matcher| escaped(&matcher.to_string()), |text| Self::parse(text).ok();
    PastScope: |scope| scope.as_str().to_owned(), |text| Self::ALL.into_iter().find(|known| known.as_str() == text);
    Strategy: |strategy| strategy.as_str().to_owned(), |text| Self::ALL.into_iter().find(|known| known.as_str() == text);
    RunbookHost: RunbookHost::to_string, Self::parse;
    PublicUrl: PublicUrl::to_string, Self::parse;
    UrlPattern: UrlPattern::to_string, |text| Self::parse(text).ok();
}

impl<T: Written> Written for Option<T> {
    type Form = Option<T::Form>;

    fn form(&self) -> Self::Form {
        self.as_ref().map(T::form)
    }

    fn from_form(form: Self::Form) -> Option<Self> {
        form.map(T::from_form)
            .map_or(Some(None), |value| value.map(Some))
    }
}

impl<T: Written> Written for Vec<T> {
    type Form = Vec<T::Form>;

    fn form(&self) -> Self::Form {
        self.iter().map(T::form).collect()
    }

    fn from_form(form: Self::Form) -> Option<Self> {
        form.into_iter().map(T::from_form).collect()
    }
}
