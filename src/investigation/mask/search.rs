//! One round of the search: all finders over a text, its views and what is encoded in it.

use std::borrow::Cow;

use super::bytes::part;
use super::find::doc::Kind;
use super::find::json::{self, Island};
use super::find::{encoded, keys, lines, shapes, tables, urls, words};
use super::literals::Literals;
use super::marks::{self, Mark};
use super::names::Secrecy;
use super::views::{self, View};

/// Escapes within escapes are resolved this often: JSON in JSON in JSON, in a log line.
const VIEWS: u8 = 4;
/// Layers of base64 and URL encoding that are taken off.
const LAYERS: u8 = 2;

/// What is still to be taken off.
#[derive(Clone, Copy, Debug)]
struct Level {
    views: u8,
    layers: u8,
}

/// A text after one round.
#[derive(Debug)]
pub(super) struct Round<'t> {
    pub(super) masked: Cow<'t, str>,
    /// Whether the text is JSON and nothing else.
    pub(super) json: bool,
}

/// The search with the values that the process knows.
pub(super) struct Search<'m> {
    literals: &'m Literals,
}

impl<'m> Search<'m> {
    pub(super) fn new(literals: &'m Literals) -> Self {
        Self { literals }
    }

    pub(super) fn round<'t>(&self, text: &'t str) -> Round<'t> {
        let mut marks = Vec::new();
        let json = self.find(text, Level { views: VIEWS, layers: LAYERS }, &mut marks);
        Round { masked: marks::replace(text, marks), json }
    }

    /// Marks what is secret; whether the text is JSON and nothing else.
    fn find(&self, text: &str, level: Level, marks: &mut Vec<Mark>) -> bool {
        if text.len() < 4 {
            return false;
        }
        match views::clean(text) {
            Some(view) => {
                self.in_view(&view, 0, level, marks);
                self.literals.find(text, marks);
                false
            }
            None => self.find_clean(text, level, marks),
        }
    }

    fn find_clean(&self, text: &str, level: Level, marks: &mut Vec<Mark>) -> bool {
        self.literals.find(text, marks);
        shapes::find(text, marks);
        urls::find(text, marks);
        self.encoded(text, level, marks);
        let islands = json::islands(text);
        let whole = islands.first().is_some_and(|island| island.is_whole(text));
        if !whole {
            let doc = lines::read(text, &islands);
            for root in roots(&doc.nodes) {
                doc.judge(text, root, None, marks);
            }
            keys::find(text, marks);
        }
        let mut done = 0;
        let armoured = whole && text.contains("PRIVATE KEY-----");
        for island in &islands {
            let governed = self.plain(text, (done, island.start), level, marks);
            island.doc.judge(text, 0, governed, marks);
            self.strings(text, island, (level, armoured), marks);
            done = island.end;
        }
        self.plain(text, (done, text.len()), level, marks);
        whole
    }

    /// Text between JSON: words, tables, and what its lines say once they are unescaped.
    fn plain(&self, text: &str, (start, end): (usize, usize), level: Level, marks: &mut Vec<Mark>) -> Option<Secrecy> {
        let segment = part(text, start, end);
        let known = marks.len();
        let open = words::find(segment, marks);
        tables::find(segment, marks);
        for mark in marks.iter_mut().skip(known) {
            *mark = mark.shifted(start);
        }
        if level.views > 0 && segment.contains('\\') {
            let mut at = start;
            for line in segment.split_inclusive('\n') {
                if let Some(view) = views::unescape(line) {
                    self.in_view(&view, at, Level { views: level.views - 1, ..level }, marks);
                }
                at += line.len();
            }
        }
        open
    }

    /// The texts of an island, each for itself.
    fn strings(&self, text: &str, island: &Island, (level, armoured): (Level, bool), marks: &mut Vec<Mark>) {
        for node in &island.doc.nodes {
            if let Some((start, end)) = node.key {
                self.string(text, (start, end), (level, armoured), marks);
            }
            match node.kind {
                Kind::String => self.string(text, node.value, (level, armoured), marks),
                Kind::Bare if self.literals.is_in(part(text, node.value.0, node.value.1)) => {
                    marks.push(Mark { start: node.value.0, end: node.value.1, quoted: true });
                }
                Kind::Bare | Kind::Map | Kind::List | Kind::Line | Kind::Lines | Kind::Block => {}
            }
        }
    }

    fn string(&self, text: &str, span: (usize, usize), (level, armoured): (Level, bool), marks: &mut Vec<Mark>) {
        let value = part(text, span.0, span.1);
        let says = |b: u8| matches!(b, b'=' | b':' | b' ' | b'-' | b'<' | b'(' | b'|' | b'\\' | b'@');
        if value.len() < 6 || !value.bytes().any(says) {
            return;
        }
        if let Some(view) = (level.views > 0).then(|| views::unescape(value)).flatten() {
            self.in_view(&view, span.0, Level { views: level.views - 1, ..level }, marks);
            return;
        }
        let known = marks.len();
        words::find(value, marks);
        if armoured {
            keys::find(value, marks);
        }
        if value.starts_with(['[', '{']) {
            tables::find(value, marks);
        }
        for mark in marks.iter_mut().skip(known) {
            *mark = mark.shifted(span.0);
        }
    }

    fn in_view(&self, view: &View, at: usize, level: Level, marks: &mut Vec<Mark>) {
        let mut found = Vec::new();
        self.find(&view.text, level, &mut found);
        marks.extend(found.iter().map(|mark| view.raw(mark).shifted(at)));
    }

    fn encoded(&self, text: &str, level: Level, marks: &mut Vec<Mark>) {
        if level.layers == 0 {
            return;
        }
        let inner = Level { layers: level.layers - 1, ..level };
        for run in encoded::base64_runs(text) {
            let known = run.decoded.starts_with("-----BEGIN") || run.decoded.starts_with("{\"auths\"");
            if known || self.is_secret(&run.decoded, inner) {
                marks.push(run.mark);
            }
        }
        for (at, view) in encoded::percent_runs(text) {
            self.in_view(&view, at, inner, marks);
        }
    }

    fn is_secret(&self, text: &str, level: Level) -> bool {
        let mut marks = Vec::new();
        self.find(text, level, &mut marks);
        !marks.is_empty() && matches!(marks::replace(text, marks), Cow::Owned(_))
    }
}

/// The nodes that are below no other.
fn roots(nodes: &[super::find::doc::Node]) -> Vec<usize> {
    let mut roots = Vec::new();
    let mut at = 0;
    while let Some(node) = nodes.get(at) {
        roots.push(at);
        at = node.next.max(at + 1);
    }
    roots
}
