//! The index of the decisions: it names each page, and tells whole pages from parts of other ones.

use super::*;

/// The heading of the table of numbers whose page only names another one.
const PARTS: &str = "## Numbers that are a part of another page";

#[test]
fn the_index_names_each_decision_with_its_kind_and_status() {
    let index = read("docs/decisions/README.md").unwrap();
    assert_none(&decisions(), |page| differences(page, &index.text));
}

#[test]
fn no_document_leads_to_a_decision_that_only_names_another_page() {
    let parts: Vec<String> = decisions()
        .iter()
        .filter(|page| is_part(page))
        .map(file_name)
        .collect();
    assert!(!parts.is_empty(), "nothing was read: the rule cannot fail");
    assert_none(&documents(), |document| links_to_parts(document, &parts));
}

fn decisions() -> Vec<Source> {
    files_below("docs/decisions", |path| {
        path.ends_with(".md") && !path.ends_with("README.md")
    })
}

fn file_name(page: &Source) -> String {
    page.path.rsplit('/').next().unwrap().to_owned()
}

fn is_part(page: &Source) -> bool {
    page.text.contains("\n\nThis is a part of decision")
}

// ---------------------------------------------------------------- rules: a file in, one line a violation out

fn differences(page: &Source, index: &str) -> Vec<String> {
    let name = file_name(page);
    let number = name[..4].trim_start_matches('0');
    let mut found = Vec::new();
    if !page.text.starts_with(&format!("# {number}. ")) {
        found.push(format!("the heading does not begin with {number}"));
    }
    let (pages, parts) = index.split_once(PARTS).unwrap();
    let part = is_part(page);
    let table = if part { parts } else { pages };
    let start = if part {
        format!("| [{number}]({name})")
    } else {
        format!("| {number} | [")
    };
    let named = |line: &&str| line.starts_with(&start) && line.contains(&format!("]({name}) |"));
    let Some(row) = table.lines().find(named) else {
        found.push("the index does not name the page in its table".to_owned());
        return found;
    };
    let words: Vec<&str> = page.text.split_whitespace().collect();
    let text = words.join(" ");
    let superseded = text.contains("uperseded in part by [") || text.contains("uperseded by [");
    if superseded != row.contains("| superseded ") {
        found.push("page and index disagree on whether it is superseded".to_owned());
    }
    found
}

/// The index lists the parts, so its own links to them are no violation.
fn links_to_parts(document: &Source, parts: &[String]) -> Vec<String> {
    if document.path == "docs/decisions/README.md" {
        return Vec::new();
    }
    let named = parts
        .iter()
        .filter(|name| document.text.contains(name.as_str()));
    named
        .map(|name| format!("{name} only names another page"))
        .collect()
}

// ---------------------------------------------------------------- the rules find what is planted

#[test]
fn a_decision_that_the_index_does_not_know_is_found() {
    let index = format!(
        "| 1 | [One](0001-one.md) | Text. | superseded in part by [2](0002-two.md) |\n\
         | 2 | [Two](0002-two.md) | Text. | accepted |\n\n{PARTS}\n\n| [3](0003-three.md) | [1](0001-one.md) |\n"
    );
    let page = |name: &str, text: &str| source(&format!("docs/decisions/{name}"), text);
    let part = "\n\nThis is a part of decision [1](0001-one.md) now.\n";

    let one = page(
        "0001-one.md",
        "# 1. One\n\nText. Superseded in part by [2](0002-two.md).\n",
    );
    assert_eq!(differences(&one, &index), Vec::<String>::new());
    let three = page("0003-three.md", &format!("# 3. Three{part}"));
    assert_eq!(differences(&three, &index), Vec::<String>::new());

    let silent = page("0001-one.md", "# 1. One\n\nText.\n");
    assert_eq!(
        differences(&silent, &index),
        ["page and index disagree on whether it is superseded"]
    );
    let unknown = page("0004-four.md", "# 5. Four\n\nText.\n");
    assert_eq!(
        differences(&unknown, &index),
        [
            "the heading does not begin with 4",
            "the index does not name the page in its table"
        ]
    );
    let whole = page("0003-three.md", "# 3. Three\n\nText.\n");
    assert_eq!(
        differences(&whole, &index),
        ["the index does not name the page in its table"]
    );
    let emptied = page("0002-two.md", &format!("# 2. Two{part}"));
    assert_eq!(
        differences(&emptied, &index),
        ["the index does not name the page in its table"]
    );
}

#[test]
fn a_link_to_a_part_of_a_decision_is_found() {
    let parts = ["0003-three.md".to_owned()];
    let document = source(
        "docs/a.md",
        "[one](decisions/0001-one.md) [three](decisions/0003-three.md)\n",
    );
    assert_eq!(
        links_to_parts(&document, &parts),
        ["0003-three.md only names another page"]
    );
}
