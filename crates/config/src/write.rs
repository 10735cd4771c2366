//! Serializers for the values of a configuration file, for `#[serde(serialize_with = "…")]` in the sections.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::read::units::{show_bytes, show_duration, show_tokens};
use super::url_pattern::UrlPattern;
use tarsy_core::plan::Strategy;
use tarsy_core::public_url::PublicUrl;
use tarsy_core::routing::Matcher;
use tarsy_core::runbook::RunbookHost;
use tarsy_mask::OwnPattern;

/// A value whose form in a file differs from its own.
pub(super) trait Written {
    type Form: Serialize;

    fn form(&self) -> Self::Form;
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

impl Written for String {
    type Form = Self;

    /// A `${` in a text was written as `$${` and must not become a reference.
    fn form(&self) -> Self {
        self.replace("${", "$${")
    }
}

impl Written for OwnPattern {
    type Form = String;

    fn form(&self) -> String {
        self.as_str().to_owned().form()
    }
}

impl Written for Duration {
    type Form = String;

    fn form(&self) -> String {
        show_duration(*self)
    }
}

impl Written for Matcher {
    type Form = String;

    fn form(&self) -> String {
        self.to_string().form()
    }
}

impl Written for Strategy {
    type Form = &'static str;

    fn form(&self) -> &'static str {
        self.as_str()
    }
}

impl Written for RunbookHost {
    type Form = String;

    fn form(&self) -> String {
        self.to_string()
    }
}

impl Written for PublicUrl {
    type Form = String;

    fn form(&self) -> String {
        self.to_string()
    }
}

impl<T: Written> Written for &T {
    type Form = T::Form;

    fn form(&self) -> T::Form {
        T::form(self)
    }
}

impl Written for UrlPattern {
    type Form = String;

    fn form(&self) -> String {
        self.to_string()
    }
}

impl<T: Written> Written for Option<T> {
    type Form = Option<T::Form>;

    fn form(&self) -> Self::Form {
        self.as_ref().map(T::form)
    }
}

impl<T: Written> Written for Vec<T> {
    type Form = Vec<T::Form>;

    fn form(&self) -> Self::Form {
        self.iter().map(T::form).collect()
    }
}
