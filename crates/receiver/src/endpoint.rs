//! The endpoints that accept alerts.

use std::collections::BTreeMap;

use super::proof::Proof;

/// The word of every path of a source in metrics and spans.
const HOOKS: &str = "hooks";

/// The sources whose bodies the two paths of Alertmanager and Grafana accept.
const FORMS: [&str; 4] = [
    "alertmanager",
    "alertmanager-v2",
    "grafana",
    "grafana-legacy",
];

/// The endpoint of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Endpoint<'a> {
    Alertmanager,
    Grafana,
    Alert,
    Hook(Hook<'a>),
}

/// The path of a source: `/hooks/<source>`, or `/hooks/<source>/<token>`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hook<'a> {
    pub(super) source: &'a str,
    pub(super) proof: &'a Proof,
    pub(super) path_token: Option<&'a str>,
}

impl<'a> Endpoint<'a> {
    pub(super) fn of_path(path: &'a str, hooks: &'a BTreeMap<String, Proof>) -> Option<Self> {
        match path.strip_prefix('/')? {
            "alertmanager" => Some(Self::Alertmanager),
            "grafana" => Some(Self::Grafana),
            "alert" => Some(Self::Alert),
            rest => {
                let rest = rest.strip_prefix("hooks/")?;
                let (name, path_token) = rest
                    .split_once('/')
                    .map_or((rest, None), |(name, token)| (name, Some(token)));
                let (source, proof) = hooks.get_key_value(name)?;
                Some(Self::Hook(Hook {
                    source,
                    proof,
                    path_token,
                }))
            }
        }
    }

    /// The value of the metric label `path`, one of a closed set.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Grafana => "grafana",
            Self::Alert => "alert",
            Self::Hook(_) => HOOKS,
        }
    }

    /// The end of the subject.
    pub(super) fn suffix(self) -> &'a str {
        match self {
            Self::Alertmanager | Self::Grafana => self.as_str(),
            Self::Alert => "http",
            Self::Hook(hook) => hook.source,
        }
    }

    /// The source that the path names.
    pub(super) fn source(self) -> Option<&'a str> {
        match self {
            Self::Hook(hook) => Some(hook.source),
            Self::Alertmanager | Self::Grafana | Self::Alert => None,
        }
    }

    /// Whether a body from this source may be sent here. Grafana's form is Alertmanager's with more fields, which a
    /// proxy may add or drop, so each of the two endpoints accepts both, and their older forms.
    pub(super) fn accepts(self, source: &str) -> bool {
        match self {
            Self::Alertmanager | Self::Grafana => FORMS.contains(&source),
            Self::Alert | Self::Hook(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_http::listener::Token;

    #[test]
    fn only_a_known_source_has_a_path() {
        let token = Token::new("t").unwrap();
        let hooks = BTreeMap::from([
            ("shop".to_owned(), Proof::OfReceiver),
            ("grafana".to_owned(), Proof::OfReceiver),
            ("pingdom".to_owned(), Proof::InPath(token)),
        ]);
        let of = |path: &str| {
            let endpoint = Endpoint::of_path(path, &hooks)?;
            let token = match endpoint {
                Endpoint::Hook(hook) => hook.path_token,
                Endpoint::Alertmanager | Endpoint::Grafana | Endpoint::Alert => None,
            };
            Some(format!(
                "{} {} {:?} {token:?}",
                endpoint.as_str(),
                endpoint.suffix(),
                endpoint.source()
            ))
        };
        for (path, expected) in [
            ("/alert", r#"alert http None None"#),
            ("/grafana", r#"grafana grafana None None"#),
            ("/hooks/grafana", r#"hooks grafana Some("grafana") None"#),
            ("/hooks/shop", r#"hooks shop Some("shop") None"#),
            ("/hooks/shop/", r#"hooks shop Some("shop") Some("")"#),
            (
                "/hooks/pingdom/a/b",
                r#"hooks pingdom Some("pingdom") Some("a/b")"#,
            ),
        ] {
            assert_eq!(of(path).as_deref(), Some(expected), "{path}");
        }
        for path in [
            "",
            "/",
            "/hooks",
            "/hooks/",
            "/hooks/nope",
            "/hooks//shop",
            "/hooks/SHOP",
            "hooks/shop",
            "/shop",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
