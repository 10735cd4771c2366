//! The profile of one sender: the form of its messages, as `tests/fixtures/fleet/README.md` defines it.

use std::collections::BTreeMap;
use std::path::Path;

use saphyr::{LoadableYamlNode as _, Yaml};

/// A sender.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) name: String,
    path: String,
    headers: BTreeMap<String, String>,
    /// The words of its severities, the mildest first.
    pub(super) severities: Vec<String>,
    /// It sends again while a problem lasts.
    pub(super) repeats: bool,
    /// The values of the placeholders of each kind of problem.
    pub(super) kinds: Vec<BTreeMap<String, String>>,
    messages: BTreeMap<String, String>,
}

impl Profile {
    /// Every profile, by folder and name.
    pub(super) fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fleet");
        let files = ["known", "vendors"].into_iter().flat_map(|folder| {
            let mut files: Vec<_> = std::fs::read_dir(root.join(folder))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            files.sort();
            files
        });
        files.map(|file| Self::load(&file)).collect()
    }

    fn load(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap();
        let documents = Yaml::load_from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let body = documents.first().unwrap();
        let get = |key: &str| {
            body.as_mapping_get(key)
                .unwrap_or_else(|| panic!("{}: no {key}", file.display()))
        };
        let list = |key: &str| get(key).as_sequence().unwrap().iter();
        let known = ["fire", "repeat", "escalate", "acknowledge", "end", "test"];
        let messages = texts(get("messages"));
        assert!(
            messages.keys().all(|kind| known.contains(&kind.as_str())),
            "{}",
            file.display()
        );
        assert!(messages.contains_key("fire"), "{}", file.display());
        let kinds: Vec<_> = list("problems").map(texts).collect();
        assert!(kinds.len() >= 4, "{}", file.display());
        Self {
            name: file.file_stem().unwrap().to_string_lossy().into_owned(),
            path: text_of(get("path")),
            headers: texts(get("headers"))
                .into_iter()
                .map(|(name, value)| (name.to_lowercase(), value))
                .collect(),
            severities: list("severities").map(text_of).collect(),
            repeats: get("repeats").as_bool().unwrap(),
            kinds,
            messages,
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The source of the path it posts to.
    pub(super) fn source(&self) -> Option<&str> {
        self.path.strip_prefix("/hooks/")
    }

    /// The body of one kind of message with its placeholders.
    pub(super) fn template(&self, kind: &str) -> Option<&str> {
        self.messages.get(kind).map(String::as_str)
    }
}

/// Fills in the placeholders of a body.
pub(super) fn filled(template: &str, values: &BTreeMap<String, String>) -> String {
    let mut body = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, behind) = after
            .split_once("}}")
            .unwrap_or_else(|| panic!("no end of a placeholder: {template}"));
        let value = values
            .get(name.trim())
            .unwrap_or_else(|| panic!("no placeholder {name:?}: {template}"));
        body.push_str(before);
        body.push_str(value);
        rest = behind;
    }
    body + rest
}

fn texts(node: &Yaml<'_>) -> BTreeMap<String, String> {
    let pairs = node.as_mapping().into_iter().flatten();
    pairs
        .map(|(key, value)| (text_of(key), text_of(value)))
        .collect()
}

fn text_of(node: &Yaml<'_>) -> String {
    let number = || node.as_integer().map(|number| number.to_string());
    let float = || node.as_floating_point().map(|number| number.to_string());
    let text = node
        .as_str()
        .map(str::to_owned)
        .or_else(number)
        .or_else(float);
    text.or_else(|| node.as_bool().map(|flag| flag.to_string()))
        .unwrap_or_else(|| panic!("no text: {node:?}"))
}
