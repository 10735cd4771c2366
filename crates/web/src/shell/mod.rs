//! The frame of every page: title, bar, search, footer with theme and keys.
//!
//! `viewer` is the reader of a page, `words` are small components that pages share, and `response` answers with a page.

pub(crate) mod viewer;
pub(crate) mod words;
pub(crate) mod response;
pub(crate) mod visibly;
pub(crate) mod freeze;

use maud::{DOCTYPE, Markup, html};

use self::freeze::banner;
use self::viewer::{Keys, Theme, Viewer};
use self::words::brief;
use crate::assets;
use crate::ports::MAX_COUNTED;

/// The content of a page's frame.
#[derive(Clone, Debug)]
pub(crate) struct Frame<'a> {
    /// Not cleaned.
    pub title: &'a str,
    pub place: NavEntry,
    pub net: Net,
    /// The text in the search field.
    pub search: &'a str,
    /// The period in which it searches; `None` for that of the list.
    pub since: Option<&'a str>,
    /// The path of the live stream, if something may follow.
    pub live: Option<String>,
}

impl<'a> Frame<'a> {
    /// A page without a search and without a stream.
    pub(crate) fn plain(title: &'a str, place: NavEntry) -> Self {
        Self {
            title,
            place,
            net: Net::Still,
            search: "",
            since: None,
            live: None,
        }
    }
}

/// The entry of the navigation bar that the page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavEntry {
    Sessions,
    Session,
    Queue,
    Approvals,
    System,
    Submit,
    Elsewhere,
}

impl NavEntry {
    fn class(self) -> &'static str {
        match self {
            Self::Sessions => "list",
            Self::Session => "session",
            Self::Queue => "queue",
            Self::Approvals => "approvals",
            Self::System => "system",
            Self::Submit => "submit",
            Self::Elsewhere => "plain",
        }
    }
}

/// Whether the page is kept up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Net {
    Live,
    /// The broker is unavailable.
    NotLive,
    /// Nothing follows on this page.
    Still,
}

/// A whole page.
pub(crate) fn page(frame: &Frame<'_>, viewer: &Viewer, main: &Markup) -> Markup {
    let title = brief(frame.title, 200);
    html! {
        (DOCTYPE)
        html lang="en" class=[viewer.theme.class()] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(viewer.theme.schemes());
                meta name="robots" content="noindex";
                title { (title) " · tarsy" }
                link rel="stylesheet" href=(assets::STYLE.path());
                link rel="icon" href=(assets::ICON.path()) type="image/svg+xml";
                script type="module" src=(assets::SCRIPT.path()) {}
            }
            body class=(frame.place.class()) data-keys=[(viewer.keys == Keys::Off).then_some("off")]
                data-live=[frame.live.as_deref()] {
                a.skip href="#main" { "Skip to the content" }
                (bar(frame, viewer))
                main id="main" { @if let Some(freeze) = &viewer.notice.freeze { (banner(freeze)) } (main) }
                (footer(viewer))
            }
        }
    }
}

fn bar(frame: &Frame<'_>, viewer: &Viewer) -> Markup {
    let current = |place: NavEntry| match (frame.place, place) {
        (NavEntry::Session, NavEntry::Sessions) => Some("true"),
        (shown, place) => (shown == place).then_some("page"),
    };
    html! {
        header.bar {
            a.brand href="/" {
                svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" { path d="M2 10h4l2-6 4 12 2-6h4" {} }
                "tarsy"
            }
            nav aria-label="Main" {
                a href="/" aria-current=[current(NavEntry::Sessions)] { "Sessions" }
                a href="/queue" aria-current=[current(NavEntry::Queue)] { "Queue" }
                @if let Some(open) = viewer.notice.open {
                    a href="/approvals" aria-current=[current(NavEntry::Approvals)] { "Approvals" (waiting(open)) }
                }
                @if viewer.access.may_see_system { a href="/system" aria-current=[current(NavEntry::System)] { "System" } }
                @if viewer.access.may_submit { a href="/submit" aria-current=[current(NavEntry::Submit)] { "Submit" } }
            }
            form.find role="search" action="/" {
                label.vh for="q" { "Search" }
                input #q name="q" type="search" value=(brief(frame.search, 200)) maxlength="200" autocomplete="off"
                    placeholder="Search alerts and analyses, or an id";
                @if let Some(since) = frame.since { input type="hidden" name="since" value=(brief(since, 40)); }
                kbd aria-hidden="true" { "/" }
            }
            (net(frame.net))
        }
    }
}

/// The number of calls that wait for a person.
fn waiting(open: usize) -> Markup {
    let more = if open >= usize::try_from(MAX_COUNTED).unwrap_or(usize::MAX) {
        "+"
    } else {
        ""
    };
    html! { @if open > 0 { " " span.cnt.warn { (open) (more) span.vh { " open" } } } }
}

/// The state of the connection, which the script replaces.
pub(crate) fn net(net: Net) -> Markup {
    let (class, word) = match net {
        Net::Live => ("net on", "live"),
        Net::NotLive => ("net off", "not live"),
        Net::Still => ("net", ""),
    };
    html! { span #net class=(class) role="status" { i {} span { (word) } } }
}

fn footer(viewer: &Viewer) -> Markup {
    let theme = |theme: Theme| {
        html! {
            @if viewer.theme == theme { b { (theme.word()) } }
            @else { a href={ "/theme/" (theme.word()) "?back=" (viewer.back()) } rel="nofollow" { (theme.word()) } }
        }
    };
    html! {
        footer.foot {
            span { @if viewer.only_reads() { "Read-only. " }
                code { "tarsy web" } " " (env!("CARGO_PKG_VERSION")) }
            span { "Times are " b { "UTC" } " " button.act type="button" data-local="" { "local" } }
            span { "Theme " (theme(Theme::Light)) " " (theme(Theme::Dark)) " " (theme(Theme::System)) }
            @if let Some(user) = &viewer.access.user && viewer.access.has_login {
                form.out method="post" action="/logout" { span { (user) } " " button { "Log out" } }
            }
            a.keys href="/keys" { "Keys: " @for key in ["j", "k", "o", "c", "/", "?"] { kbd { (key) } " " } }
        }
    }
}

/// A page in two parts: what precedes the element `tarsy-rest`, and what follows it.
pub(crate) fn split(page: &str) -> Option<Halves<'_>> {
    let (first, rest) = page.split_once("<tarsy-rest></tarsy-rest>")?;
    Some(Halves { first, rest })
}

/// The two parts of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halves<'a> {
    pub first: &'a str,
    pub rest: &'a str,
}

/// The mark at which [`split`] parts a page. No text can contain it, because texts are escaped.
pub(crate) fn rest_mark() -> Markup {
    html! { tarsy-rest {} }
}
