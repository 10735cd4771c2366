//! A round of the search: runs all finders over a text, over its decoded views and over the text encoded in it.

use std::borrow::Cow;

use super::decoded_view::{self, DecodedView};
use super::find::document::Kind;
use super::find::json::{self, JsonFragment};
use super::find::{encoded, key_values, private_keys, tables, tokens, urls, yaml};
use super::known_secrets::KnownSecrets;
use super::line_prefixes;
use super::names::{self, Secrecy};
use super::own_rules::OwnRules;
use super::spans::{self, Grain, SecretSpan, Span, TextForm};

/// Escapes within escapes are resolved up to this depth: JSON in JSON in JSON, in a log line.
const MAX_VIEWS: u8 = 4;
/// Layers of base64 and URL encoding that are decoded.
const MAX_LAYERS: u8 = 4;

/// The number of layers that may still be decoded.
#[derive(Clone, Copy, Debug)]
struct Depth {
    views: u8,
    layers: u8,
}

/// The options for the search in the strings of a JSON fragment.
#[derive(Clone, Copy, Debug)]
struct StringSearch {
    depth: Depth,
    /// The text has a private key somewhere.
    has_private_key: bool,
    /// The whole text is JSON, so that the rules of the operator apply to its strings only.
    is_whole: bool,
}

/// The collected findings of a search.
struct Findings<'f> {
    spans: &'f mut Vec<SecretSpan>,
    /// Offsets of words that name a secret, and of ends of encoded lines.
    names: &'f mut Vec<usize>,
}

/// A text after one round.
#[derive(Debug)]
pub(super) struct Round<'t> {
    pub(super) masked: Cow<'t, str>,
    /// The whole text is JSON.
    pub(super) json: bool,
}

/// The search for secrets, known ones included.
pub(super) struct Search<'m> {
    secrets: &'m KnownSecrets,
    rules: &'m OwnRules,
}

impl<'m> Search<'m> {
    pub(super) fn new(secrets: &'m KnownSecrets, rules: &'m OwnRules) -> Self {
        Self { secrets, rules }
    }

    pub(super) fn round<'t>(&self, text: &'t str, grain: Grain) -> Round<'t> {
        let mut found = Vec::new();
        let json = self.find(
            text,
            Depth {
                views: MAX_VIEWS,
                layers: MAX_LAYERS,
            },
            &mut found,
        );
        let form = if json {
            TextForm::Json
        } else {
            TextForm::Other
        };
        spans::coarsen(text, &mut found, grain, form);
        Round {
            masked: spans::replace(text, found),
            json,
        }
    }

    /// Adds the secret spans; returns whether the whole text is JSON.
    fn find(&self, text: &str, depth: Depth, spans: &mut Vec<SecretSpan>) -> bool {
        if text.len() < 4 {
            return false;
        }
        match decoded_view::clean(text) {
            Some(view) => {
                self.in_view(&view, 0, depth, spans);
                self.secrets.find(text, spans);
                false
            }
            None => self.find_clean(text, depth, spans),
        }
    }

    fn find_clean(&self, text: &str, depth: Depth, spans: &mut Vec<SecretSpan>) -> bool {
        if let Some(view) = (depth.views > 0)
            .then(|| decoded_view::undiff(text))
            .flatten()
        {
            self.in_view(
                &view,
                0,
                Depth {
                    views: depth.views - 1,
                    ..depth
                },
                spans,
            );
        }
        if let Some(view) = (depth.views > 0).then(|| names::translate(text)).flatten() {
            self.in_view(
                &view,
                0,
                Depth {
                    views: depth.views - 1,
                    ..depth
                },
                spans,
            );
        }
        self.secrets.find(text, spans);
        tokens::find(text, spans);
        urls::find(text, spans);
        let mut names = Vec::new();
        self.encoded(
            text,
            depth,
            Findings {
                spans,
                names: &mut names,
            },
        );
        let fragments = json::fragments(text);
        let whole = fragments
            .first()
            .is_some_and(|fragment| fragment.is_whole(text));
        if !whole {
            self.rules.find(text, spans);
            let doc = yaml::read(text, &fragments);
            for root in doc.roots() {
                doc.judge(text, root, None, spans);
            }
            private_keys::find(text, spans);
        }
        self.find_between(
            text,
            &fragments,
            depth,
            Findings {
                spans,
                names: &mut names,
            },
        );
        if depth.views > 0 {
            names.sort_unstable();
            for view in line_prefixes::views(text, &names) {
                self.in_view(
                    &view,
                    0,
                    Depth {
                        views: depth.views - 1,
                        ..depth
                    },
                    spans,
                );
            }
        }
        whole
    }

    /// The strings of each piece of JSON, and the text between the pieces.
    fn find_between(
        &self,
        text: &str,
        fragments: &[JsonFragment],
        depth: Depth,
        found: Findings<'_>,
    ) {
        let Findings { spans, names } = found;
        let whole = fragments
            .first()
            .is_some_and(|fragment| fragment.is_whole(text));
        let mut done = 0;
        let strings = StringSearch {
            depth,
            is_whole: whole,
            has_private_key: whole && private_keys::may_be_in(text),
        };
        for fragment in fragments {
            let governed = self.plain(
                text,
                Span::new(done, fragment.start),
                depth,
                Findings { spans, names },
            );
            fragment.doc.judge(text, 0, governed, spans);
            self.strings(text, fragment, strings, spans);
            done = fragment.end;
        }
        self.plain(
            text,
            Span::new(done, text.len()),
            depth,
            Findings { spans, names },
        );
    }

    /// Text between JSON: key-value pairs, tables, and its lines with their escapes resolved.
    fn plain(
        &self,
        text: &str,
        segment: Span,
        depth: Depth,
        found: Findings<'_>,
    ) -> Option<Secrecy> {
        let Findings { spans, names } = found;
        let start = segment.start;
        let segment = segment.text(text);
        let known = spans.len();
        let known_names = names.len();
        let open = key_values::find(segment, spans, names);
        names
            .iter_mut()
            .skip(known_names)
            .for_each(|name| *name += start);
        tables::find(segment, spans);
        for span in spans.iter_mut().skip(known) {
            *span = span.shifted(start);
        }
        if depth.views > 0 && segment.contains('\\') {
            let mut at = start;
            for line in segment.split_inclusive('\n') {
                if let Some(view) = decoded_view::unescape(line) {
                    self.in_view(
                        &view,
                        at,
                        Depth {
                            views: depth.views - 1,
                            ..depth
                        },
                        spans,
                    );
                }
                at += line.len();
            }
        }
        open
    }

    /// Searches each string of a JSON fragment separately.
    fn strings(
        &self,
        text: &str,
        fragment: &JsonFragment,
        search: StringSearch,
        spans: &mut Vec<SecretSpan>,
    ) {
        for node in &fragment.doc.nodes {
            if let Some(key) = node.key {
                self.string(text, key, search, spans);
            }
            match node.kind {
                Kind::String => self.string(text, node.value, search, spans),
                Kind::Bare if self.is_own(node.value.text(text)) => {
                    spans.push(SecretSpan {
                        start: node.value.start,
                        end: node.value.end,
                        quoted: true,
                    });
                }
                Kind::Bare | Kind::Map | Kind::List | Kind::Line | Kind::Lines | Kind::Block => {}
            }
        }
    }

    fn string(&self, text: &str, string: Span, search: StringSearch, spans: &mut Vec<SecretSpan>) {
        let value = string.text(text);
        if search.is_whole && !self.rules.is_empty() && !value.contains('\\') {
            let known = spans.len();
            self.rules.find(value, spans);
            spans
                .iter_mut()
                .skip(known)
                .for_each(|span| *span = span.shifted(string.start));
        }
        if value.len() < 6
            || !value.bytes().any(|b: u8| {
                matches!(
                    b,
                    b'=' | b':' | b' ' | b'-' | b'<' | b'(' | b'|' | b'\\' | b'@'
                )
            })
        {
            return;
        }
        let depth = search.depth;
        if let Some(view) = (depth.views > 0)
            .then(|| decoded_view::unescape(value))
            .flatten()
        {
            self.in_view(
                &view,
                string.start,
                Depth {
                    views: depth.views - 1,
                    ..depth
                },
                spans,
            );
            return;
        }
        let known = spans.len();
        key_values::find(value, spans, &mut Vec::new());
        if search.has_private_key {
            private_keys::find(value, spans);
        }
        if value.starts_with(['[', '{']) {
            tables::find(value, spans);
        }
        for span in spans.iter_mut().skip(known) {
            *span = span.shifted(string.start);
        }
    }

    /// Whether a number or word of JSON has a secret that the process knows or the operator describes.
    fn is_own(&self, value: &str) -> bool {
        let mut found = Vec::new();
        self.rules.find(value, &mut found);
        !found.is_empty() || self.secrets.is_in(value)
    }

    fn in_view(&self, view: &DecodedView, at: usize, depth: Depth, spans: &mut Vec<SecretSpan>) {
        let mut found = Vec::new();
        self.find(&view.text, depth, &mut found);
        spans.extend(found.iter().map(|span| view.raw(span).shifted(at)));
    }

    fn encoded(&self, text: &str, depth: Depth, found: Findings<'_>) {
        let Findings { spans, names } = found;
        if depth.layers == 0 {
            return;
        }
        let inner = Depth {
            layers: depth.layers - 1,
            ..depth
        };
        for run in encoded::encoded_runs(text, names) {
            let known =
                run.decoded.starts_with("-----BEGIN") || run.decoded.starts_with("{\"auths\"");
            if known || self.is_secret(&run.decoded, inner) {
                spans.push(run.span);
            }
        }
        for (at, view) in encoded::percent_runs(text) {
            self.in_view(&view, at, inner, spans);
        }
    }

    fn is_secret(&self, text: &str, depth: Depth) -> bool {
        let mut found = Vec::new();
        self.find(text, depth, &mut found);
        !found.is_empty() && matches!(spans::replace(text, found), Cow::Owned(_))
    }
}
