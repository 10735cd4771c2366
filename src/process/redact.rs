//! Removes secrets from addresses, and from the connection options of commands.

use std::time::Duration;

use super::connect::{Addresses, COMMAND_CONNECT_TIMEOUT};
use tarsy_store::ConnectOptions;

impl Addresses {
    /// Options for a connection of a command, which gives up after a few seconds.
    ///
    /// # Errors
    /// When no database is named.
    pub fn database_for_command(&self, command: &str) -> anyhow::Result<ConnectOptions> {
        Ok(ConnectOptions {
            pool_size: 2,
            connect_timeout: COMMAND_CONNECT_TIMEOUT,
            retry_for: Duration::from_secs(1),
            may_be_read_only: true,
            ..self.database(&format!("tarsy {command}"))?
        })
    }

    /// The broker's addresses without users, passwords and tokens.
    pub fn redacted_nats(&self) -> String {
        self.nats_url
            .split(',')
            .map(|url| redacted_url(url.trim()))
            .collect::<Vec<_>>()
            .join(",")
    }

    /// Host, port and name of the database, without the rest of the connection string.
    pub fn redacted_database(&self) -> String {
        let Some(url) = self.database_url.as_deref() else {
            return "no database".to_owned();
        };
        if url.contains("://") {
            return redacted_url(url);
        }
        let mut words: Vec<&str> = url.split_whitespace().collect();
        words.retain(|word| {
            ["host=", "hostaddr=", "port=", "dbname="]
                .iter()
                .any(|key| word.starts_with(key))
        });
        if words.is_empty() {
            "the database".to_owned()
        } else {
            words.join(" ")
        }
    }

    /// `text` without the passwords and tokens of these addresses, where a library repeats them as part of an address.
    /// A word that equals a password stays.
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for url in self
            .nats_url
            .split(',')
            .map(str::trim)
            .chain(self.database_url.as_deref())
        {
            for secret in secrets_of(url) {
                for (before, after) in [(":", "@"), ("://", "@"), ("\"", "\""), ("password=", "")] {
                    text = text.replace(
                        &format!("{before}{secret}{after}"),
                        &format!("{before}***{after}"),
                    );
                }
            }
        }
        text
    }
}

/// Scheme, host, port and path. A query may contain a password, and a password may contain a question mark.
fn redacted_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let before_query = rest.split_once('?').map_or(rest, |(before, _)| before);
    let host = before_query
        .rsplit_once('@')
        .or_else(|| rest.rsplit_once('@'))
        .map_or(before_query, |(_, host)| host);
    let host = host.split_once('?').map_or(host, |(host, _)| host);
    if scheme.is_empty() {
        host.to_owned()
    } else {
        format!("{scheme}://{host}")
    }
}

/// The password of a URL, or the token in place of user and password, and each value of `password=`.
pub(super) fn secrets_of(url: &str) -> Vec<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = rest.rsplit_once('@').map(|(user, _)| user);
    let secret = user.map(|user| user.split_once(':').map_or(user, |(_, password)| password));
    let named = url.split("password=").skip(1);
    let named = named.filter_map(|rest| rest.split(|c: char| c.is_whitespace() || c == '&').next());
    secret
        .into_iter()
        .chain(named)
        .filter(|secret| !secret.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(nats: &str, database: &str) -> Addresses {
        Addresses {
            nats_url: nats.to_owned(),
            database_url: Some(database.to_owned()),
            llm_addr: "127.0.0.1:50051".to_owned(),
            llm_credentials: Default::default(),
            nats_credentials: Default::default(),
            database_secrets: Default::default(),
        }
    }

    #[test]
    fn a_redacted_address_has_no_secret() {
        let redacted = |nats: &str, database: &str| {
            let addresses = addresses(nats, database);
            (addresses.redacted_nats(), addresses.redacted_database())
        };
        assert_eq!(
            redacted(
                "nats://u:word@a:4222, token@b",
                "postgres://u:p@ss/word@h:5432/db?password=x&sslmode=require"
            ),
            (
                "nats://a:4222,b".to_owned(),
                "postgres://h:5432/db".to_owned()
            )
        );
        assert_eq!(
            redacted("u:what?@a", "postgres://u@h/db?password=a@b"),
            ("a".to_owned(), "postgres://h/db".to_owned())
        );
        assert_eq!(
            redacted("nats://a", "host=h password=word port=1 dbname=d user=u"),
            ("nats://a".to_owned(), "host=h port=1 dbname=d".to_owned())
        );
        assert_eq!(redacted("a", "word").1, "the database");
    }

    #[test]
    fn a_secret_is_redacted_in_a_text_that_repeats_the_address() {
        let addresses = addresses(
            "nats://token@a,nats://u:secret@b",
            "postgres://u:pass:word@h/db?password=other",
        );
        assert_eq!(
            addresses
                .redact("nats://token@a u:secret@b a secret \"pass:word\" password=other, u h db"),
            "nats://***@a u:***@b a secret \"***\" password=***, u h db"
        );
    }
}
