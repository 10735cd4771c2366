//! Checks a route without sending a message, for `tarsy doctor`.

use std::time::Duration;

use reqwest::{Client, Url};

use super::{Routes, answer, email, guard, secret, signature, slack};
use tarsy_config::{RouteKind, WebhookAddress};
use tarsy_engine::ports::ProviderAnswer;

/// Shorter than the limit of a check of `tarsy doctor`.
const MAX_TIMEOUT: Duration = Duration::from_secs(8);

impl Routes {
    /// Whether the secrets of a route can be read, its address answers, and Slack accepts its token. A webhook or a
    /// destination is asked with HEAD: any answer shows that it is reachable. A mail server gets the password, and no
    /// message.
    ///
    /// # Errors
    /// A text with the reason, without a secret.
    pub async fn check(&self, route: &str) -> Result<(), String> {
        let timeout = self.timeout(route).min(MAX_TIMEOUT);
        let check = tokio::time::timeout(timeout, self.try_check(route)).await;
        let checked =
            check.unwrap_or_else(|_| Err(format!("no answer within {} s", timeout.as_secs_f64())));
        checked.map_err(|reason| self.mask.apply(&reason).into_owned())
    }

    async fn try_check(&self, route: &str) -> Result<(), String> {
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let route = self
            .routes
            .get(route)
            .ok_or("the configuration has no such route")?;
        let url = match &route.kind {
            RouteKind::SlackBot {
                token,
                channel,
                thread_channels,
                api_url,
            } => {
                let token = self.secrets.bearer(token).await?;
                return slack::Api {
                    client,
                    url: api_url,
                    token,
                    channel,
                    thread_channels,
                    buttons: self.buttons,
                }
                .check()
                .await;
            }
            RouteKind::SlackWebhook { url } | RouteKind::Teams { url } => {
                self.secrets.url(url).await?
            }
            RouteKind::Email(email) => {
                let sender = email::Sender::new(email, &self.secrets, route.timeout).await?;
                return sender.check().await;
            }
            RouteKind::Destination(destination) => {
                if let Some(secret) = &destination.secret {
                    self.secrets.text(secret).await?;
                }
                let url = secret::parsed(&destination.base)?;
                guard::check(&url)?;
                return reached(self.guarded.as_ref().map_err(Clone::clone)?, url).await;
            }
            RouteKind::Webhook { url, secret } => {
                if let Some(secret) = secret {
                    signature::key(&self.secrets.text(secret).await?)?;
                }
                match url {
                    WebhookAddress::Plain(url) => secret::parsed(url)?,
                    WebhookAddress::Secret(url) => self.secrets.url(url).await?,
                }
            }
        };
        reached(client, url).await
    }
}

async fn reached(client: &Client, url: Url) -> Result<(), String> {
    match client.head(url).send().await {
        Ok(_) => Ok(()),
        Err(error) => match answer::failed(error) {
            ProviderAnswer::Unavailable { reason, .. }
            | ProviderAnswer::NoPlace { reason }
            | ProviderAnswer::Rejected { reason } => Err(reason),
            ProviderAnswer::Accepted { .. } | ProviderAnswer::Found { .. } => Ok(()),
        },
    }
}
