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

impl Depth {
    /// The depth in a view of the text; `None` if no more views are read.
    fn in_view(self) -> Option<Self> {
        let views = self.views.checked_sub(1)?;
        Some(Self { views, ..self })
    }
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
#[derive(Debug, Default)]
struct Findings {
    spans: Vec<SecretSpan>,
    /// Offsets of words that name a secret, and of ends of encoded lines.
    names: Vec<usize>,
    form: TextForm,
}

/// A text after one round.
#[derive(Debug)]
pub(super) struct Round<'t> {
    pub(super) masked: Cow<'t, str>,
    pub(super) form: TextForm,
}

/// The search for secrets, known ones included.
pub(super) struct Search<'m> {
    pub(super) secrets: &'m KnownSecrets,
    pub(super) rules: &'m OwnRules,
}

impl Search<'_> {
    pub(super) fn round<'t>(&self, text: &'t str, grain: Grain) -> Round<'t> {
        let depth = Depth {
            views: MAX_VIEWS,
            layers: MAX_LAYERS,
        };
        let mut found = self.find(text, depth);
        spans::coarsen(text, &mut found.spans, grain, found.form);
        Round {
            masked: spans::replace(text, found.spans),
            form: found.form,
        }
    }

    fn find(&self, text: &str, depth: Depth) -> Findings {
        let mut found = Findings::default();
        if text.len() < 4 {
            return found;
        }
        match decoded_view::clean(text) {
            Some(view) => {
                self.in_view(&view, 0, depth, &mut found.spans);
                self.secrets.find(text, &mut found.spans);
            }
            None => self.find_clean(text, depth, &mut found),
        }
        found
    }

    fn find_clean(&self, text: &str, depth: Depth, found: &mut Findings) {
        if let Some(inner) = depth.in_view() {
            let views = [decoded_view::undiff(text), names::translate(text)];
            for view in views.iter().flatten() {
                self.in_view(view, 0, inner, &mut found.spans);
            }
        }
        self.secrets.find(text, &mut found.spans);
        tokens::find(text, &mut found.spans);
        urls::find(text, &mut found.spans);
        self.encoded(text, depth, found);
        let fragments = json::fragments(text);
        if fragments
            .first()
            .is_some_and(|fragment| fragment.is_whole(text))
        {
            found.form = TextForm::Json;
        } else {
            self.rules.find(text, &mut found.spans);
            let doc = yaml::parse(text, &fragments);
            for root in doc.roots() {
                doc.judge(text, root, None, &mut found.spans);
            }
            private_keys::find(text, &mut found.spans);
        }
        self.find_between(text, &fragments, depth, found);
        if let Some(inner) = depth.in_view() {
            found.names.sort_unstable();
            for view in line_prefixes::views(text, &found.names) {
                self.in_view(&view, 0, inner, &mut found.spans);
            }
        }
    }

    /// The strings of each piece of JSON, and the text between the pieces.
    fn find_between(
        &self,
        text: &str,
        fragments: &[JsonFragment],
        depth: Depth,
        found: &mut Findings,
    ) {
        let is_whole = found.form == TextForm::Json;
        let mut done = 0;
        let strings = StringSearch {
            depth,
            is_whole,
            has_private_key: is_whole && private_keys::may_be_in(text),
        };
        for fragment in fragments {
            let before = Span::new(done, fragment.start);
            let governed = self.plain(text, before, depth, found);
            fragment.doc.judge(text, 0, governed, &mut found.spans);
            self.strings(text, fragment, strings, &mut found.spans);
            done = fragment.end;
        }
        self.plain(text, Span::new(done, text.len()), depth, found);
    }

    /// Text between JSON: key-value pairs, tables, and its lines with their escapes resolved.
    fn plain(
        &self,
        text: &str,
        segment: Span,
        depth: Depth,
        found: &mut Findings,
    ) -> Option<Secrecy> {
        let start = segment.start;
        let segment = segment.text(text);
        let mut spans = Vec::new();
        let mut names = Vec::new();
        let open = key_values::find(segment, &mut spans, &mut names);
        tables::find(segment, &mut spans);
        found.spans.extend(shifted(&spans, start));
        found.names.extend(names.iter().map(|name| name + start));
        if let Some(inner) = depth.in_view() {
            let mut at = start;
            for line in segment.split_inclusive('\n') {
                if let Some(view) = decoded_view::unescape(line) {
                    self.in_view(&view, at, inner, &mut found.spans);
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
                        quoted: true,
                        ..node.value.into()
                    });
                }
                Kind::Bare | Kind::Map | Kind::List | Kind::Line | Kind::Lines | Kind::Block => {}
            }
        }
    }

    fn string(&self, text: &str, string: Span, search: StringSearch, spans: &mut Vec<SecretSpan>) {
        let value = string.text(text);
        let mut found = Vec::new();
        if search.is_whole && !value.contains('\\') {
            self.rules.find(value, &mut found);
        }
        if value.len() >= 6 && value.contains(['=', ':', ' ', '-', '<', '(', '|', '\\', '@']) {
            if let Some(inner) = search.depth.in_view()
                && let Some(view) = decoded_view::unescape(value)
            {
                self.in_view(&view, 0, inner, &mut found);
            } else {
                key_values::find(value, &mut found, &mut Vec::new());
                if search.has_private_key {
                    private_keys::find(value, &mut found);
                }
                if value.starts_with(['[', '{']) {
                    tables::find(value, &mut found);
                }
            }
        }
        spans.extend(shifted(&found, string.start));
    }

    /// Whether a number or word of JSON has a secret that the process knows or the operator describes.
    fn is_own(&self, value: &str) -> bool {
        let mut found = Vec::new();
        self.rules.find(value, &mut found);
        !found.is_empty() || self.secrets.is_in(value)
    }

    fn in_view(&self, view: &DecodedView, at: usize, depth: Depth, spans: &mut Vec<SecretSpan>) {
        let found = self.find(&view.text, depth).spans;
        spans.extend(found.iter().map(|span| view.raw(span).shifted(at)));
    }

    fn encoded(&self, text: &str, depth: Depth, found: &mut Findings) {
        let Some(layers) = depth.layers.checked_sub(1) else {
            return;
        };
        let inner = Depth { layers, ..depth };
        for run in encoded::encoded_runs(text, &mut found.names) {
            let known =
                run.decoded.starts_with("-----BEGIN") || run.decoded.starts_with("{\"auths\"");
            if known || self.is_secret(&run.decoded, inner) {
                found.spans.push(run.span);
            }
        }
        for (at, view) in encoded::percent_runs(text) {
            self.in_view(&view, at, inner, &mut found.spans);
        }
    }

    fn is_secret(&self, text: &str, depth: Depth) -> bool {
        let masked = spans::replace(text, self.find(text, depth).spans);
        matches!(masked, Cow::Owned(_))
    }
}

fn shifted(spans: &[SecretSpan], by: usize) -> impl Iterator<Item = SecretSpan> {
    spans.iter().map(move |span| span.shifted(by))
}
