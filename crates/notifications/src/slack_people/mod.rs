//! `SlackPeople`, which asks Slack for the members of user groups, and answers people who pressed a button or whose
//! question in a thread is not asked.
//!
//! A group that cannot be read gives no right: the caller waits, and refuses in the end. An answer is sent once and may
//! get lost; the vote is recorded before, and the message shows its outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, Url};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::answer;
use super::secret::{self, Secrets};
use tarsy_config::{Config, NotificationRoute, RouteKind, SecretSource};
use tarsy_core::alert::refs::SlackThread;
use tarsy_core::notification::Moment;
use tarsy_engine::ports::{ChannelGroups, Groups};
use tarsy_http::outgoing;
use tarsy_mask::Mask;

/// The time for which members are kept: who leaves a group has its rights for so long.
const KEPT: Duration = Duration::from_mins(5);
/// The time limit for one request.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Errors that mean a group without members.
const NO_GROUP: [&str; 2] = ["no_such_subteam", "subteam_not_found"];
/// The addresses to which an app may answer a click, whatever the routes are.
const ANSWERS: &str = "https://hooks.slack.com/actions/";

/// The people of a workspace of Slack.
#[derive(Debug)]
pub struct SlackPeople {
    /// The client, or the reason why it could not be built.
    client: Result<Client, String>,
    /// The bot that asks; `None` if no route has one, so that no group is known.
    bot: Option<Bot>,
    /// The ids of user groups by the names of the configuration.
    groups: BTreeMap<String, String>,
    /// The beginnings of the addresses to which answers go.
    answers: Vec<String>,
    secrets: Secrets,
    mask: Mask,
    members: Mutex<BTreeMap<String, Members>>,
}

/// The API with the token that may ask.
#[derive(Clone, Debug)]
struct Bot {
    api_url: String,
    token: SecretSource,
}

#[derive(Clone, Debug)]
struct Members {
    read_at: Instant,
    users: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Reply {
    ok: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    users: Vec<String>,
}

/// The beginnings of the addresses to which answers to clicks may go.
pub fn answer_addresses(config: &Config) -> Vec<String> {
    let of_routes = config.notifications.values();
    let mut addresses: Vec<String> = of_routes.filter_map(|route| route.kind.answers()).collect();
    addresses.push(ANSWERS.to_owned());
    addresses.sort();
    addresses.dedup();
    addresses
}

impl SlackPeople {
    /// The workspace of a configuration: its bot is the one of the first route that shows calls which wait for a
    /// person, else the first one.
    pub fn new(config: &Config, mask: Mask) -> Self {
        let client = outgoing::builder()
            .build()
            .map_err(|error| format!("no HTTP client: {}", outgoing::cause(error)));
        let mut routes: Vec<&NotificationRoute> = config.notifications.values().collect();
        routes.sort_by_key(|route| !route.filter.on.contains(&Moment::Approval));
        Self {
            client,
            bot: routes.into_iter().find_map(bot),
            groups: config.approvals.slack_groups.clone(),
            answers: answer_addresses(config),
            secrets: Secrets(mask.clone()),
            mask,
            members: Mutex::default(),
        }
    }

    /// The members of a user group; `None` if Slack cannot be asked.
    async fn members(&self, bot: &Bot, group: &str) -> Option<BTreeSet<String>> {
        let kept = self.members.lock().get(group).cloned();
        if let Some(kept) = kept.filter(|kept| kept.read_at.elapsed() < KEPT) {
            return Some(kept.users);
        }
        let read = match tokio::time::timeout(TIMEOUT, self.read(bot, group)).await {
            Ok(read) => read,
            Err(_elapsed) => Err("no answer in time".to_owned()),
        };
        match read {
            Ok(users) => {
                let members = Members {
                    read_at: Instant::now(),
                    users: users.clone(),
                };
                self.members.lock().insert(group.to_owned(), members);
                Some(users)
            }
            Err(reason) => {
                let reason = self.mask.apply(&reason);
                tracing::warn!(group, "members of a user group of Slack not read: {reason}");
                None
            }
        }
    }

    async fn read(&self, bot: &Bot, group: &str) -> Result<BTreeSet<String>, String> {
        let token = self.secrets.bearer(&bot.token).await?;
        let mut url = secret::parsed(&format!("{}/usergroups.users.list", bot.api_url))?;
        url.query_pairs_mut().append_pair("usergroup", group);
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let request = client.get(url).header(AUTHORIZATION, token);
        let response = request.send().await.map_err(outgoing::cause)?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("HTTP {}", status.as_u16()));
        }
        let body = answer::body(response).await.unwrap_or_default();
        let reply: Reply = serde_json::from_str(&body)
            .map_err(|_| "the answer is not one of Slack's API".to_owned())?;
        if reply.ok {
            return Ok(reply.users.into_iter().collect());
        }
        if NO_GROUP.contains(&reply.error.as_str()) {
            tracing::warn!(group, "user group of Slack unknown: it has no members");
            return Ok(BTreeSet::new());
        }
        Err(format!("the API answered {}", reply.error))
    }

    /// Shows a line to one person in a thread. Best effort: it is sent once, and may get lost.
    pub async fn show(&self, thread: &SlackThread, user: &str, text: &str) {
        let shown = tokio::time::timeout(TIMEOUT, self.try_show(thread, user, text)).await;
        let shown = shown.unwrap_or_else(|_elapsed| Err("no answer in time".to_owned()));
        if let Err(reason) = shown {
            let reason = self.mask.apply(&reason);
            tracing::warn!(
                channel = thread.channel,
                "line in a thread not shown: {reason}"
            );
        }
    }

    async fn try_show(&self, thread: &SlackThread, user: &str, text: &str) -> Result<(), String> {
        let bot = self.bot.as_ref().ok_or("no route has a bot of Slack")?;
        let token = self.secrets.bearer(&bot.token).await?;
        let url = secret::parsed(&format!("{}/chat.postEphemeral", bot.api_url))?;
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let body = json!({
            "channel": thread.channel, "thread_ts": thread.ts, "user": user, "text": text,
        });
        let request = client
            .post(url)
            .header(AUTHORIZATION, token)
            .header(CONTENT_TYPE, "application/json; charset=utf-8")
            .body(body.to_string());
        let response = request.send().await.map_err(outgoing::cause)?;
        let body = answer::body(response).await.unwrap_or_default();
        let reply: Reply = serde_json::from_str(&body)
            .map_err(|_| "the answer is not one of Slack's API".to_owned())?;
        if reply.ok {
            Ok(())
        } else {
            Err(format!("the API answered {}", reply.error))
        }
    }

    /// The address, if it is one of Slack's for answers, also after it is parsed.
    fn answer_url(&self, url: &str) -> Option<Url> {
        let parsed = Url::parse(url).ok()?;
        let mut allowed = self.answers.iter();
        let is_allowed =
            allowed.any(|address| url.starts_with(address) && parsed.as_str().starts_with(address));
        is_allowed.then_some(parsed)
    }
}

fn bot(route: &NotificationRoute) -> Option<Bot> {
    match &route.kind {
        RouteKind::SlackBot { token, api_url, .. } => Some(Bot {
            api_url: api_url.clone(),
            token: token.clone(),
        }),
        RouteKind::SlackWebhook { .. }
        | RouteKind::Teams { .. }
        | RouteKind::Webhook { .. }
        | RouteKind::Email(_)
        | RouteKind::Destination(_) => None,
    }
}

impl ChannelGroups for SlackPeople {
    async fn groups_of(&self, account: &str, wanted: &[String]) -> Groups {
        let Some(bot) = &self.bot else {
            return Groups::NotAsked;
        };
        let mut known = Vec::new();
        let asked = self.groups.iter().filter(|(name, _)| wanted.contains(name));
        for (name, id) in asked {
            let Some(members) = self.members(bot, id).await else {
                return Groups::Unavailable;
            };
            if members.contains(account) {
                known.push(name.clone());
            }
        }
        Groups::Known(known)
    }

    async fn answer(&self, address: &str, text: &str) {
        let Some(url) = self.answer_url(address) else {
            tracing::warn!("decision of a person not answered: the address is not one of Slack");
            return;
        };
        let Ok(client) = &self.client else {
            return;
        };
        let text = self.mask.apply(text).into_owned();
        let body = json!({"response_type": "ephemeral", "replace_original": false, "text": text});
        let request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json; charset=utf-8")
            .timeout(TIMEOUT)
            .body(body.to_string());
        let sent = request.send().await;
        let answered = sent.and_then(|response| response.error_for_status().map(drop));
        if let Err(error) = answered {
            let cause = outgoing::cause(error);
            tracing::debug!("decision of a person not answered: {cause}");
        }
    }
}

#[cfg(test)]
mod tests;
