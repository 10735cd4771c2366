//! The parsed structure of JSON or YAML in a text, and the rules that decide which of its values are secret.

mod maps;

use std::borrow::Cow;

use crate::bytes::all;
use crate::decoded_view;
use crate::names::{Secrecy, names_a_key, secrecy};
use crate::spans::{SecretSpan, Span};
use crate::values::is_harmless;

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
    /// The key without its quotes.
    pub(crate) key: Option<Span>,
    pub(crate) kind: Kind,
    /// The value without its quotes.
    pub(crate) value: Span,
    /// Index of the first node after this one that is no descendant.
    pub(crate) next: usize,
}

/// Nodes of one text.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) nodes: Vec<Node>,
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
const ABOUT: [&str; 19] = [
    "algorithm",
    "encoding",
    "size",
    "rotationPolicy",
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
        self.nodes.push(Node {
            key,
            kind,
            value,
            next: self.nodes.len() + 1,
        });
    }

    pub(super) fn close(&mut self, index: usize) {
        let next = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(index) {
            node.next = next;
        }
    }

    fn key<'a>(&self, text: &'a str, node: &Node) -> Cow<'a, str> {
        node.key
            .map_or(Cow::Borrowed(""), |key| unescaped(key.text(text)))
    }

    fn scalar<'a>(&self, text: &'a str, node: &Node) -> Option<Cow<'a, str>> {
        let value = node.value.text(text);
        match node.kind {
            Kind::Map | Kind::List | Kind::Block => None,
            Kind::String => Some(unescaped(value)),
            Kind::Bare | Kind::Line | Kind::Lines => {
                Some(value.trim().trim_matches(['"', '\'']).into())
            }
        }
    }

    pub(super) fn kind(&self, index: usize) -> Option<Kind> {
        Some(self.nodes.get(index)?.kind)
    }

    /// The children of a node, with their indices.
    fn children(&self, index: usize) -> impl Iterator<Item = (usize, &Node)> {
        self.siblings(index + 1, self.nodes.get(index).map_or(0, |node| node.next))
    }

    /// The nodes that are in no other node.
    pub(crate) fn roots(&self) -> impl Iterator<Item = usize> {
        self.siblings(0, self.nodes.len()).map(|(index, _)| index)
    }

    fn siblings(&self, first: usize, end: usize) -> impl Iterator<Item = (usize, &Node)> {
        let mut at = first;
        std::iter::from_fn(move || {
            let index = (at < end).then_some(at)?;
            let node = self.nodes.get(index)?;
            at = node.next.max(index + 1);
            Some((index, node))
        })
    }

    /// The child of a map with this key, whatever the case.
    fn child(&self, text: &str, index: usize, keys: &[&str]) -> Option<usize> {
        let (child, _) = self
            .children(index)
            .find(|(_, node)| is_among(&self.key(text, node), keys))?;
        Some(child)
    }

    fn said<'a>(&self, text: &'a str, child: Option<usize>) -> Option<Cow<'a, str>> {
        self.scalar(text, self.nodes.get(child?)?)
    }

    /// Adds the values that are secret by their key or position. `governed` applies to the node at `from` and its
    /// descendants.
    pub(crate) fn judge(
        &self,
        text: &str,
        from: usize,
        governed: Option<Secrecy>,
        spans: &mut Vec<SecretSpan>,
    ) {
        let end = self.nodes.get(from).map_or(0, |node| node.next);
        let mut found = Vec::new();
        found.extend(governed.map(|secrecy| (from, Rule::Named(secrecy))));
        for index in from..end {
            match self.kind(index) {
                Some(Kind::Map) => self.of_map(text, index, &mut found),
                Some(Kind::List) => self.of_list(text, index, &mut found),
                Some(Kind::String | Kind::Bare | Kind::Line | Kind::Lines | Kind::Block) | None => {
                }
            }
        }
        let mut rules = vec![Rule::Free; end.saturating_sub(from)];
        for (index, rule) in found {
            if let Some(place) = index
                .checked_sub(from)
                .and_then(|place| rules.get_mut(place))
            {
                *place = rule;
            }
        }
        self.mark_values(text, from, &mut rules, spans);
    }

    fn mark_values(
        &self,
        text: &str,
        from: usize,
        rules: &mut [Rule],
        spans: &mut Vec<SecretSpan>,
    ) {
        let end = from + rules.len();
        for index in from..end {
            let Some(node) = self.nodes.get(index) else {
                break;
            };
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
                Rule::Named(Secrecy::Weak | Secrecy::Random)
                    if self.is_plain_container(text, index) =>
                {
                    rule
                }
                Rule::Named(Secrecy::Weak | Secrecy::Random | Secrecy::None) => Rule::Free,
                Rule::Named(_) if self.is_selector(text, index) => Rule::Named(Secrecy::None),
                Rule::Free | Rule::All | Rule::Named(_) => rule,
            };
            if inherited == Rule::Free || node.kind == Kind::Block {
                continue;
            }
            for (child, _) in self.children(index) {
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
        if ABOUT.contains(&key.as_ref())
            || names_a_key(&key, &self.scalar(text, node).unwrap_or_default())
        {
            return Some(Rule::Free);
        }
        (named != Secrecy::None).then_some(Rule::Named(named))
    }

    fn mark_value(&self, text: &str, node: &Node, rule: Rule, spans: &mut Vec<SecretSpan>) {
        if node.value.is_empty() {
            return;
        }
        let value = self.scalar(text, node).unwrap_or_default();
        let secret = match (node.kind, rule) {
            (Kind::Map | Kind::List, _) | (_, Rule::Free) => false,
            (Kind::Block, Rule::Named(Secrecy::Weak | Secrecy::Random | Secrecy::None)) => false,
            (Kind::Block, _) => true,
            (Kind::Bare, Rule::All) => value.len() > 5 || all(&value, |b| b.is_ascii_digit()),
            (_, Rule::All) => !value.is_empty(),
            (_, Rule::Named(named)) => !is_harmless(&value, named),
        };
        if secret {
            spans.push(SecretSpan {
                quoted: node.kind == Kind::Bare,
                ..node.value.into()
            });
        }
    }

    /// Whether the values of a node are of the same kind: a list, or a map by hosts (`github-oauth: {github.com: …}`).
    fn is_plain_container(&self, text: &str, index: usize) -> bool {
        let kind = self.kind(index);
        let mut nodes = self.children(index).map(|(_, node)| node);
        kind == Some(Kind::List)
            || kind == Some(Kind::Map) && nodes.all(|node| self.key(text, node).contains('.'))
    }

    /// Whether a node only refers to a secret: `{name: db, key: password}`.
    fn is_selector(&self, text: &str, index: usize) -> bool {
        const KEYS: [&str; 6] = [
            "name",
            "key",
            "optional",
            "namespace",
            "version",
            "property",
        ];
        let is_item = |index: usize| {
            let mut items = self.children(index).peekable();
            items.peek().is_some()
                && items.all(|(_, node)| KEYS.contains(&self.key(text, node).as_ref()))
        };
        match self.kind(index) {
            Some(Kind::Map) => {
                self.child(text, index, &["name", "key"]).is_some() && is_item(index)
            }
            Some(Kind::List) => {
                let mut items = self.children(index).peekable();
                items.peek().is_some()
                    && items.all(|(item, node)| is_item(item) || self.is_object_name(text, node))
            }
            Some(Kind::String | Kind::Bare | Kind::Line | Kind::Lines | Kind::Block) | None => {
                false
            }
        }
    }

    /// Whether a list item is the name of an object: `db-credentials` in a list of `secrets`.
    fn is_object_name(&self, text: &str, node: &Node) -> bool {
        let value = self.scalar(text, node).unwrap_or_default();
        value.contains('-') && all(&value, |b| b.is_ascii_lowercase() || b == b'-')
    }
}

fn is_among(key: &str, wanted: &[&str]) -> bool {
    wanted.iter().any(|wanted| key.eq_ignore_ascii_case(wanted))
}

fn unescaped(raw: &str) -> Cow<'_, str> {
    decoded_view::unescape(raw).map_or(Cow::Borrowed(raw), |view| Cow::Owned(view.text))
}
