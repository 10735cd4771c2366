//! Sends notifications over HTTP: to Slack, to workflows of Microsoft Teams, to webhooks of programs, and as notes to
//! the destinations that a declaration describes; and by e-mail.
//!
//! Only operators choose the addresses. A secret is read for each message, so a renewed one is used at once; the mask
//! learns it before it is sent. Texts are masked again here, because a secret may have become known since they were
//! stored. A redirect is not followed.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod answer;
mod secret;
mod post;
mod signature;
mod slack;
mod slack_update;
mod slack_people;
mod guard;
mod destination;
mod email;
mod check;

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Client;

use self::destination::{Pace, Sender};
pub use self::destination::{Preview, preview};
use self::secret::Secrets;
pub use self::slack::Buttons;
pub use self::slack_people::{SlackPeople, answer_addresses};
use tarsy_config::{NotificationRoute, RouteKind, WebhookAddress};
use tarsy_core::notification::request::Request;
use tarsy_core::notification::{Moment, Notification, slack as slack_text, teams, webhook};
use tarsy_engine::ports::{Arrival, Notifier, ProviderAnswer};
use tarsy_http::outgoing;
use tarsy_mask::Mask;

/// The routes with their HTTP client.
#[derive(Debug)]
pub struct Routes {
    routes: BTreeMap<String, NotificationRoute>,
    /// The client, or the reason why it could not be built.
    client: Result<Client, String>,
    /// The client for destinations, which does not reach the addresses of metadata services.
    guarded: Result<Client, String>,
    paces: BTreeMap<String, Pace>,
    secrets: Secrets,
    buttons: Buttons,
    mask: Mask,
}

impl Routes {
    /// Prepares the client; no secret is read yet.
    pub fn new(routes: BTreeMap<String, NotificationRoute>, mask: Mask) -> Self {
        let client = outgoing::builder()
            .build()
            .map_err(|error| format!("no HTTP client: {}", outgoing::cause(error)));
        let destinations = routes
            .iter()
            .filter(|(_, route)| matches!(route.kind, RouteKind::Destination(_)));
        let paces = destinations
            .map(|(name, _)| (name.clone(), Pace::default()))
            .collect();
        Self {
            routes,
            client,
            guarded: guard::client(),
            paces,
            secrets: Secrets(mask.clone()),
            buttons: Buttons::LinksOnly,
            mask,
        }
    }

    /// The same routes, whose bots of Slack show buttons under calls that wait for a person.
    #[must_use]
    pub fn with_buttons(self, buttons: Buttons) -> Self {
        Self { buttons, ..self }
    }

    async fn deliver(
        &self,
        message: &Notification,
        thread: Option<&str>,
    ) -> Result<ProviderAnswer, String> {
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let route = self
            .routes
            .get(&message.key.route)
            .ok_or("the configuration has no such route")?;
        let is_late = message.key.moment == Moment::Approval && !asks(message);
        if is_late && !matches!(route.kind, RouteKind::SlackBot { .. }) {
            // Only a bot changes its messages.
            return Ok(ProviderAnswer::NoPlace {
                reason: "the request has an outcome".to_owned(),
            });
        }
        match &route.kind {
            RouteKind::SlackWebhook { url } => {
                let url = self.secrets.url(url).await?;
                Ok(post::json(client, url, &slack_text::message(message)).await)
            }
            RouteKind::Teams { url } => {
                let url = self.secrets.url(url).await?;
                Ok(post::json(client, url, &teams::message(message)).await)
            }
            RouteKind::Webhook { url, secret } => {
                let url = match url {
                    WebhookAddress::Plain(url) => secret::parsed(url)?,
                    WebhookAddress::Secret(url) => self.secrets.url(url).await?,
                };
                let key = match secret {
                    Some(secret) => Some(signature::key(&self.secrets.text(secret).await?)?),
                    None => None,
                };
                Ok(post::signed(
                    client,
                    url,
                    message.key.id(),
                    &webhook::message(message),
                    key.as_ref(),
                )
                .await)
            }
            RouteKind::SlackBot {
                token,
                channel,
                thread_channels,
                api_url,
            } => {
                let token = self.secrets.bearer(token).await?;
                let api = slack::Api {
                    client,
                    url: api_url,
                    token,
                    channel,
                    thread_channels,
                    buttons: self.buttons,
                };
                match message.key.moment {
                    Moment::Decided => api.update(message).await,
                    Moment::Approval if !asks(message) => api.search(message, thread).await,
                    Moment::Started | Moment::Approval | Moment::Ended | Moment::Covered => {
                        api.deliver(message, thread).await
                    }
                }
            }
            RouteKind::Email(email) => {
                let sender = email::Sender::new(email, &self.secrets, route.timeout).await?;
                Ok(sender.deliver(message, thread).await)
            }
            RouteKind::Destination(destination) => {
                let secret = match &destination.secret {
                    Some(secret) => self.secrets.text(secret).await?,
                    None => String::new(),
                };
                let sender = Sender {
                    client: self.guarded.as_ref().map_err(Clone::clone)?,
                    destination,
                    secret: &secret,
                };
                Ok(sender.deliver(message).await)
            }
        }
    }

    /// Waits until the pace of a destination permits a further note.
    async fn turn(&self, route: &str) {
        let kind = self.routes.get(route).map(|route| &route.kind);
        if let (Some(RouteKind::Destination(destination)), Some(pace)) =
            (kind, self.paces.get(route))
        {
            pace.turn(destination.per_minute).await;
        }
    }

    fn timeout(&self, route: &str) -> Duration {
        let Some(route) = self.routes.get(route) else {
            return Duration::default();
        };
        match &route.kind {
            // The dialogue keeps the limit itself, because it knows what a late answer means.
            RouteKind::Email(_) => route.timeout + email::MARGIN,
            RouteKind::SlackWebhook { .. }
            | RouteKind::SlackBot { .. }
            | RouteKind::Teams { .. }
            | RouteKind::Webhook { .. }
            | RouteKind::Destination(_) => route.timeout,
        }
    }

    /// The notification with what the mask knows by now.
    fn masked(&self, message: Notification) -> Notification {
        let text = |text: String| self.mask.apply(&text).into_owned();
        let mut message = message;
        let before = message.summary.request.as_ref();
        let before = before.map_or_else(String::new, |request| request.arguments.clone());
        message.summary.title = text(message.summary.title);
        message.summary.analysis = message.summary.analysis.map(text);
        message.summary.error = message.summary.error.map(text);
        if let Some(request) = &mut message.summary.request {
            let arguments = text(std::mem::take(&mut request.arguments));
            if arguments != before {
                // The person would approve another text than the one that is sent.
                request.channels.clear();
            }
            request.arguments = arguments;
            request.why = text(std::mem::take(&mut request.why));
            request.comment = request.comment.take().map(text);
        }
        message
    }
}

/// Whether people can decide about the request of a message.
fn asks(message: &Notification) -> bool {
    let request = message.summary.request.as_ref();
    request.is_some_and(Request::is_open)
}

impl Notifier for Routes {
    async fn send(&self, message: Notification, thread: Option<String>) -> ProviderAnswer {
        let message = self.masked(message);
        self.turn(&message.key.route).await;
        let timeout = self.timeout(&message.key.route);
        let attempt =
            tokio::time::timeout(timeout, self.deliver(&message, thread.as_deref())).await;
        let answer = match attempt {
            Ok(Ok(answer)) => answer,
            Ok(Err(reason)) => ProviderAnswer::Unavailable {
                reason,
                retry_after: None,
                arrival: Arrival::Refused,
            },
            Err(_elapsed) => {
                let reason = format!("no answer within {} s", timeout.as_secs_f64());
                ProviderAnswer::Unavailable {
                    reason,
                    retry_after: None,
                    arrival: Arrival::Unknown,
                }
            }
        };
        answer::masked(answer, &self.mask)
    }
}
