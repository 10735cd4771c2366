//! Parses the URLs of the servers into addresses and a login. Pure.

use async_nats::ServerAddr;

use super::error::Error;

/// A parsed list of servers.
pub(super) struct Address {
    pub(super) servers: Vec<ServerAddr>,
    pub(super) login: Option<Login>,
    /// The address without credentials, for people and logs.
    pub(super) redacted: String,
}

/// The client's authentication.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Login {
    Password { user: String, password: String },
    Token(String),
}

impl Address {
    /// Parses servers that are separated by commas.
    pub(super) fn parse(urls: &str) -> Result<Self, Error> {
        let mut servers = Vec::new();
        for url in urls.split(',') {
            let reason = match url.trim().parse::<ServerAddr>() {
                Ok(server) if !server.host().is_empty() => {
                    servers.push(server);
                    continue;
                }
                Ok(_) => "it names no host".to_owned(),
                Err(error) => error.to_string(),
            };
            // All of them: a comma splits a password in two, and one half would look like a server.
            return Err(Error::Url {
                url: without_login(urls),
                reason,
            });
        }
        Ok(Self {
            login: servers.iter().find_map(login),
            servers,
            redacted: without_credentials(urls),
        })
    }
}

fn login(server: &ServerAddr) -> Option<Login> {
    let user = percent_decoded(server.username()?);
    Some(match server.password() {
        None => Login::Token(user),
        Some(password) => Login::Password {
            user,
            password: percent_decoded(password),
        },
    })
}

/// `%2F` → `/`. A `%` without two hexadecimal digits stays as it is.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after
            .get(..2)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => bytes.push(byte),
            None => bytes.push(b'%'),
        }
        rest = after.get(digits.map_or(0, str::len)..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Servers that are separated by commas, without their logins.
pub(super) fn without_credentials(urls: &str) -> String {
    urls.split(',')
        .map(without_login)
        .collect::<Vec<_>>()
        .join(",")
}

/// The server without the text between the scheme and the last `@`.
fn without_login(server: &str) -> String {
    match (server.find("://"), server.rfind('@')) {
        (Some(scheme), Some(at)) => {
            format!(
                "{}://{}",
                server.get(..scheme).unwrap_or_default(),
                server.get(at + 1..).unwrap_or_default()
            )
        }
        (None, Some(at)) => server.get(at + 1..).unwrap_or_default().to_owned(),
        (_, None) => server.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_do_not_show_in_errors() {
        assert_eq!(
            without_credentials("nats://user:s3cret@a:4222,tls://b:4222,u:p@c"),
            "nats://a:4222,tls://b:4222,c"
        );
    }

    #[test]
    fn a_url_that_cannot_be_understood_is_an_error_that_shows_no_password() {
        let bad = [
            "",
            "http://u:s3cret@a",
            "nats://",
            "nats://a,,b",
            "nats://u:s3cret@a:99999",
            "nats://u:s3,cret@a",
            "nats://a b",
            "nats://a,",
        ];
        for bad in bad {
            let Err(error) = Address::parse(bad) else {
                panic!("{bad}")
            };
            assert!(
                matches!(&error, Error::Url { url, .. } if *url == without_login(bad)),
                "{bad}: {error}"
            );
            assert!(!error.to_string().contains("s3"), "{error}");
        }
    }

    #[test]
    fn the_first_login_is_the_one_for_all_servers() {
        let login = |urls: &str| Address::parse(urls).unwrap().login;
        assert!(login("nats://a:4222, b").is_none());
        let expected = Login::Password {
            user: "ü/".into(),
            password: "1%2 %".into(),
        };
        assert!(
            login("nats://a,nats://%C3%BC%2F:1%252%20%25@b,nats://other:pw@c") == Some(expected)
        );
        assert!(login("s3cret@a:4222") == Some(Login::Token("s3cret".into())));
    }

    #[test]
    fn an_invalid_percent_encoding_stays_as_it_is() {
        assert_eq!(percent_decoded("100%, %2g %4"), "100%, %2g %4");
        assert_eq!(percent_decoded("%41%"), "A%");
    }
}
