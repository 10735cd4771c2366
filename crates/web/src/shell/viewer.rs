//! The viewer of a page: rights, theme and keyboard setting.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

use crate::ports::Notice;
use crate::rights::Access;

/// The cookie of the theme, and that of the keys.
pub(crate) const THEME_COOKIE: &str = "tarsy-theme";
pub(crate) const KEYS_COOKIE: &str = "tarsy-keys";

/// The reader of a page: settings and rights that change its markup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Viewer {
    pub theme: Theme,
    pub keys: Keys,
    pub access: Access,
    /// The line about people, on every page.
    pub notice: Notice,
    /// Path and query of the page.
    pub path: String,
}

impl Viewer {
    pub(crate) fn new(access: Access, headers: &HeaderMap, path: &str) -> Self {
        Self {
            theme: Theme::parse(cookie(headers, THEME_COOKIE)),
            keys: if cookie(headers, KEYS_COOKIE) == Some("off") {
                Keys::Off
            } else {
                Keys::On
            },
            access,
            notice: Notice::default(),
            path: path.to_owned(),
        }
    }

    /// Whether the viewer can do nothing but read.
    pub(crate) fn only_reads(&self) -> bool {
        let Access {
            may_ask,
            may_cancel,
            may_rerun,
            may_submit,
            may_judge,
            ..
        } = self.access;
        !(may_ask || may_cancel || may_rerun || may_submit || may_judge)
    }

    /// The path as the value of a parameter.
    pub(crate) fn back(&self) -> String {
        url::form_urlencoded::byte_serialize(self.path.as_bytes()).collect()
    }
}

/// The names and values of the cookies of a request.
pub(crate) fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    cookies(headers)
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// The colours of a page. The server renders the choice, so that no page flashes in the other ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// The theme of the reader's system.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn parse(word: Option<&str>) -> Self {
        [Self::Light, Self::Dark]
            .into_iter()
            .find(|theme| word == Some(theme.word()))
            .unwrap_or_default()
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(crate) fn class(self) -> Option<&'static str> {
        (self != Self::System).then(|| self.word())
    }

    pub(crate) fn schemes(self) -> &'static str {
        match self {
            Self::System => "light dark",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// Whether single keys do something (WCAG 2.1.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keys {
    #[default]
    On,
    Off,
}
