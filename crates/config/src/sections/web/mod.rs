//! `web`: the web server, and the address that leads people to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::As;
use crate::declared::texts::{HostName, PublicAddress, Text};
use crate::write::is_default;
use tarsy_core::public_url::PublicUrl;

/// The web server. The token and the secret of a proxy are in the environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Web {
    /// The public address of the pages, such as `https://tarsy.example.com`: links lead there, and requests have to
    /// name its host. Absent: nothing carries a link.
    #[serde(with = "As::<PublicAddress>", skip_serializing_if = "is_default")]
    pub public_url: Option<PublicUrl>,
    /// Further host names, without ports, under which programs reach the server.
    #[serde(with = "As::<Vec<HostName>>", skip_serializing_if = "is_default")]
    pub hosts: Vec<String>,
    /// The authentication of users; by default `token` if there is one in the environment, else `none`.
    #[serde(skip_serializing_if = "is_default")]
    pub auth: Option<WebAuth>,
    /// The headers that the proxy replaces. Absent: either family, but a request with headers of both is refused.
    #[serde(skip_serializing_if = "is_default")]
    pub proxy_headers: Option<WebProxyHeaders>,
    #[serde(skip_serializing_if = "is_default")]
    pub allow: WebAllow,
    /// The number of connections that may be open at the same time. Each open page of a running session has one.
    #[schemars(range(min = 1, max = 65_536))]
    pub connections: u32,
    /// The number of connections that one address may open. A proxy in front of the server is one address.
    #[schemars(range(min = 1, max = 65_536))]
    pub connections_per_address: u32,
    /// The number of streams of events that one user, or one address without users, may have open.
    #[schemars(range(min = 1, max = 65_536))]
    pub streams_per_user: u32,
}

/// The authentication of web users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebAuth {
    /// Everyone may read. Only on a loopback address.
    None,
    /// By one token.
    Token,
    /// By a proxy that names the user in headers.
    Proxy,
}

/// The headers in which a proxy names the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WebProxyHeaders {
    /// `X-Forwarded-User`, `-Email`, `-Preferred-Username` and `-Groups`.
    XForwarded,
    /// `X-Auth-Request-User` and its like.
    XAuthRequest,
}

/// The groups that may do more than read, and those that may see what models were asked; `*` is every user.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct WebAllow {
    /// May ask questions about investigations.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_default")]
    pub ask: Vec<String>,
    /// May cancel investigations.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_default")]
    pub cancel: Vec<String>,
    /// May investigate an alert again.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_default")]
    pub rerun: Vec<String>,
    /// May submit an alert.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_default")]
    pub submit: Vec<String>,
    /// May judge analyses that have ended.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_default")]
    pub judge: Vec<String>,
    /// May see the requests to models, which have the instructions of operators. By default every reader.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_everyone")]
    pub prompts: Vec<String>,
    /// May see the system page: the configuration of workers without secrets, their tool servers and providers.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_default")]
    pub system: Vec<String>,
}

impl Default for WebAllow {
    fn default() -> Self {
        let none = Vec::new;
        Self {
            ask: none(),
            cancel: none(),
            rerun: none(),
            submit: none(),
            judge: none(),
            prompts: everyone(),
            system: none(),
        }
    }
}

fn everyone() -> Vec<String> {
    vec!["*".to_owned()]
}

fn is_everyone(groups: &[String]) -> bool {
    groups == everyone()
}

impl Default for Web {
    fn default() -> Self {
        Self {
            public_url: None,
            hosts: Vec::new(),
            auth: None,
            proxy_headers: None,
            allow: WebAllow::default(),
            connections: 2_048,
            connections_per_address: 512,
            streams_per_user: 64,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    use super::*;

    fn read(text: &str) -> Result<Web, String> {
        Config::parse("tarsy.yaml", text, &|_| None)
            .map(|config| config.web)
            .map_err(|faults| faults.to_string())
    }

    #[test]
    fn the_section_is_read_and_unknown_values_are_refused() {
        assert_eq!(read(""), Ok(Web::default()));
        let text = "web: {public_url: 'https://tarsy.example.com/', hosts: [tarsy-web.ns.svc], auth: proxy, proxy_headers: x-auth-request, \
                    allow: {ask: ['*'], cancel: [sre], rerun: [sre], submit: [ops], judge: [dev], prompts: [], system: [ops]}, connections: 10}";
        let expected = Web {
            public_url: PublicUrl::parse("https://tarsy.example.com/"),
            hosts: vec!["tarsy-web.ns.svc".to_owned()],
            auth: Some(WebAuth::Proxy),
            proxy_headers: Some(WebProxyHeaders::XAuthRequest),
            allow: WebAllow {
                ask: vec!["*".to_owned()],
                cancel: vec!["sre".to_owned()],
                rerun: vec!["sre".to_owned()],
                submit: vec!["ops".to_owned()],
                judge: vec!["dev".to_owned()],
                prompts: Vec::new(),
                system: vec!["ops".to_owned()],
            },
            connections: 10,
            ..Web::default()
        };
        assert_eq!(read(text), Ok(expected));
        for wrong in [
            "{hosts: ['a:1']}",
            "{auth: oidc}",
            "{proxy_headers: x-real}",
            "{connections: 0}",
            "{streams_per_user: 0}",
        ] {
            assert!(read(&format!("web: {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_public_url_is_an_address_of_the_web_without_a_secret() {
        assert_eq!(read(""), Ok(Web::default()));
        let web = read("web: {public_url: 'https://tarsy.example.com/'}").unwrap();
        assert_eq!(
            web.public_url.map(|url| url.to_string()).as_deref(),
            Some("https://tarsy.example.com")
        );
        for (text, why) in [
            (
                "web: {public_url: 'https://a:w0rd@h'}",
                "a user name, a query or a fragment",
            ),
            ("web: {public_url: h}", "begins with http:// or https://"),
            (
                "web: {public_url: 'https://:x'}",
                "a URL such as https://tarsy.example.com",
            ),
            ("web: {public-url: h}", "did you mean public_url?"),
        ] {
            let faults = read(text).unwrap_err();
            assert!(faults.contains(why) && !faults.contains("w0rd"), "{faults}");
        }
    }
}
