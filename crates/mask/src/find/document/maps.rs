//! The rules that decide by the members of a map or list which of its values are secret.

use super::{Document, Node, Rule, is_among};
use crate::bytes::{all, begins, byte, is_opaque};
use crate::find::commands::Command;
use crate::names::{Secrecy, secrecy};

/// The nodes of a resource that are looked at.
const MAX_RESOURCE: usize = 256;

/// The first child of a map under each key that the rules need.
#[derive(Debug, Default)]
struct KnownKeys {
    kind: Option<usize>,
    version: Option<usize>,
    data: Option<usize>,
    auths: Option<usize>,
    name: Option<usize>,
    head: Option<usize>,
    /// Says that the value is secret.
    flag: Option<usize>,
    of_type: Option<usize>,
    /// The type of a JSON Web Key.
    key_type: Option<usize>,
}

impl Document {
    fn known(&self, text: &str, index: usize) -> KnownKeys {
        const NAMES: [&str; 8] = [
            "name",
            "key",
            "variable",
            "header",
            "parameter",
            "field",
            "property",
            "ParameterKey",
        ];
        const HEADS: [&str; 7] = [
            "columns",
            "fields",
            "header",
            "headers",
            "cols",
            "columnNames",
            "column_names",
        ];
        const FLAGS: [&str; 9] = [
            "sensitive",
            "isSensitive",
            "is_sensitive",
            "masked",
            "secret",
            "isSecret",
            "is_secret",
            "secure",
            "encrypted",
        ];
        let mut known = KnownKeys::default();
        for (child, node) in self.children(index) {
            let first = node
                .key
                .map_or(0, |key| byte(text, key.start).to_ascii_lowercase());
            let length = node.key.map_or(0, |key| key.end - key.start);
            let may_be = match first {
                b'a' | b'c' | b'd' | b'f' | b'h' | b'k' | b'n' | b'p' | b'v' | b'\\' => true,
                b't' => length == 4,
                b'e' | b'i' | b'm' | b's' => length >= 6,
                _ => false,
            };
            if !may_be {
                continue;
            }
            let key = self.key(text, node);
            let slots = [
                (&mut known.kind, is_among(&key, &["kind"])),
                (&mut known.version, is_among(&key, &["apiVersion"])),
                (&mut known.data, is_among(&key, &["data"])),
                (&mut known.auths, is_among(&key, &["auths"])),
                (&mut known.name, is_among(&key, &NAMES)),
                (&mut known.head, is_among(&key, &HEADS)),
                (
                    &mut known.flag,
                    is_among(&key, &FLAGS)
                        && self.scalar(text, node).is_some_and(|said| said == "true"),
                ),
                (&mut known.of_type, is_among(&key, &["type"])),
                (&mut known.key_type, is_among(&key, &["kty"])),
            ];
            for (slot, matches) in slots {
                if matches {
                    slot.get_or_insert(child);
                }
            }
        }
        known
    }

    pub(super) fn of_map(&self, text: &str, index: usize, found: &mut Vec<(usize, Rule)>) {
        const SECRET_TYPES: [&str; 6] = [
            "SecureString",
            "password",
            "Password",
            "secret",
            "SECRET",
            "secured",
        ];
        const VALUES: [&str; 9] = [
            "value",
            "val",
            "content",
            "default",
            "stringValue",
            "string_value",
            "ParameterValue",
            "values",
            "data",
        ];
        let known = self.known(text, index);
        let of_type = self.said(text, known.of_type);
        match self.said(text, known.kind).as_deref() {
            Some("Secret") => self.of_secret(text, index, found),
            Some("SecretList") => {
                for (item, _) in self.items(text, index, &["items"]) {
                    self.of_secret(text, item, found);
                }
            }
            Some("Config") => {
                let users = self.items(text, index, &["users"]);
                let users = users.filter_map(|(user, _)| self.child(text, user, &["user"]));
                found.extend(users.map(|user| (user, Rule::All)));
            }
            Some(_) => {}
            None => self.of_cut_secret(text, &known, found),
        }
        found.extend(known.auths.map(|auths| (auths, Rule::All)));
        let is_flagged = known.flag.is_some()
            || of_type
                .as_deref()
                .is_some_and(|of_type| SECRET_TYPES.contains(&of_type));
        let named = self
            .said(text, known.name)
            .map_or(Secrecy::None, |name| secrecy(&name));
        let named = if is_flagged { Secrecy::Strong } else { named };
        if named != Secrecy::None {
            let values = VALUES
                .iter()
                .filter_map(|key| self.child(text, index, &[key]));
            found.extend(values.map(|value| (value, Rule::Named(named))));
        }
        if known.key_type.is_some() {
            let private = ["d", "p", "q", "dp", "dq", "qi", "k"]
                .iter()
                .filter_map(|key| self.child(text, index, &[key]));
            found.extend(private.map(|value| (value, Rule::Named(Secrecy::Strong))));
        }
        if of_type.is_some_and(|of_type| secrecy(&of_type) == Secrecy::Strong) {
            self.of_resource(text, index, found);
        }
        if let Some(head) = known.head {
            self.of_table(text, index, head, found);
        }
    }

    /// The items of the child with one of these keys.
    fn items(
        &self,
        text: &str,
        index: usize,
        keys: &[&str],
    ) -> impl Iterator<Item = (usize, &Node)> {
        let items = self.child(text, index, keys).into_iter();
        items.flat_map(|items| self.children(items))
    }

    /// A resource of Terraform whose type is secret, such as `random_password`: its result is deeper.
    fn of_resource(&self, text: &str, index: usize, found: &mut Vec<(usize, Rule)>) {
        const RESULTS: [&str; 3] = ["result", "bcrypt_hash", "secret_string"];
        let end = self.nodes.get(index).map_or(0, |node| node.next);
        let inner = self.nodes.iter().enumerate();
        let results = inner
            .take(end.min(index + MAX_RESOURCE))
            .skip(index + 1)
            .filter(|(_, node)| RESULTS.contains(&self.key(text, node).as_ref()));
        found.extend(results.map(|(child, _)| (child, Rule::Named(Secrecy::Strong))));
    }

    fn of_secret(&self, text: &str, index: usize, found: &mut Vec<(usize, Rule)>) {
        let data = ["data", "stringData"]
            .into_iter()
            .filter_map(|key| self.child(text, index, &[key]));
        found.extend(data.map(|data| (data, Rule::All)));
    }

    /// A Kubernetes Secret that is cut off before its kind: all of its data is base64.
    fn of_cut_secret(&self, text: &str, known: &KnownKeys, found: &mut Vec<(usize, Rule)>) {
        let Some(data) = known.data else { return };
        let versioned = self
            .said(text, known.version)
            .is_some_and(|version| version == "v1");
        let mut values = self
            .children(data)
            .filter_map(|(_, node)| self.scalar(text, node))
            .peekable();
        if versioned && values.peek().is_some() && values.all(|value| is_base64(&value)) {
            found.push((data, Rule::All));
        }
    }

    /// `{"columns": ["user", "password"], "rows": [["bob", "…"]]}`.
    fn of_table(&self, text: &str, index: usize, head: usize, found: &mut Vec<(usize, Rule)>) {
        const ROWS: [&str; 5] = ["rows", "values", "data", "records", "result"];
        let name = |child: usize, node: &Node| {
            self.scalar(text, node).or_else(|| {
                self.said(
                    text,
                    self.child(text, child, &["name", "column_name", "text"]),
                )
            })
        };
        let columns: Vec<Secrecy> = self
            .children(head)
            .map(|(child, node)| name(child, node).map_or(Secrecy::None, |name| secrecy(&name)))
            .collect();
        if columns.iter().all(|column| *column == Secrecy::None) {
            return;
        }
        for (row, _) in self.items(text, index, &ROWS) {
            let cells = self
                .children(row)
                .zip(&columns)
                .filter(|(_, column)| **column != Secrecy::None);
            found.extend(cells.map(|((cell, _), column)| (cell, Rule::Named(*column))));
        }
    }

    /// `["--password", "…"]`, `["Authorization", "…"]`, `["redis-cli", "-a", "…"]`.
    pub(super) fn of_list(&self, text: &str, index: usize, found: &mut Vec<(usize, Rule)>) {
        let mut command = None;
        let mut before: Option<Secrecy> = None;
        let length = self.children(index).take(3).count();
        for (child, node) in self.children(index) {
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
            if let Some(known) = Command::named(&item) {
                command = Some(known);
            } else if let Some(flag) = command.and_then(|command| command.flag(&item)) {
                before = flag.then_some(Secrecy::Strong);
            } else if item.starts_with('-')
                || length == 2 && item.len() < 64 && !begins(&item, "key")
            {
                let named = secrecy(&item);
                before =
                    (named != Secrecy::None && !item.contains(['=', ' ']) && !is_opaque(&item, 24))
                        .then_some(named);
            }
        }
    }
}

fn is_base64(value: &str) -> bool {
    value.len() >= 8 && all(value, |b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
}
