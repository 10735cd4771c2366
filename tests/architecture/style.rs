//! Rules about code: short files, explained sleeps, parameters with a type of their own, names of tests.

use super::*;

const MAX_LINES: usize = 500;
/// Of a file that has tests or their fixtures and nothing else.
const MAX_TEST_LINES: usize = 800;
const MAX_TEST_NAME: usize = 80;

#[test]
fn every_source_file_stays_short() {
    assert_none(&all_sources(), too_long);
}

#[test]
fn every_sleep_says_why() {
    assert_none(&all_sources(), unexplained_sleeps);
}

#[test]
fn no_parameter_is_a_tuple_pattern() {
    assert_none(&program(), tuple_parameters);
}

#[test]
fn no_parameter_is_a_bool() {
    assert_none(&program(), bool_parameters);
}

#[test]
fn names_of_tests_have_at_most_eighty_characters() {
    assert_none(&all_sources(), long_test_names);
}

#[test]
fn only_the_writer_of_markdown_makes_markup_of_strings() {
    assert_none(&program(), unescaped_markup);
}

// ---------------------------------------------------------------- rules: a file in, one line a violation out

fn too_long(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    let most = if is_of_tests(&source.path) {
        MAX_TEST_LINES
    } else {
        MAX_LINES
    };
    if lines <= most || source.path.ends_with("/schema.rs") {
        return Vec::new();
    }
    vec![format!("{lines} lines, at most {most}")]
}

fn is_of_tests(path: &str) -> bool {
    let folders = ["/tests/", "/testing/"];
    path.starts_with("tests/")
        || folders.iter().any(|folder| path.contains(folder))
        || path.ends_with("/tests.rs")
        || path.ends_with("/testing.rs")
}

/// A sleep of the program is as long as something with a name says; one in a test has a comment on its line or before.
fn unexplained_sleeps(source: &Source) -> Vec<String> {
    let mut before = "";
    let mut found = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        // These words are looked for, not called.
        let slept = ["thread::sleep(", "time::sleep("]
            .iter()
            .find_map(|call| code.split_once(call));
        let explained = line.contains("// ") || before.trim_start().starts_with("//");
        let is_program = ["src/", "crates/"]
            .iter()
            .any(|tree| source.path.starts_with(tree));
        let named = is_program && slept.is_some_and(|(_, time)| !time.contains("Duration::"));
        if slept.is_some() && !explained && !named {
            found.push(format!("line {}: a sleep without a reason", index + 1));
        }
        before = line;
    }
    found
}

fn tuple_parameters(source: &Source) -> Vec<String> {
    let found = parameters(&source.text)
        .into_iter()
        .filter(|parameter| parameter.text.starts_with('('));
    found
        .map(
            |Parameter {
                 line,
                 function,
                 text,
             }| format!("line {line}: {function} takes a tuple: {text}"),
        )
        .collect()
}

fn bool_parameters(source: &Source) -> Vec<String> {
    let is_bool = |text: &str| {
        text.split_once(':')
            .is_some_and(|(_, kind)| kind.trim_matches([' ', '&']) == "bool")
    };
    let found = parameters(&source.text)
        .into_iter()
        .filter(|parameter| is_bool(&parameter.text));
    found
        .map(
            |Parameter {
                 line,
                 function,
                 text,
             }| format!("line {line}: {function} takes a bool: {text}"),
        )
        .collect()
}

/// Every other file gets its markup from `html!`, which escapes each text.
fn unescaped_markup(source: &Source) -> Vec<String> {
    if source.path == "crates/web/src/markdown/writer.rs" {
        return Vec::new();
    }
    let lines = code_lines(&source.text).filter(|(_, code)| code.contains("PreEscaped"));
    lines
        .map(|(line, _)| format!("line {line}: PreEscaped"))
        .collect()
}

fn long_test_names(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut attribute = false;
    for (line, code) in code_lines(&source.text) {
        let code = code.trim();
        attribute |= code.starts_with("#[test]") || code.starts_with("#[tokio::test");
        let Some((_, rest)) = code.split_once("fn ") else {
            continue;
        };
        let name = rest.split('(').next().unwrap_or_default();
        if attribute && name.len() > MAX_TEST_NAME {
            found.push(format!("line {line}: {} characters: {name}", name.len()));
        }
        attribute = false;
    }
    found
}

struct Parameter {
    line: usize,
    function: String,
    text: String,
}

/// The parameters of every function that the text defines; closures have none here.
fn parameters(text: &str) -> Vec<Parameter> {
    let code: String = code_lines(text)
        .map(|(_, code)| format!("{code}\n"))
        .collect();
    let mut found = Vec::new();
    for (at, keyword) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back();
        let function: String = code[at + keyword.len()..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if function.is_empty() || before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + keyword.len() + function.len()..];
        let list = rest.strip_prefix('<').map_or(rest, after_generics);
        let Some(list) = list.strip_prefix('(') else {
            continue;
        };
        for text in arguments(list) {
            found.push(Parameter {
                line,
                function: function.clone(),
                text,
            });
        }
    }
    found
}

/// The text after the `>` that closes a list of generic parameters.
fn after_generics(text: &str) -> &str {
    let (mut depth, mut last) = (1_u32, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
        last = c;
    }
    ""
}

/// The parts between commas up to the bracket that closes the list.
fn arguments(list: &str) -> Vec<String> {
    let (mut depth, mut last) = (0_u32, ' ');
    let mut found = vec![String::new()];
    for c in list.chars() {
        match c {
            ')' if depth == 0 => break,
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '>' if last != '-' && last != '=' => depth = depth.saturating_sub(1),
            _ => {}
        }
        last = c;
        match found.last_mut() {
            Some(text) if c != ',' || depth > 0 => text.push(c),
            _ => found.push(String::new()),
        }
    }
    found
        .into_iter()
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|text| !text.is_empty())
        .collect()
}

// ---------------------------------------------------------------- the rules find what is planted

#[test]
fn a_long_file_is_found_unless_it_is_generated() {
    let text = "\n".repeat(MAX_LINES + 1);
    assert_eq!(
        too_long(&source("crates/store/src/a.rs", &text)),
        ["501 lines, at most 500"]
    );
    for longer in [
        "crates/store/src/schema.rs",
        "crates/store/src/tests.rs",
        "crates/engine/src/testing/a.rs",
        "tests/it/a.rs",
    ] {
        assert_eq!(
            too_long(&source(longer, &text)),
            Vec::<String>::new(),
            "{longer}"
        );
    }
    let text = "\n".repeat(MAX_TEST_LINES + 1);
    assert_eq!(
        too_long(&source("tests/it/a.rs", &text)),
        ["801 lines, at most 800"]
    );
}

#[test]
fn a_sleep_is_found_unless_a_comment_or_a_name_explains_it() {
    // Put together so that the rule does not find this file.
    let call = ["tokio::time::", "sleep(PAUSE).await;"].concat();
    let text =
        format!("{call}\n// the broker has no signal for this\n{call}\n{call} // as above\n");
    assert_eq!(
        unexplained_sleeps(&source("tests/it/a.rs", &text)),
        ["line 1: a sleep without a reason"]
    );
    assert_eq!(
        unexplained_sleeps(&source("crates/bus/src/a.rs", &text)),
        Vec::<String>::new()
    );
    let unnamed = call.replace("PAUSE", "Duration::from_secs(1)");
    assert_eq!(
        unexplained_sleeps(&source("crates/bus/src/a.rs", &unnamed)),
        ["line 1: a sleep without a reason"]
    );
}

#[test]
fn a_tuple_as_a_parameter_is_found() {
    let text = "fn f<T: Fn(u8) -> u8>(\n    &self,\n    (a, b): (u8, u8),\n    c: (u8, u8),\n) {}\nlet g = |(x, y)| x;\n";
    assert_eq!(
        tuple_parameters(&source("src/new/a.rs", text)),
        ["line 1: f takes a tuple: (a, b): (u8, u8)"]
    );
}

#[test]
fn a_bool_as_a_parameter_is_found() {
    let text = "// fn c(d: bool)\nfn f(a: Vec<(u8, bool)>, b: &bool) -> bool {}\nfn g(h: impl Fn(bool) -> bool) {}\n";
    assert_eq!(
        bool_parameters(&source("src/new/a.rs", text)),
        ["line 2: f takes a bool: b: &bool"]
    );
}

#[test]
fn a_long_name_of_a_test_is_found() {
    let long = "a".repeat(MAX_TEST_NAME + 1);
    let text = format!(
        "#[test]\nfn {long}() {{}}\nfn {long}() {{}}\n#[tokio::test]\nasync fn short() {{}}\n"
    );
    assert_eq!(
        long_test_names(&source("src/new/a.rs", &text)),
        [format!("line 2: 81 characters: {long}")]
    );
}

#[test]
fn markup_that_is_made_of_a_string_is_found() {
    let text = "// PreEscaped is for the writer\nlet page = maud::PreEscaped(title);\n";
    assert_eq!(
        unescaped_markup(&source("crates/web/src/pages/a.rs", text)),
        ["line 2: PreEscaped"]
    );
    assert_eq!(
        unescaped_markup(&source("crates/web/src/markdown/writer.rs", text)),
        Vec::<String>::new()
    );
}
