//! Adds an example to a configuration file, and leaves the lines of the file unchanged.

use std::ops::Range;

use serde_json::{Map, Value};

use super::read::yaml::{self, Data, Node, YamlError};

/// Columns of the entries of a section that has none yet.
const INDENT: usize = 2;
const PROVIDERS: &str = "llm_providers";
const DEFAULTS: &str = "defaults";
const DEFAULT_PROVIDER: &str = "llm_provider";

/// A file with what an example added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composed {
    /// The new text of the file.
    pub text: String,
    /// The added entries, as `section.entry`.
    pub added: Vec<String>,
    /// Entries of the example that the file had already, as `section.entry`: the file's own stay.
    pub kept: Vec<String>,
}

/// The reason why an example cannot be added to a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// The file is not YAML.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// A section of the file is written in braces or is no map.
    #[error(
        "line {line}: the entries of {section} are not below it, each on a line of its own: add the new ones by hand"
    )]
    Section {
        /// Counted from 1.
        line: usize,
        section: String,
    },
    /// The new text would not mean the file and the example.
    #[error("nothing can be added to a file of this layout: add by hand what the example has")]
    Layout,
}

/// Adds every entry of `example` that `file` lacks, each with its comments, to the section that the file has for it or
/// to a new one at the end. A model that is added beside a recording becomes the default, beside another model it does
/// not.
///
/// # Errors
/// When the file is not YAML, or has a layout to which nothing can be added.
pub fn compose(file: &str, example: &str) -> Result<Composed, ComposeError> {
    let before = object(yaml::to_json(file)?)?;
    let wanted = object(yaml::to_json(example)?)?;
    let mut after = before.clone();
    let mut text = Text::parse(file)?;
    let source = Text::parse(example)?;
    let mut comment: Vec<String> = source.head().map(str::to_owned).collect();
    let mut added = Vec::new();
    let mut kept = Vec::new();
    for section in &source.sections {
        for entry in &section.entries {
            let name = format!("{}.{}", section.key, entry.key);
            if get(&after, &section.key, &entry.key).is_some() {
                kept.push(name);
                continue;
            }
            let value = get(&wanted, &section.key, &entry.key)
                .cloned()
                .unwrap_or_default();
            let mut lines = std::mem::take(&mut comment);
            let own = source.lines.iter().take(entry.end).skip(entry.begin);
            lines.extend(own.map(|line| line.get(section.indent..).unwrap_or_default().to_owned()));
            text = text.with(&section.key, &lines)?;
            put(&mut after, &section.key, &entry.key, value);
            added.push(name);
        }
    }
    if let Some(provider) = default_provider(&before, &after, &wanted) {
        text = text.with(DEFAULTS, &[format!("{DEFAULT_PROVIDER}: {provider}")])?;
        put(&mut after, DEFAULTS, DEFAULT_PROVIDER, provider.into());
        added.push(format!("{DEFAULTS}.{DEFAULT_PROVIDER}"));
    }
    let text = text.written();
    match yaml::to_json(&text) {
        Ok(Value::Object(meaning)) if meaning == after => {}
        Ok(_) | Err(_) => return Err(ComposeError::Layout),
    }
    Ok(Composed { text, added, kept })
}

/// The default that a file with one provider needs since it has several.
fn default_provider(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    wanted: &Map<String, Value>,
) -> Option<String> {
    let providers = |of: &Map<String, Value>| {
        of.get(PROVIDERS)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let old = providers(before);
    let all = providers(after);
    if old.len() != 1 || all.len() == 1 || get(after, DEFAULTS, DEFAULT_PROVIDER).is_some() {
        return None;
    }
    let (name, provider) = old.into_iter().next()?;
    let is_recording = provider.get("provider").and_then(Value::as_str) == Some("scripted");
    if is_recording {
        providers(wanted).keys().next().cloned()
    } else {
        Some(name)
    }
}

/// The keys of a file, none if it is empty.
fn object(value: Value) -> Result<Map<String, Value>, ComposeError> {
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(ComposeError::Layout)
        }
    }
}

fn get<'m>(map: &'m Map<String, Value>, section: &str, entry: &str) -> Option<&'m Value> {
    map.get(section)?.get(entry)
}

fn put(map: &mut Map<String, Value>, section: &str, entry: &str, value: Value) {
    let section = map.entry(section).or_insert(Value::Null);
    if section.is_null() {
        *section = Value::Object(Map::new());
    }
    if let Some(entries) = section.as_object_mut() {
        entries.insert(entry.to_owned(), value);
    }
}

/// A file by its lines.
struct Text {
    lines: Vec<String>,
    line_end: &'static str,
    sections: Vec<Section>,
}

/// A key of the file with its entries. Lines are counted from 0, ends are exclusive.
struct Section {
    key: String,
    line: usize,
    end: usize,
    /// Columns before an entry.
    indent: usize,
    /// Empty unless each has lines of its own.
    entries: Vec<Entry>,
    takes_entries: bool,
}

struct Entry {
    key: String,
    /// With the comments above it.
    begin: usize,
    end: usize,
}

impl Text {
    fn parse(text: &str) -> Result<Self, YamlError> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let root = yaml::to_node(text)?;
        let keys = pairs(&root.data);
        let begins = keys
            .iter()
            .map(|(key, _)| key.line.saturating_sub(1))
            .chain([lines.len()])
            .collect::<Vec<_>>();
        let sections = keys
            .iter()
            .zip(begins.windows(2))
            .filter_map(|((key, value), lines_of)| {
                let [begin, next] = lines_of else { return None };
                Some(Section::new(key, value, &lines, *begin..*next))
            });
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Ok(Self {
            sections: sections.collect(),
            lines,
            line_end,
        })
    }

    /// The comment at its beginning.
    fn head(&self) -> impl Iterator<Item = &str> {
        self.lines
            .iter()
            .map(String::as_str)
            .take_while(|line| line.starts_with('#'))
    }

    /// The file with lines added at the end of a section.
    fn with(&self, section: &str, added: &[String]) -> Result<Self, ComposeError> {
        let mut lines = self.lines.clone();
        let indented = |columns: usize| {
            added.iter().map(move |line| {
                if line.is_empty() {
                    String::new()
                } else {
                    format!("{:columns$}{line}", "")
                }
            })
        };
        match self.sections.iter().find(|found| found.key == section) {
            Some(found) if !found.takes_entries => {
                return Err(ComposeError::Section {
                    line: found.line + 1,
                    section: section.to_owned(),
                });
            }
            Some(found) => {
                lines.splice(found.end..found.end, indented(found.indent));
            }
            None => {
                if lines.last().is_some_and(|line| !line.trim().is_empty()) {
                    lines.push(String::new());
                }
                lines.push(format!("{section}:"));
                lines.extend(indented(INDENT));
            }
        }
        let text = Self {
            lines,
            line_end: self.line_end,
            sections: Vec::new(),
        };
        Ok(Self::parse(&text.written())?)
    }

    fn written(&self) -> String {
        self.lines
            .iter()
            .flat_map(|line| [line.as_str(), self.line_end])
            .collect()
    }
}

impl Section {
    /// The section in the lines from its key to the key of the next one.
    fn new(key: &Node, value: &Node, lines: &[String], of: Range<usize>) -> Self {
        let begin = of.start;
        let line = |at: usize| lines.get(at).map(String::as_str).unwrap_or_default();
        let end = (begin + 1..of.end)
            .rev()
            .find(|at| !line(*at).trim().is_empty() && !line(*at).starts_with(['#', '-', '.']))
            .map_or(begin + 1, |last| last + 1);
        let key = word(key).unwrap_or_default().to_owned();
        let entries = pairs(&value.data);
        let is_below = entries.iter().all(|(entry, _)| entry.line > begin + 1);
        let begins: Vec<usize> = entries
            .iter()
            .map(|(entry, _)| entry.line.saturating_sub(1))
            .collect();
        let indent = begins.first().map_or(INDENT, |first| columns(line(*first)));
        // The comments above an entry are its own.
        let begins = begins.into_iter().map(|entry| {
            let above = (begin + 1..entry).rev().take_while(|at| {
                columns(line(*at)) == indent && line(*at).trim_start().starts_with('#')
            });
            above.last().unwrap_or(entry)
        });
        let begins: Vec<usize> = begins.chain([end]).collect();
        let keyed = entries
            .iter()
            .zip(begins.windows(2))
            .filter_map(|((entry, _), lines_of)| {
                let [begin, end] = lines_of else { return None };
                Some(Entry {
                    key: word(entry)?.to_owned(),
                    begin: *begin,
                    end: *end,
                })
            });
        let written = line(begin).split('#').next().unwrap_or_default().trim_end();
        let is_empty = value.data == Data::Null && written.ends_with(':');
        let takes_entries = is_empty || !entries.is_empty() && is_below;
        Self {
            key,
            line: begin,
            end,
            indent,
            entries: keyed.collect(),
            takes_entries,
        }
    }
}

/// The keys and values of a map; none for anything else.
fn pairs(data: &Data) -> &[(Node, Node)] {
    if let Data::Map(pairs) = data {
        pairs
    } else {
        &[]
    }
}

/// A key that is a text.
fn word(key: &Node) -> Option<&str> {
    if let Data::Text(text) = &key.data {
        Some(text)
    } else {
        None
    }
}

/// The blanks at the beginning of a line.
fn columns(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, EXAMPLES, example_of};

    const FILE: &str = "\
# Ours.
agents:
    sre:
        instructions: |
            Look at changes.

            Then at load.   # text

# The servers of the team.
mcp_servers:
  own: {url: 'http://127.0.0.1:1/mcp'}   # by hand

worker: {slots: 3}
";

    fn with(file: &str, case: &str) -> Composed {
        compose(file, example_of(case).unwrap().text).unwrap()
    }

    #[test]
    fn the_entries_go_into_their_sections_and_no_line_of_the_file_changes() {
        let composed = with(FILE, "prometheus");
        assert_eq!(
            (composed.added, composed.kept),
            (
                vec!["mcp_servers.prometheus".to_owned()],
                vec!["agents.sre".to_owned()]
            )
        );
        let new: Vec<&str> = composed.text.lines().collect();
        let mut rest = new.iter();
        assert!(
            FILE.lines().all(|line| rest.any(|new| *new == line)),
            "{}",
            composed.text
        );
        let at = |text: &str| new.iter().position(|line| line.contains(text)).unwrap();
        assert!(
            at("own:") < at("  # Tools for Prometheus") && at("  prometheus:") < at("worker:"),
            "{}",
            composed.text
        );
        let config = Config::parse("x", &composed.text, &|_| None).unwrap();
        assert_eq!(
            config.mcp_servers.keys().collect::<Vec<_>>(),
            ["own", "prometheus"]
        );
    }

    #[test]
    fn entries_take_the_columns_and_the_line_ends_of_the_file() {
        let file = "mcp_servers:\r\n    own: {url: 'http://127.0.0.1:1/mcp'}\r\n";
        let composed = with(file, "prometheus").text;
        assert!(
            composed.contains("\r\n    prometheus:\r\n      command: prometheus-mcp-server\r\n"),
            "{composed:?}"
        );
        Config::parse("x", &composed, &|_| None).unwrap();
    }

    #[test]
    fn a_model_becomes_the_default_beside_a_recording_only() {
        let of = |file: &str| {
            let composed = with(file, "openai").text;
            Config::parse("x", &composed, &|_| None)
                .unwrap()
                .defaults
                .settings
                .llm_provider
        };
        assert_eq!(
            of("llm_providers: \n  recording: {provider: scripted}\n").as_deref(),
            Some("openai")
        );
        let mine = "llm_providers:\n  mine: {provider: openai, model: m, api_key_env: K}\n";
        assert_eq!(of(mine).as_deref(), Some("mine"));
        assert_eq!(
            of(&format!("{mine}defaults:\n  llm_provider: mine\n")).as_deref(),
            Some("mine")
        );
        assert_eq!(
            with("", "openai").added,
            ["llm_providers.openai", "agents.sre"]
        );
    }

    #[test]
    fn any_two_examples_compose_into_a_file_that_means_both() {
        for first in EXAMPLES {
            for second in EXAMPLES {
                let composed = with(first.text, second.case);
                let old = yaml::to_json(first.text).unwrap();
                let new = yaml::to_json(&composed.text).unwrap();
                for (section, entries) in old.as_object().unwrap() {
                    for (entry, value) in entries.as_object().unwrap() {
                        assert_eq!(
                            new[section].get(entry),
                            Some(value),
                            "{} {}",
                            first.case,
                            second.case
                        );
                    }
                }
                let again = with(&composed.text, second.case);
                assert!(
                    again.added.is_empty() && again.text == composed.text,
                    "{} {}",
                    first.case,
                    second.case
                );
            }
        }
    }

    #[test]
    fn a_layout_that_takes_no_entries_is_refused_with_its_line() {
        let refused =
            |file: &str| compose(file, example_of("prometheus").unwrap().text).unwrap_err();
        for (file, line) in [
            ("worker: {slots: 2}\nmcp_servers: {own: {url: u}}\n", 2),
            ("mcp_servers: [a]\n", 1),
            ("mcp_servers: a\n", 1),
            ("mcp_servers: ~\n", 1),
        ] {
            assert_eq!(
                refused(file),
                ComposeError::Section {
                    line,
                    section: "mcp_servers".to_owned()
                },
                "{file}"
            );
        }
        assert_eq!(refused("- a\n"), ComposeError::Layout);
        assert!(matches!(refused("a: ["), ComposeError::Yaml(_)));
    }

    #[test]
    fn an_empty_section_a_second_document_and_a_comment_at_the_end_are_kept() {
        let composed = with(
            "mcp_servers:\n# none yet\n\nworker: {slots: 2}\n# the end\n",
            "prometheus",
        )
        .text;
        assert_eq!(
            Config::parse("x", &composed, &|_| None)
                .unwrap()
                .mcp_servers
                .len(),
            1
        );
        assert!(
            composed.contains("# none yet") && composed.contains("# the end"),
            "{composed}"
        );
        let separated = "---\nworker: {slots: 2}\n...\n";
        assert!(
            compose(separated, example_of("prometheus").unwrap().text)
                .is_err_and(|error| error == ComposeError::Layout)
        );
    }
}
