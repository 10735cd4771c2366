//! `Asking`, the rights of people who ask in threads of Slack, and the investigations that the threads belong to.
//!
//! What is not asked opens no session: the person gets one line, which only they see.

use std::sync::Arc;

use tarsy_bus::{ASKED_BY, PARENT_ID, THREAD};
use tarsy_config::{Config, Person, RouteKind};
use tarsy_core::alert::refs::SlackThread;
use tarsy_core::chain::RunStatus;
use tarsy_core::follow_up::{MAX_CHAT_QUESTION_CHARS, MAX_CHAT_QUESTIONS, Thread};
use tarsy_core::readable::format;
use tarsy_engine::ports::{ChannelGroups, Groups, Received, StoreError};
use tarsy_mask::Mask;
use tarsy_notifications::SlackPeople;
use tarsy_store::Store;
use tarsy_store::reads::thread::ChatRoutes;

/// The group of `web.allow` that has every person who is known.
const EVERYONE: &str = "*";
/// The channel before the account in the name of a person.
const SLACK: &str = "slack:";

/// The questions from threads of one worker.
#[derive(Debug)]
pub(super) struct Asking {
    config: Arc<Config>,
    store: Arc<Store>,
    slack: SlackPeople,
}

/// A question as its message names it: the person and the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    thread: SlackThread,
    /// The member id.
    user: String,
}

/// A question that may be asked.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) thread: Thread,
    /// The route that sends the answer.
    pub(super) route: String,
}

/// The verdict about a question from a thread.
#[derive(Debug)]
pub(super) enum Verdict {
    Asked(Box<Asked>),
    /// It is not asked, for this reason.
    NotAsked(String),
}

/// The right of a person to ask, as far as it is known without Slack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    Given,
    Missing,
    /// A user group of Slack would give it.
    DependsOnGroups,
}

impl Mention {
    /// The mention of a message on a subject of Slack.
    ///
    /// # Errors
    /// A text with the fault of the headers: the receiver of Slack sends no such message.
    pub(super) fn parse(received: &Received) -> Result<Self, String> {
        if received.header(PARENT_ID).is_some() {
            return Err(format!(
                "header {PARENT_ID} does not count on tarsy.questions.<priority>.slack: the thread names the investigation"
            ));
        }
        let named = received.header(THREAD).unwrap_or_default();
        let thread = SlackThread::parse(&named)
            .filter(|thread| format!("{}/{}", thread.channel, thread.ts) == named)
            .ok_or_else(|| format!("header {THREAD} names no thread: <channel>/<thread_ts>"))?;
        let asked_by = received.header(ASKED_BY).unwrap_or_default();
        let user = asked_by.strip_prefix(SLACK).unwrap_or_default();
        if user.is_empty() || !user.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(format!("header {ASKED_BY} names no person of Slack"));
        }
        Ok(Self {
            thread,
            user: user.to_owned(),
        })
    }
}

impl Asking {
    pub(super) fn new(config: Arc<Config>, store: Arc<Store>, mask: Mask) -> Self {
        Self {
            slack: SlackPeople::new(&config, mask),
            config,
            store,
        }
    }

    /// Judges a question with this text. A person whose question is not asked gets the reason in the thread.
    ///
    /// # Errors
    /// When the store is unavailable.
    pub(super) async fn judge(
        &self,
        mention: &Mention,
        question: &str,
    ) -> Result<Verdict, StoreError> {
        let verdict = self.verdict(mention, question).await?;
        if let Verdict::NotAsked(why) = &verdict {
            tracing::info!(
                user = mention.user,
                channel = mention.thread.channel,
                "question of a thread not asked: {why}"
            );
            let line = format!("Not asked: {why}.");
            self.slack.show(&mention.thread, &mention.user, &line).await;
        }
        Ok(verdict)
    }

    async fn verdict(&self, mention: &Mention, question: &str) -> Result<Verdict, StoreError> {
        if let Some(why) = self.missing_right(&mention.user).await {
            return Ok(Verdict::NotAsked(why));
        }
        if question.trim().chars().count() > MAX_CHAT_QUESTION_CHARS {
            let why = format!("a question has at most {MAX_CHAT_QUESTION_CHARS} characters here");
            return Ok(Verdict::NotAsked(why));
        }
        let unknown = || {
            Verdict::NotAsked(
                "this thread belongs to no investigation that is stored here".to_owned(),
            )
        };
        let routes = chat_routes(&self.config, &mention.thread.channel);
        let Some(of_chat) = self.store.thread_of_chat(&mention.thread, routes).await? else {
            return Ok(unknown());
        };
        let Some(thread) = self.store.thread(of_chat.session).await? else {
            return Ok(unknown());
        };
        Ok(if thread.status == RunStatus::Running {
            Verdict::NotAsked("the investigation is not over yet; ask again then".to_owned())
        } else if of_chat.questions >= i64::from(MAX_CHAT_QUESTIONS) {
            let most = format::count(MAX_CHAT_QUESTIONS, "question");
            Verdict::NotAsked(format!("the investigation has {most} already"))
        } else {
            Verdict::Asked(Box::new(Asked {
                thread,
                route: of_chat.route,
            }))
        })
    }

    /// The reason why a member may not ask; `None` if they may. A group that cannot be read gives no right.
    async fn missing_right(&self, user: &str) -> Option<String> {
        let no_right = "no group of `web.allow.ask` has you as a member";
        match right(&self.config, user) {
            Right::Given => return None,
            Right::Missing => return Some(no_right.to_owned()),
            Right::DependsOnGroups => {}
        }
        let wanted = &self.config.web.allow.ask;
        match self.slack.groups_of(user, wanted).await {
            Groups::Known(groups) if is_allowed(&self.config, &groups) => None,
            Groups::Known(_) | Groups::NotAsked => Some(no_right.to_owned()),
            Groups::Unavailable => {
                Some("Slack does not answer which groups you belong to; ask again later".to_owned())
            }
        }
    }
}

/// The right that the configuration gives a member of Slack. A member who is not in `people` is no user of the pages,
/// so `*` has only people who are.
fn right(config: &Config, user: &str) -> Right {
    let mut people = config.approvals.people.values();
    let person = people.find(|person: &&Person| person.slack.as_deref() == Some(user));
    let ask = &config.web.allow.ask;
    if let Some(person) = person
        && (is_allowed(config, &person.groups) || ask.iter().any(|group| group == EVERYONE))
    {
        return Right::Given;
    }
    let mut of_slack = config.approvals.slack_groups.keys();
    if of_slack.any(|group| ask.contains(group)) {
        Right::DependsOnGroups
    } else {
        Right::Missing
    }
}

fn is_allowed(config: &Config, groups: &[String]) -> bool {
    let ask = &config.web.allow.ask;
    groups.iter().any(|group| ask.contains(group))
}

/// The routes that can have written in a thread of this channel.
fn chat_routes(config: &Config, of_channel: &str) -> ChatRoutes {
    let mut routes = ChatRoutes::default();
    for (name, route) in &config.notifications {
        match &route.kind {
            RouteKind::SlackBot { channel, .. } => {
                routes.all.push(name.clone());
                if channel == of_channel {
                    routes.of_channel.push(name.clone());
                }
            }
            RouteKind::SlackWebhook { .. }
            | RouteKind::Teams { .. }
            | RouteKind::Webhook { .. }
            | RouteKind::Email(_)
            | RouteKind::Destination(_) => {}
        }
    }
    routes
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use tarsy_core::ids::SessionId;

    fn config(sections: &str) -> Config {
        Config::parse("f", sections, &|_| None).unwrap()
    }

    #[test]
    fn groups_of_people_and_of_slack_give_the_right_to_ask() {
        let people = "approvals: {people: {ana: {slack: U1, groups: [sre]}, bob: {slack: U2, groups: [dev]}}, \
                      slack_groups: {sre: S1}}\n";
        for (ask, of_ana, of_bob, of_stranger) in [
            ("[]", Right::Missing, Right::Missing, Right::Missing),
            ("[ops]", Right::Missing, Right::Missing, Right::Missing),
            ("[dev]", Right::Missing, Right::Given, Right::Missing),
            ("['*']", Right::Given, Right::Given, Right::Missing),
            (
                "[sre]",
                Right::Given,
                Right::DependsOnGroups,
                Right::DependsOnGroups,
            ),
        ] {
            let config = config(&format!("{people}web: {{allow: {{ask: {ask}}}}}"));
            let rights = ["U1", "U2", "U3"].map(|user| right(&config, user));
            assert_eq!(rights, [of_ana, of_bob, of_stranger], "{ask}");
        }
        let without_people = config("web: {allow: {ask: ['*']}}");
        assert_eq!(right(&without_people, ""), Right::Missing);
    }

    #[test]
    fn only_bots_of_slack_write_in_threads_and_those_of_the_channel_without_its_name() {
        let config = config(
            "notifications:\n  a: {kind: slack, token_env: A, channel: C1}\n  b: {kind: slack, token_env: A, channel: C2}\n  \
             c: {kind: slack, url_env: A}\n  d: {kind: teams, url_env: A}\n",
        );
        let routes = chat_routes(&config, "C2");
        assert_eq!(routes.all, ["a", "b"]);
        assert_eq!(routes.of_channel, ["b"]);
    }

    fn received(headers: Value) -> Received {
        Received {
            alert_id: SessionId::of_message(&[b"m"], 1),
            body_sha256: [0; 32],
            body: None,
            headers,
            subject: "tarsy.questions.high.slack".to_owned(),
            stream_sequence: 1,
            queued_at: chrono::DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_message_without_thread_or_person_or_with_a_parent_is_no_mention() {
        let thread = "C1/1700000000.000100";
        let mention =
            Mention::parse(&received(json!({THREAD: thread, ASKED_BY: "slack:U1"}))).unwrap();
        let expected = Mention {
            thread: SlackThread::parse(thread).unwrap(),
            user: "U1".to_owned(),
        };
        assert_eq!(mention, expected);
        for (headers, fault) in [
            (json!({}), THREAD),
            (json!({ASKED_BY: "slack:U1"}), THREAD),
            (json!({THREAD: "C1", ASKED_BY: "slack:U1"}), THREAD),
            (
                json!({THREAD: "C1/p1700000000000100", ASKED_BY: "slack:U1"}),
                THREAD,
            ),
            (json!({THREAD: thread}), ASKED_BY),
            (json!({THREAD: thread, ASKED_BY: "U1"}), ASKED_BY),
            (json!({THREAD: thread, ASKED_BY: "slack:"}), ASKED_BY),
            (json!({THREAD: thread, ASKED_BY: "slack:U1 U2"}), ASKED_BY),
            (
                json!({THREAD: thread, ASKED_BY: "slack:U1", PARENT_ID: "0199d3f2-0000-7000-8000-000000000001"}),
                PARENT_ID,
            ),
        ] {
            let why = Mention::parse(&received(headers.clone())).unwrap_err();
            assert!(why.contains(fault), "{headers}: {why}");
        }
    }
}
