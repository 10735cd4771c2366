//! The parsed structure of JSON or YAML in a text, and the rules that decide which of its values are secret.

use std::borrow::Cow;

use crate::investigation::mask::bytes::{begins, byte, is_opaque};
use crate::investigation::mask::decoded_view;
use crate::investigation::mask::names::{Secrecy, secrecy};
use crate::investigation::mask::spans::{SecretSpan, Span};
use crate::investigation::mask::values::is_harmless;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Map,
    List,
    /// A JSON string, without its quotes.
    String,
    /// A JSON number, `true`, `false` or `null`.
    Bare,
    /// A YAML value in the line of its key; the key-value finder also sees it.
    Line,
    /// A YAML value in the lines below its key.
    Lines,
    /// A YAML block scalar, `|` or `>`: the lines below it are its children.
    Block,
}

/// A value with its key, in the order of the text: children follow their parent.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Without quotes.
    pub(crate) key: Option<Span>,
    pub(crate) kind: Kind,
    /// Without quotes.
    pub(crate) value: Span,
    /// Index of the first node behind this one that is no descendant.
    pub(crate) next: usize,
}

/// Nodes of one text.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) nodes: Vec<Node>,
}

/// The first child of a map under each key that the rules need.
#[derive(Debug, Default)]
struct KnownKeys {
    kind: Option<usize>,
    version: Option<usize>,
    data: Option<usize>,
    auths: Option<usize>,
    name: Option<usize>,
    head: Option<usize>,
}

/// The rule for a node and its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Free,
    /// The values of a Kubernetes Secret, a user of a kubeconfig, an `auths` of Docker.
    All,
    Named(Secrecy),
}

/// Keys below a secret name that describe the secret or refer to it.
const ABOUT: [&str; 15] = [
    "secretName",
    "secretRef",
    "secretKeyRef",
    "configMapKeyRef",
    "valueFrom",
    "optional",
    "defaultMode",
    "type",
    "description",
    "title",
    "format",
    "$ref",
    "required",
    "minLength",
    "maxLength",
];

impl Document {
    /// Appends a node without children.
    pub(super) fn push(&mut self, key: Option<Span>, kind: Kind, value: Span) {
        self.nodes.push(Node { key, kind, value, next: self.nodes.len() + 1 });
    }

    pub(super) fn close(&mut self, index: usize) {
        let next = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(index) {
            node.next = next;
        }
    }

    fn key<'a>(&self, text: &'a str, node: &Node) -> Cow<'a, str> {
        node.key.map_or(Cow::Borrowed(""), |key| unescaped(key.text(text)))
    }

    fn scalar<'a>(&self, text: &'a str, node: &Node) -> Option<Cow<'a, str>> {
        let value = node.value.text(text);
        match node.kind {
            Kind::Map | Kind::List | Kind::Block => None,
            Kind::String => Some(unescaped(value)),
            Kind::Bare | Kind::Line | Kind::Lines => Some(value.trim().trim_matches(['"', '\'']).into()),
        }
    }

    fn children(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        self.siblings(index + 1, self.nodes.get(index).map_or(0, |node| node.next))
    }

    /// The nodes that are in no other node.
    pub(crate) fn roots(&self) -> impl Iterator<Item = usize> + '_ {
        self.siblings(0, self.nodes.len())
    }

    fn siblings(&self, first: usize, end: usize) -> impl Iterator<Item = usize> + '_ {
        let mut at = first;
        std::iter::from_fn(move || {
            let node = (at < end).then_some(at)?;
            at = self.nodes.get(node)?.next.max(node + 1);
            Some(node)
        })
    }

    /// The child of a map with this key, whatever the case.
    fn child(&self, text: &str, index: usize, keys: &[&str]) -> Option<usize> {
        self.children(index).find(|child| {
            let key = self.nodes.get(*child).map(|node| self.key(text, node));
            key.is_some_and(|key| keys.iter().any(|wanted| key.eq_ignore_ascii_case(wanted)))
        })
    }

    fn known(&self, text: &str, index: usize) -> KnownKeys {
        const NAMES: [&str; 8] =
            ["name", "key", "variable", "header", "parameter", "field", "property", "ParameterKey"];
        const HEADS: [&str; 7] = ["columns", "fields", "header", "headers", "cols", "columnNames", "column_names"];
        let mut known = KnownKeys::default();
        for child in self.children(index) {
            let Some(node) = self.nodes.get(child) else { break };
            let first = node.key.map_or(0, |key| byte(text, key.start).to_ascii_lowercase());
            if !matches!(first, b'k' | b'a' | b'd' | b'n' | b'v' | b'h' | b'p' | b'f' | b'c' | b'\\') {
                continue;
            }
            let key = self.key(text, node);
            let among = |keys: &[&str]| keys.iter().any(|wanted| key.eq_ignore_ascii_case(wanted));
            let slots = [
                (&mut known.kind, among(&["kind"])),
                (&mut known.version, among(&["apiVersion"])),
                (&mut known.data, among(&["data"])),
                (&mut known.auths, among(&["auths"])),
                (&mut known.name, among(&NAMES)),
                (&mut known.head, among(&HEADS)),
            ];
            for (slot, _) in slots.into_iter().filter(|(slot, matches)| *matches && slot.is_none()) {
                *slot = Some(child);
            }
        }
        known
    }

    fn said<'a>(&self, text: &'a str, child: Option<usize>) -> Option<Cow<'a, str>> {
        self.scalar(text, self.nodes.get(child?)?)
    }

    /// Adds the values that are secret by their key or position. `governed` applies to the node at `from` and its
    /// descendants.
    pub(crate) fn judge(&self, text: &str, from: usize, governed: Option<Secrecy>, spans: &mut Vec<SecretSpan>) {
        let end = self.nodes.get(from).map_or(0, |node| node.next);
        let mut rules = vec![Rule::Free; end.saturating_sub(from)];
        let mut set = |index: usize, rule: Rule| {
            if let Some(place) = index.checked_sub(from).and_then(|place| rules.get_mut(place)) {
                *place = rule;
            }
        };
        if let Some(secrecy) = governed {
            set(from, Rule::Named(secrecy));
        }
        let mut found = Vec::new();
        for index in from..end {
            let Some(node) = self.nodes.get(index) else { break };
            found.clear();
            match node.kind {
                Kind::Map => self.of_map(text, index, &mut found),
                Kind::List => self.of_list(text, index, &mut found),
                Kind::String | Kind::Bare | Kind::Line | Kind::Lines | Kind::Block => {}
            }
            for (child, rule) in found.drain(..) {
                set(child, rule);
            }
        }
        self.mark_values(text, from, &mut rules, spans);
    }

    fn mark_values(&self, text: &str, from: usize, rules: &mut [Rule], spans: &mut Vec<SecretSpan>) {
        let end = from + rules.len();
        for index in from..end {
            let Some(node) = self.nodes.get(index) else { break };
            let given = rules.get(index - from).copied().unwrap_or(Rule::Free);
            let own = self.own_rule(text, node, given);
            let rule = match (given, own) {
                (Rule::All, _) => Rule::All,
                (_, Some(own)) if given == Rule::Free || own == Rule::Free => own,
                (given, _) => given,
            };
            // The key-value finder finds a value in the line of its key.
            if node.kind != Kind::Line || given != Rule::Free {
                self.mark_value(text, node, rule, spans);
            }
            let inherited = match rule {
                Rule::Named(Secrecy::Weak) if node.kind == Kind::List => rule,
                Rule::Named(Secrecy::Weak | Secrecy::None) => Rule::Free,
                Rule::Named(_) if self.is_selector(text, index) => Rule::Named(Secrecy::None),
                Rule::Free | Rule::All | Rule::Named(_) => rule,
            };
            if inherited == Rule::Free || node.kind == Kind::Block {
                continue;
            }
            for child in self.children(index) {
                if let Some(place) = rules.get_mut(child - from)
                    && *place == Rule::Free
                {
                    *place = inherited;
                }
            }
        }
    }

    /// The rule that follows from the key of a node, within a node with the rule `given`.
    fn own_rule(&self, text: &str, node: &Node, given: Rule) -> Option<Rule> {
        let key = self.key(text, node);
        if key.is_empty() {
            return None;
        }
        let named = secrecy(&key);
        if named == Secrecy::None && given == Rule::Free {
            return None;
        }
        if ABOUT.contains(&key.as_ref()) {
            return Some(Rule::Free);
        }
        (named != Secrecy::None).then_some(Rule::Named(named))
    }

    fn mark_value(&self, text: &str, node: &Node, rule: Rule, spans: &mut Vec<SecretSpan>) {
        let Span { start, end } = node.value;
        let span = SecretSpan { start, end, quoted: node.kind == Kind::Bare };
        if node.value.is_empty() {
            return;
        }
        let value = self.scalar(text, node).unwrap_or_default();
        let secret = match (node.kind, rule) {
            (Kind::Map | Kind::List, _) | (_, Rule::Free) => false,
            (Kind::Block, Rule::Named(Secrecy::Weak | Secrecy::None)) => false,
            (Kind::Block, _) => true,
            (Kind::Bare, Rule::All) => value.len() > 5 || value.bytes().all(|b| b.is_ascii_digit()),
            (_, Rule::All) => !value.is_empty(),
            (_, Rule::Named(named)) => !is_harmless(&value, named),
        };
        if secret {
            spans.push(span);
        }
    }

    /// Whether a node only refers to a secret: `{name: db, key: password}`.
    fn is_selector(&self, text: &str, index: usize) -> bool {
        const KEYS: [&str; 6] = ["name", "key", "optional", "namespace", "version", "property"];
        let is_item = |index: usize| {
            let mut keys = self.children(index).filter_map(|child| self.nodes.get(child)).peekable();
            keys.peek().is_some() && keys.all(|node| KEYS.contains(&self.key(text, node).as_ref()))
        };
        match self.nodes.get(index).map(|node| node.kind) {
            Some(Kind::Map) => self.child(text, index, &["name", "key"]).is_some() && is_item(index),
            Some(Kind::List) => {
                let mut items = self.children(index).peekable();
                items.peek().is_some() && items.all(|item| is_item(item) || self.is_object_name(text, item))
            }
            Some(Kind::String | Kind::Bare | Kind::Line | Kind::Lines | Kind::Block) | None => false,
        }
    }

    /// Whether a list item is the name of an object: `db-credentials` in a list of `secrets`.
    fn is_object_name(&self, text: &str, index: usize) -> bool {
        let value = self.nodes.get(index).and_then(|node| self.scalar(text, node)).unwrap_or_default();
        value.contains('-') && value.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
    }

    fn of_map(&self, text: &str, index: usize, found: &mut Vec<(usize, Rule)>) {
        const VALUES: [&str; 9] =
            ["value", "val", "content", "default", "stringValue", "string_value", "ParameterValue", "values", "data"];
        let known = self.known(text, index);
        match self.said(text, known.kind).as_deref() {
            Some("Secret") => self.of_secret(text, index, found),
            Some("SecretList") => {
                let items = self.child(text, index, &["items"]).into_iter().flat_map(|items| self.children(items));
                items.for_each(|item| self.of_secret(text, item, found));
            }
            Some("Config") => {
                let users = self.child(text, index, &["users"]).into_iter().flat_map(|users| self.children(users));
                let users = users.filter_map(|user| self.child(text, user, &["user"]));
                found.extend(users.map(|user| (user, Rule::All)));
            }
            Some(_) => {}
            None => self.of_cut_secret(text, &known, found),
        }
        found.extend(known.auths.map(|auths| (auths, Rule::All)));
        let named = self.said(text, known.name).map_or(Secrecy::None, |name| secrecy(&name));
        if named != Secrecy::None {
            let values = VALUES.iter().filter_map(|key| self.child(text, index, &[key]));
            found.extend(values.map(|value| (value, Rule::Named(named))));
        }
        if let Some(head) = known.head {
            self.of_table(text, index, head, found);
        }
    }

    fn of_secret(&self, text: &str, index: usize, found: &mut Vec<(usize, Rule)>) {
        let data = ["data", "stringData"].into_iter().filter_map(|key| self.child(text, index, &[key]));
        found.extend(data.map(|data| (data, Rule::All)));
    }

    /// A Kubernetes Secret that is cut off before its kind: all of its data is base64.
    fn of_cut_secret(&self, text: &str, known: &KnownKeys, found: &mut Vec<(usize, Rule)>) {
        let Some(data) = known.data else { return };
        let versioned = self.said(text, known.version).is_some_and(|version| version == "v1");
        let is_base64 = |value: &str| {
            value.len() >= 8 && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
        };
        let mut values = self.children(data).filter_map(|child| self.scalar(text, self.nodes.get(child)?)).peekable();
        if versioned && values.peek().is_some() && values.all(|value| is_base64(&value)) {
            found.push((data, Rule::All));
        }
    }

    /// `{"columns": ["user", "password"], "rows": [["bob", "…"]]}`.
    fn of_table(&self, text: &str, index: usize, head: usize, found: &mut Vec<(usize, Rule)>) {
        const ROWS: [&str; 5] = ["rows", "values", "data", "records", "result"];
        let name = |child: usize| {
            let node = self.nodes.get(child)?;
            let inner = || self.said(text, self.child(text, child, &["name", "column_name", "text"]));
            self.scalar(text, node).or_else(inner)
        };
        let columns: Vec<Secrecy> =
            self.children(head).map(|child| name(child).map_or(Secrecy::None, |name| secrecy(&name))).collect();
        if columns.iter().all(|column| *column == Secrecy::None) {
            return;
        }
        let rows = self.child(text, index, &ROWS).into_iter().flat_map(|rows| self.children(rows));
        for row in rows {
            let cells = self.children(row).zip(&columns).filter(|(_, column)| **column != Secrecy::None);
            found.extend(cells.map(|(cell, column)| (cell, Rule::Named(*column))));
        }
    }

    /// `["--password", "…"]`, `["Authorization", "…"]`, `["redis-cli", "-a", "…"]`.
    fn of_list(&self, text: &str, index: usize, found: &mut Vec<(usize, Rule)>) {
        let mut command = None;
        let mut before: Option<Secrecy> = None;
        let length = self.children(index).take(3).count();
        for child in self.children(index) {
            let Some(node) = self.nodes.get(child) else { break };
            let Some(item) = self.scalar(text, node) else {
                before = None;
                continue;
            };
            if let Some(named) = before.take()
                && !item.starts_with("--")
            {
                found.push((child, Rule::Named(named)));
                continue;
            }
            if let Some(known) = super::commands::Command::named(&item) {
                command = Some(known);
            } else if let Some(flag) = command.and_then(|command| command.flag(&item)) {
                before = flag.then_some(Secrecy::Strong);
            } else if item.starts_with('-') || length == 2 && item.len() < 64 && !begins(&item, "key") {
                let named = secrecy(&item);
                before =
                    (named != Secrecy::None && !item.contains(['=', ' ']) && !is_opaque(&item, 24)).then_some(named);
            }
        }
    }
}

fn unescaped(raw: &str) -> Cow<'_, str> {
    decoded_view::unescape(raw).map_or(Cow::Borrowed(raw), |view| Cow::Owned(view.text))
}
