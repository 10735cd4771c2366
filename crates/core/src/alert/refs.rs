//! References: the sender's own ids of what an alert is about, such as an incident, a ticket, or the thread of a chat.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// References of an alert; more are left out.
const MAX_REFS: usize = 8;
/// A longer reference is left out: a part of an id is another id.
const MAX_REF_BYTES: usize = 256;

/// The hash of an Alertmanager group, which Alertmanager itself uses as Opsgenie's alias and as PagerDuty's key.
pub(crate) const AM_GROUP: &str = "am_group";
/// The id of the dashboard of Grafana that shows the alert.
pub(crate) const DASHBOARD: &str = "dashboard";
/// The message of a chat that shows the alert: [`SlackThread`].
pub const SLACK: &str = "slack";

/// The references of an alert by their names: at most 8, of at most 256 bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Refs(BTreeMap<String, String>);

impl Refs {
    /// The references that have a value of one line, within the bounds; the first ones in the order of the names.
    pub fn new(all: impl IntoIterator<Item = (String, String)>) -> Self {
        let all: BTreeMap<String, String> = all
            .into_iter()
            .map(|(name, id)| (name, id.trim().to_owned()))
            .filter(|(_, id)| is_id(id))
            .collect();
        Self(all.into_iter().take(MAX_REFS).collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, id)| (name.as_str(), id.as_str()))
    }

    /// Changes each reference by `change`.
    #[must_use]
    pub fn map(self, change: impl Fn(String) -> String) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|(name, id)| (name, change(id)))
                .collect(),
        )
    }

    /// Replaces the hash of the group by that of `other`: one of a masked body is that of another group.
    #[must_use]
    pub fn with_group_of(mut self, other: &Self) -> Self {
        if let Some(group) = other.get(AM_GROUP) {
            self.0.insert(AM_GROUP.to_owned(), group.to_owned());
        }
        self
    }
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_REF_BYTES && !id.chars().any(char::is_control)
}

/// The hash of a group key of Alertmanager, in hex. Source: `Key.Hash` of Alertmanager's `notify` package.
pub fn am_group(group_key: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(group_key.as_bytes()))
}

/// A message of Slack: the channel and the time stamp that is its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackThread {
    /// The id of the channel, such as `C0123456789`.
    pub channel: String,
    /// The time stamp of the message, such as `1700000000.000100`.
    pub ts: String,
}

impl SlackThread {
    /// Reads `C0123456789/1700000000.000100`, or the link that Slack copies for a message. The link of a reply leads to
    /// the first message of its thread.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let path = text.split_once("/archives/").map_or(text, |(_, path)| path);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (channel, message) = path.trim_end_matches('/').split_once('/')?;
        let of_reply = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("thread_ts="));
        Self::new(channel, of_reply.unwrap_or(message))
    }

    /// The message of a channel, if both are in Slack's form; the time stamp also as in links, `p1700000000000100`.
    pub fn new(channel: &str, ts: &str) -> Option<Self> {
        let is_channel = channel.starts_with(['C', 'D', 'G'])
            && (2..=32).contains(&channel.len())
            && channel
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
        let ts = match ts
            .strip_prefix('p')
            .and_then(|digits| digits.split_at_checked(digits.len().saturating_sub(6)))
        {
            Some((seconds, fraction)) => format!("{seconds}.{fraction}"),
            None => ts.to_owned(),
        };
        let is_number =
            |digits: &str| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
        let is_ts = ts.len() <= 32
            && ts.split_once('.').is_some_and(|(seconds, part)| {
                is_number(seconds) && part.len() == 6 && is_number(part)
            });
        (is_channel && is_ts).then(|| Self {
            channel: channel.to_owned(),
            ts,
        })
    }
}

/// The message that labels and annotations name: `slack_thread`, or `slack_channel` with `slack_ts`.
pub fn slack_thread<'p>(pair: impl Fn(&str) -> Option<&'p str>) -> Option<String> {
    let in_one_text = pair("slack_thread").and_then(SlackThread::parse);
    in_one_text
        .or_else(|| {
            let channel = pair("slack_channel").or_else(|| pair("slack_channel_id"))?;
            let ts = pair("slack_ts").or_else(|| pair("slack_thread_ts"))?;
            SlackThread::new(channel.trim(), ts.trim())
        })
        .map(|SlackThread { channel, ts }| format!("{channel}/{ts}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_few_short_and_whole() {
        let pair = |name: &str, id: &str| (name.to_owned(), id.to_owned());
        let long = "x".repeat(MAX_REF_BYTES + 1);
        let refs = Refs::new([
            pair("long", &long),
            pair("empty", " "),
            pair("lines", "a\nb"),
            pair("id", " 7 "),
        ]);
        assert_eq!(refs.iter().collect::<Vec<_>>(), [("id", "7")]);
        let many = Refs::new((0..20).map(|n| pair(&format!("r{n:02}"), "v")));
        assert_eq!(
            many.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            ["r00", "r01", "r02", "r03", "r04", "r05", "r06", "r07"]
        );
    }

    #[test]
    fn a_thread_of_slack_is_a_channel_with_a_time_stamp_or_a_link() {
        let thread = SlackThread {
            channel: "C0123456789".to_owned(),
            ts: "1700000000.000100".to_owned(),
        };
        for text in [
            "C0123456789/1700000000.000100",
            " C0123456789/p1700000000000100 ",
            "https://acme.slack.com/archives/C0123456789/p1700000000000100",
            "https://acme.slack.com/archives/C0123456789/p1700000009000900?thread_ts=1700000000.000100&cid=C0123456789",
        ] {
            assert_eq!(SlackThread::parse(text), Some(thread.clone()), "{text}");
        }
        for text in [
            "",
            "C1",
            "C1/",
            "#alerts/1700000000.000100",
            "C1/1700000000",
            "C1/p1",
            "C1/1.2",
            "c1/1700000000.000100",
        ] {
            assert_eq!(SlackThread::parse(text), None, "{text}");
        }
    }

    #[test]
    fn labels_name_a_thread_in_one_text_or_in_two() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs: BTreeMap<&str, &str> = pairs.iter().copied().collect();
            slack_thread(|name| pairs.get(name).copied())
        };
        let expected = Some("C1/1700000000.000100".to_owned());
        assert_eq!(
            of(&[(
                "slack_thread",
                "https://a.slack.com/archives/C1/p1700000000000100"
            )]),
            expected
        );
        assert_eq!(
            of(&[("slack_channel", "C1"), ("slack_ts", "1700000000.000100")]),
            expected
        );
        assert_eq!(
            of(&[
                ("slack_channel_id", "C1"),
                ("slack_thread_ts", "1700000000.000100")
            ]),
            expected
        );
        assert_eq!(
            of(&[
                ("slack_channel", "#alerts"),
                ("slack_ts", "1700000000.000100")
            ]),
            None
        );
        assert_eq!(of(&[("slack_channel", "C1")]), None);
    }
}
