//! Keeps the tokens of accounts until shortly before they expire. One call gets a token while the others wait for it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::account::{Account, Source};
use super::exchange;
use crate::service::call::Deadline;
use crate::service::provider::ProviderError;
use crate::service::provider::key::ApiKey;
use crate::service::provider::retry::without_key;

/// A token is renewed this long before it expires; the libraries of Google use about the same time.
const MAX_MARGIN: Duration = Duration::from_secs(240);
const MARGIN_DIVISOR: u32 = 5;
/// The number of accounts above which the cached tokens are dropped.
const MAX_ACCOUNTS: usize = 64;

/// Tokens by a hash of their account, so that a changed key is another account.
#[derive(Debug, Default)]
pub(in crate::service) struct Tokens(Mutex<HashMap<[u8; 32], Arc<Slot>>>);

/// The token of one account. A call holds the lock while it gets a new one; if it is cancelled, the next call
/// continues.
type Slot = tokio::sync::Mutex<Option<CachedToken>>;

#[derive(Debug)]
struct CachedToken {
    token: ApiKey,
    renew_at: Instant,
}

/// Gets the tokens of one account, for one request.
#[derive(Debug)]
pub(in crate::service) struct TokenProvider {
    account: Account,
    slot: Arc<Slot>,
}

impl Tokens {
    pub(super) fn provider_for(&self, account: Account) -> TokenProvider {
        let id = id(&account.source);
        let mut slots = self.0.lock();
        if slots.len() >= MAX_ACCOUNTS && !slots.contains_key(&id) {
            // A changed key leaves a slot that no call uses again. Slots in use get a new token.
            slots.clear();
        }
        let slot = Arc::clone(slots.entry(id).or_default());
        TokenProvider { account, slot }
    }
}

impl TokenProvider {
    /// The project whose quota a request counts for, if it is not that of the account.
    pub(in crate::service) fn quota_project(&self) -> Option<&str> {
        self.account.quota_project.as_deref()
    }

    /// Describes the credentials that a call would use, in words without a secret.
    pub(in crate::service) fn credentials(&self) -> &'static str {
        self.account.described()
    }

    /// Checks whether a token could be asked for, without a request for one.
    ///
    /// # Errors
    /// As [`exchange::reach`].
    pub(in crate::service) async fn check(&self) -> Result<(), ProviderError> {
        match &self.account.source {
            Source::Machine { host } => exchange::reach(host).await,
            Source::Token(_) | Source::Service(_) => Ok(()),
        }
    }

    /// Sends a request with a token. If the token is refused, it is renewed once. No error repeats a token.
    ///
    /// # Errors
    /// As [`exchange::fetch`], and those of the request.
    pub(in crate::service) async fn authorized<Sent>(
        &self,
        deadline: Deadline,
        send: impl Fn(ApiKey) -> Sent + Send,
    ) -> Result<(), ProviderError>
    where
        Sent: Future<Output = Result<(), ProviderError>> + Send,
    {
        let token = self.token(deadline).await?;
        match send(token.clone()).await {
            Err(error) if is_unauthenticated(&error) && self.drop_refused(&token).await => {
                let renewed = self.token(deadline).await?;
                send(renewed.clone())
                    .await
                    .map_err(|error| without_key(error, &renewed))
            }
            outcome => outcome.map_err(|error| without_key(error, &token)),
        }
    }

    /// A token that is valid for now.
    async fn token(&self, deadline: Deadline) -> Result<ApiKey, ProviderError> {
        let mut slot = self.slot.lock().await;
        if let Some(cached) = slot
            .as_ref()
            .filter(|cached| Instant::now() < cached.renew_at)
        {
            return Ok(cached.token.clone());
        }
        let fresh = exchange::fetch(&self.account.source, deadline).await?;
        let margin = (fresh.lifetime / MARGIN_DIVISOR).min(MAX_MARGIN);
        let renew_at = Instant::now() + fresh.lifetime.saturating_sub(margin);
        *slot = Some(CachedToken {
            token: fresh.token.clone(),
            renew_at,
        });
        Ok(fresh.token)
    }

    /// Drops a token that was refused, unless another call has already renewed it. Returns whether another token can be
    /// expected.
    async fn drop_refused(&self, refused: &ApiKey) -> bool {
        let mut slot = self.slot.lock().await;
        if slot.as_ref().is_some_and(|cached| cached.token == *refused) {
            *slot = None;
        }
        match self.account.source {
            Source::Token(_) => false,
            Source::Service(_) | Source::Machine { .. } => true,
        }
    }
}

/// Whether the provider does not accept the token.
fn is_unauthenticated(error: &ProviderError) -> bool {
    error.provider_status.starts_with("401")
}

fn id(source: &Source) -> [u8; 32] {
    let parts = match source {
        Source::Token(token) => ["token", token.expose(), "", ""],
        Source::Service(info) => [
            "service",
            &info.client_email,
            &info.private_key,
            &info.token_uri,
        ],
        Source::Machine { host } => ["machine", host, "", ""],
    };
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
