//! What commands need of the addresses: short waits, and a form that can be shown.

use std::time::Duration;

use super::connect::{Addresses, COMMAND_PATIENCE};
use crate::store::ConnectOptions;

impl Addresses {
    /// How to reach the database, for a command: gives up after a few seconds.
    ///
    /// # Errors
    /// When no database is named.
    pub fn database_for_command(&self, command: &str) -> anyhow::Result<ConnectOptions> {
        Ok(ConnectOptions {
            pool_size: 2,
            connect_timeout: COMMAND_PATIENCE,
            retry_for: Duration::from_secs(1),
            may_be_read_only: true,
            ..self.database(&format!("tarsy {command}"))?
        })
    }

    /// The broker's servers without names, passwords and tokens.
    pub fn shown_nats(&self) -> String {
        self.nats_url.split(',').map(|url| shown_url(url.trim())).collect::<Vec<_>>().join(",")
    }

    /// Host, port and name of the database, and nothing else that its connection string may hold.
    pub fn shown_database(&self) -> String {
        let Some(url) = self.database_url.as_deref() else { return "no database".to_owned() };
        if url.contains("://") {
            return shown_url(url);
        }
        let is_shown = |word: &&str| ["host=", "hostaddr=", "port=", "dbname="].iter().any(|key| word.starts_with(key));
        let words: Vec<&str> = url.split_whitespace().filter(is_shown).collect();
        if words.is_empty() { "the database".to_owned() } else { words.join(" ") }
    }

    /// `text` without the passwords and tokens of these addresses, where a library repeats them as such. A word that
    /// happens to be a password, too, stays.
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for url in self.nats_url.split(',').map(str::trim).chain(self.database_url.as_deref()) {
            for secret in secrets_of(url) {
                for (before, after) in [(":", "@"), ("://", "@"), ("\"", "\""), ("password=", "")] {
                    text = text.replace(&format!("{before}{secret}{after}"), &format!("{before}***{after}"));
                }
            }
        }
        text
    }
}

/// Scheme, host, port and path: a query may hold a password, too, and a password may hold a question mark.
fn shown_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let before_query = rest.split_once('?').map_or(rest, |(before, _)| before);
    let host = before_query.rsplit_once('@').or_else(|| rest.rsplit_once('@')).map_or(before_query, |(_, host)| host);
    let host = host.split_once('?').map_or(host, |(host, _)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

/// A URL's password, or the token that stands in place of user and password, and every `password=`.
pub(super) fn secrets_of(url: &str) -> Vec<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = rest.rsplit_once('@').map(|(user, _)| user);
    let secret = user.map(|user| user.split_once(':').map_or(user, |(_, password)| password));
    let named = url.split("password=").skip(1);
    let named = named.filter_map(|rest| rest.split(|c: char| c.is_whitespace() || c == '&').next());
    secret.into_iter().chain(named).filter(|secret| !secret.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(nats: &str, database: &str) -> Addresses {
        Addresses {
            nats_url: nats.to_owned(),
            database_url: Some(database.to_owned()),
            llm_addr: "127.0.0.1:50051".to_owned(),
        }
    }

    #[test]
    fn what_is_shown_of_an_address_holds_no_secret() {
        let shown = |nats: &str, database: &str| {
            let addresses = addresses(nats, database);
            (addresses.shown_nats(), addresses.shown_database())
        };
        assert_eq!(
            shown("nats://u:word@a:4222, token@b", "postgres://u:p@ss/word@h:5432/db?password=x&sslmode=require"),
            ("nats://a:4222,b".to_owned(), "postgres://h:5432/db".to_owned())
        );
        assert_eq!(
            shown("u:what?@a", "postgres://u@h/db?password=a@b"),
            ("a".to_owned(), "postgres://h/db".to_owned())
        );
        assert_eq!(
            shown("nats://a", "host=h password=word port=1 dbname=d user=u"),
            ("nats://a".to_owned(), "host=h port=1 dbname=d".to_owned())
        );
        assert_eq!(shown("a", "word").1, "the database");
    }

    #[test]
    fn a_secret_is_taken_out_of_a_text_that_repeats_it() {
        let addresses = addresses("nats://token@a,nats://u:secret@b", "postgres://u:pass:word@h/db?password=other");
        assert_eq!(
            addresses.hide("nats://token@a u:secret@b a secret \"pass:word\" password=other, u h db"),
            "nats://***@a u:***@b a secret \"***\" password=***, u h db"
        );
    }
}
