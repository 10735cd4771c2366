//! The format of `rubric.yaml`: what the report of a real model has to say about a drill, and what it must not say.
//!
//! `expected.yaml` describes the recorded answers of the scripted model. A real model goes its own way, so a rubric
//! names only the cause, the evidence that proves it and the actions that are forbidden. `grade` compares a report with
//! it.

use tarsy_config::read::context::Context;
use tarsy_config::read::reader::{Field, Map};
use tarsy_config::read::yaml;
use tarsy_config::{Fault, Faults};

/// The file beside the alert of a drill.
const FILE: &str = "rubric.yaml";
/// The version of the format that this program reads.
const VERSION: u32 = 1;

/// The content of a `rubric.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rubric {
    /// The cause in the words of a person; shown beside a report that misses it.
    pub reference: String,
    /// The line `Cause` has a phrase of each of these groups.
    pub all_of: Vec<Phrases>,
    /// The line `Cause` has no phrase of these groups.
    pub none_of: Vec<Phrases>,
    /// Further facts, anywhere in the report. They are counted and decide nothing.
    pub detail: Vec<Phrases>,
    /// The report cites one result of each of these groups.
    pub decisive: Vec<Decisive>,
    /// Tools that may be called although they change something.
    pub allowed: Vec<String>,
    /// The line `Do next` has none of these phrases.
    pub do_next_none_of: Vec<String>,
}

/// Phrases of which one is enough. Case, white space and Markdown do not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phrases {
    /// The name in the result of a drill.
    pub id: String,
    /// The texts of which one is enough; at least one.
    pub any_of: Vec<String>,
}

/// Results of tools of which one has to be cited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisive {
    /// The name in the result of a drill.
    pub id: String,
    /// The proofs of which one is enough; at least one.
    pub any_of: Vec<Proof>,
}

/// A text in the result of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The full name, `server.tool`.
    pub tool: String,
    /// The text that the result contains, byte for byte.
    pub contains: String,
}

impl Rubric {
    /// Parses a `rubric.yaml`; `tools` are the full names of the drill's tools.
    ///
    /// # Errors
    /// All faults of the text, each with its line.
    pub fn parse(text: &str, tools: &[String]) -> Result<Self, Faults> {
        let root = yaml::to_node(text).map_err(|error| {
            faults_of_file(vec![Fault {
                key: String::new(),
                line: error.line,
                problem: error.message,
            }])
        })?;
        let context = Context::new(&|_| None);
        let rubric = Field::root(&context, &root).section(|map| read(map, tools));
        let faults = context.into_faults();
        if faults.is_empty() {
            Ok(rubric)
        } else {
            Err(faults_of_file(faults))
        }
    }
}

fn faults_of_file(faults: Vec<Fault>) -> Faults {
    Faults {
        file: FILE.to_owned(),
        faults,
    }
}

fn read(map: &mut Map<'_>, tools: &[String]) -> Rubric {
    if let Some(field) = map.required("version", "1") {
        field.number(VERSION..=VERSION);
    }
    let mut rubric = Rubric {
        reference: map.text("reference").unwrap_or_default(),
        ..Rubric::default()
    };
    if let Some(cause) = map.required("cause", "the phrases of the line Cause") {
        cause.section(|map| {
            rubric.all_of = groups(map, "all_of", read_phrases);
            rubric.none_of = groups(map, "none_of", read_phrases);
            if rubric.all_of.is_empty() {
                map.missing("all_of", "at least one group of phrases");
            }
        });
    }
    rubric.detail = groups(map, "detail", read_phrases);
    if let Some(evidence) = map.required("evidence", "the decisive results of tools") {
        evidence.section(|map| {
            rubric.decisive = groups(map, "decisive", |map| read_decisive(map, tools));
            if rubric.decisive.is_empty() {
                map.missing("decisive", "at least one group of results");
            }
        });
    }
    map.section("actions", |map| {
        rubric.allowed = map
            .list("allowed", |field| field.reference(tools))
            .unwrap_or_default();
        rubric.do_next_none_of = map.texts("do_next_none_of");
    });
    rubric
}

fn groups<T>(map: &mut Map<'_>, key: &'static str, read: impl Fn(&mut Map<'_>) -> T) -> Vec<T> {
    map.list(key, |field| Some(field.section(&read)))
        .unwrap_or_default()
}

fn read_phrases(map: &mut Map<'_>) -> Phrases {
    Phrases {
        id: read_id(map),
        any_of: at_least_one(map, "a list of phrases", phrase),
    }
}

fn read_id(map: &mut Map<'_>) -> String {
    let id = map.required("id", "a name");
    id.and_then(|field| field.text()).unwrap_or_default()
}

/// The items of the list `any_of`.
fn at_least_one<T>(
    map: &mut Map<'_>,
    accepted: &str,
    read: impl Fn(&Field<'_>) -> Option<T>,
) -> Vec<T> {
    let list = map.required("any_of", accepted).and_then(|field| {
        let items: Vec<T> = field.list()?.iter().filter_map(read).collect();
        if items.is_empty() {
            field.expected("at least one item");
        }
        Some(items)
    });
    list.unwrap_or_default()
}

/// An empty phrase would be found in every text.
fn phrase(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    if text.trim().is_empty() {
        field.expected("a phrase");
        return None;
    }
    Some(text)
}

fn read_decisive(map: &mut Map<'_>, tools: &[String]) -> Decisive {
    Decisive {
        id: read_id(map),
        any_of: at_least_one(map, "a list of results", |item| {
            Some(item.section(|map| read_proof(map, tools)))
        }),
    }
}

fn read_proof(map: &mut Map<'_>, tools: &[String]) -> Proof {
    let tool = map
        .required("tool", &tools.join(", "))
        .and_then(|field| field.reference(tools));
    let contains = map
        .required("contains", "a text of the result")
        .and_then(|field| phrase(&field));
    Proof {
        tool: tool.unwrap_or_default(),
        contains: contains.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<String> {
        vec!["drill.look".to_owned(), "drill.change".to_owned()]
    }

    #[test]
    fn a_rubric_is_read_whole() {
        let text = "
version: 1
reference: The disk is full.
cause:
  all_of: [{id: disk, any_of: [disk full, no space]}]
  none_of: [{id: other, any_of: [memory]}]
detail: [{id: size, any_of: ['94 %']}]
evidence:
  decisive: [{id: proof, any_of: [{tool: drill.look, contains: '94%'}]}]
actions: {allowed: [drill.change], do_next_none_of: [reboot]}
";
        let phrases = |id: &str, any_of: &[&str]| Phrases {
            id: id.to_owned(),
            any_of: any_of.iter().map(|phrase| (*phrase).to_owned()).collect(),
        };
        let proof = Proof {
            tool: "drill.look".to_owned(),
            contains: "94%".to_owned(),
        };
        let expected = Rubric {
            reference: "The disk is full.".to_owned(),
            all_of: vec![phrases("disk", &["disk full", "no space"])],
            none_of: vec![phrases("other", &["memory"])],
            detail: vec![phrases("size", &["94 %"])],
            decisive: vec![Decisive {
                id: "proof".to_owned(),
                any_of: vec![proof],
            }],
            allowed: vec!["drill.change".to_owned()],
            do_next_none_of: vec!["reboot".to_owned()],
        };
        assert_eq!(Rubric::parse(text, &tools()), Ok(expected));
    }

    #[test]
    fn every_fault_of_a_rubric_has_its_line() {
        let text = "
version: 2
cause:
  all_of:
    - {id: disk, any_of: []}
    - {any_of: ['', full]}
evidence:
  decisive:
    - id: proof
      any_of: [{tool: drill.lok, contain: x}]
actions: {allow: []}
";
        insta::assert_snapshot!(Rubric::parse(text, &tools()).unwrap_err(), @r#"
        rubric.yaml: 8 faults
          version                                   line 2    2; accepted: a whole number (1 to 1)
          cause.all_of[0].any_of                    line 5    a list; accepted: at least one item
          cause.all_of[1].id                        line 6    missing; accepted: a name
          cause.all_of[1].any_of[0]                 line 6    ""; accepted: a phrase
          evidence.decisive[0].any_of[0].tool       line 10   "drill.lok" is not defined; defined: drill.look, drill.change (did you mean drill.look?)
          evidence.decisive[0].any_of[0].contains   line 10   missing; accepted: a text of the result
          evidence.decisive[0].any_of[0].contain    line 10   unknown key; accepted: tool, contains (did you mean contains?)
          actions.allow                             line 11   unknown key; accepted: allowed, do_next_none_of (did you mean allowed?)
        "#);
        let faults = Rubric::parse("a: [\n", &tools()).unwrap_err();
        assert_eq!(
            (faults.file.as_str(), faults.faults[0].line),
            ("rubric.yaml", 2)
        );
    }
}
