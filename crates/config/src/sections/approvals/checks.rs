//! Checks of `approvals` that no single key shows.

use super::{ApprovalPolicy, Approvals, keys};
use crate::read::reader::Field;
use tarsy_core::approvals::Channel;

/// The longest name of a policy or a person.
const MAX_NAME_CHARS: usize = 40;
/// The channels with accounts of people.
const ACCOUNTS: [Channel; 3] = [Channel::Web, Channel::Slack, Channel::Cli];

impl Approvals {
    pub(crate) fn check(&mut self, field: &Field<'_>) {
        for (name, field) in below(field, "policies") {
            check_name(&name, &field);
            if let Some(policy) = self.policies.get(&name) {
                self.check_policy(policy, &field);
            }
        }
        for (name, field) in below(field, "people") {
            check_name(&name, &field);
            self.check_person(&name, &field);
        }
        for (name, field) in below(field, "slack_groups") {
            let id = self.slack_groups.get(&name);
            if id.is_some_and(|id| !is_slack_id(id, &['S'])) {
                field.expected("the id of a user group such as S0614TZR7, not its name");
            }
        }
        if let Some(field) = field.get("keys") {
            keys::check(&field);
        }
        keys::check_second(field, "link_key_file", "link_key_env");
    }

    fn check_policy(&self, policy: &ApprovalPolicy, field: &Field<'_>) {
        if policy.channels.is_empty() && field.items("channels").is_empty() {
            field
                .at("channels")
                .fault("an empty list; accepted: a list of web, slack, cli, link".to_owned());
        }
        let has_link = policy.channels.contains(&Channel::Link);
        if policy.quorum > 1 && has_link {
            field.at("channels").fault(
                "link beside quorum 2: a link is whoever holds it, so two links prove no two people; leave one out"
                    .to_owned(),
            );
        }
        if policy.quorum > 1 && self.people.len() < 2 {
            field.at("quorum").fault(format!(
                "2 different people, but approvals.people has {}; accepted: 1, or people with their accounts, so that \
                 one person at two channels counts once",
                self.people.len()
            ));
        }
        if has_link && self.link_key().is_none() {
            field.at("channels").fault(
                "link needs a key; add approvals.link_key_file or link_key_env, or leave link out"
                    .to_owned(),
            );
        }
    }

    /// Reports accounts of a form that no channel sends, and those that an earlier person has.
    fn check_person(&self, name: &str, field: &Field<'_>) {
        let Some(person) = self.people.get(name) else {
            return;
        };
        if person.web.as_deref().is_some_and(str::is_empty) {
            field
                .at("web")
                .expected("the user as the web server's proxy names them");
        }
        if person
            .slack
            .as_deref()
            .is_some_and(|id| !is_slack_id(id, &['U', 'W']))
        {
            field
                .at("slack")
                .expected("the id of a member such as U0123ABCD, not their name");
        }
        if person.cli.as_deref().is_some_and(|user| !is_plain(user)) {
            field
                .at("cli")
                .expected("the name of a broker user: letters, digits, - and _");
        }
        for channel in ACCOUNTS {
            let Some(account) = person.account(channel) else {
                continue;
            };
            let owner = self.person_at(channel, account);
            if let Some((owner, _)) = owner.filter(|(owner, _)| *owner != name) {
                field.at(channel.as_str()).fault(format!(
                    "{account:?} is the account of {owner} already; one account belongs to one person"
                ));
            }
        }
    }
}

/// The entries of a mapping below a field; none for anything else, whose fault is reported already.
fn below<'c>(field: &Field<'c>, key: &str) -> Vec<(String, Field<'c>)> {
    let section = field.get(key).filter(Field::is_map);
    section.map(|section| section.entries()).unwrap_or_default()
}

/// Reports a name that metrics and messages cannot show as it is, or that could be taken for an account
/// (`<channel>:<account>`).
fn check_name(name: &str, field: &Field<'_>) {
    if !is_plain(name) {
        field.fault(format!(
            "{name:?} as a name; accepted: at most {MAX_NAME_CHARS} letters, digits, - and _"
        ));
    }
}

fn is_plain(name: &str) -> bool {
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    is_plain && (1..=MAX_NAME_CHARS).contains(&name.len())
}

fn is_slack_id(text: &str, first: &[char]) -> bool {
    text.len() > 1
        && text.starts_with(first)
        && text
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}
