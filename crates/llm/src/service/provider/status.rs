//! Checks whether a provider can be called: its key and its address are set. Neither value is shown.

use super::error::ProviderError;
use crate::proto::ProviderCheck;

/// The credentials and the address that a call would use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderStatus {
    /// The variable of the key or of the credentials; empty for none.
    pub key_env: String,
    pub key: KeyStatus,
    /// Scheme, host and port; empty for none.
    pub address: String,
    pub address_status: AddressStatus,
    /// The credentials that replace a key, in words without a secret; empty for a key.
    pub credentials: &'static str,
    /// The error with which the call would fail before it is sent.
    pub error: Option<ProviderError>,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum KeyStatus {
    Set,
    NotSet,
    /// Requests may not use the variable. Whether it is set is not reported.
    NotPermitted,
    /// The variable names a file that cannot be read.
    Unreadable,
    NotNeeded,
}

tarsy_core::words!(pub KeyStatus);

/// Whether the key may be sent to the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum AddressStatus {
    Permitted,
    NotPermitted,
    NotNeeded,
}

tarsy_core::words!(pub AddressStatus);

impl ProviderStatus {
    /// The status of a backend that calls no provider.
    pub fn without_call(error: Option<ProviderError>) -> Self {
        Self {
            key_env: String::new(),
            key: KeyStatus::NotNeeded,
            address: String::new(),
            address_status: AddressStatus::NotNeeded,
            credentials: "",
            error,
        }
    }

    /// Adds the error with which a backend would fail before it sends a call. Without an error, a key that is not set
    /// is not needed.
    #[must_use]
    pub(crate) fn with_error(self, error: Option<ProviderError>) -> Self {
        let is_missed = error.is_some() || self.key != KeyStatus::NotSet;
        let key = if is_missed {
            self.key
        } else {
            KeyStatus::NotNeeded
        };
        Self { key, error, ..self }
    }

    /// The message of the protocol.
    pub(crate) fn into_check(self, backend: &str) -> ProviderCheck {
        ProviderCheck {
            error: self.error.map(ProviderError::into_info),
            backend: backend.to_owned(),
            key_env: self.key_env,
            key_status: self.key.as_str().to_owned(),
            address: self.address,
            address_status: self.address_status.as_str().to_owned(),
            credentials: self.credentials.to_owned(),
        }
    }
}
