//! The commands of `docs/guarantees.md`: each test of a guarantee has the one that runs it.

use super::changed::Place;
use super::*;

/// The tests that `./dev prove tests` runs with larger quantities than `./dev test`.
const WHOLE: [&str; 5] = [
    "proofs",
    "web::browser",
    "web::load",
    "lifecycle::notifications::kills",
    "adapters::llm::long_streams",
];

#[test]
fn every_test_of_a_guarantee_has_its_command() {
    let page = read("docs/guarantees.md").unwrap();
    let tests = listed(&page.text);
    assert!(tests.len() > 40, "the lists are read: {}", tests.len());
    let files: Vec<Source> = program().into_iter().chain(sources("tests/it")).collect();
    assert_eq!(wrong_commands(&tests, &files), Vec::<String>::new());
}

/// A test in a list of the page, with the commands of its item.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    commands: Vec<String>,
}

/// The items of lists that begin with a name of a test. An item continues in the lines that are indented.
fn listed(page: &str) -> Vec<Listed> {
    let mut items: Vec<String> = Vec::new();
    let mut in_item = false;
    for line in page.lines() {
        if line.starts_with("- `") {
            items.push(line.to_owned());
            in_item = true;
        } else if in_item && line.starts_with("  ") {
            items.last_mut().unwrap().push_str(line);
        } else {
            in_item = false;
        }
    }
    let quoted = |item: &String| {
        item.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let listed = items.iter().map(quoted).filter_map(|words| {
        let (name, commands) = words.split_first()?;
        Some(Listed {
            name: name.clone(),
            commands: commands.to_vec(),
        })
    });
    listed.collect()
}

// ---------------------------------------------------------------- the rule: tests and files in, violations out

/// A test whose commands are not those of its place. A test that does not exist is found by another rule.
fn wrong_commands(tests: &[Listed], files: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for Listed { name, commands } in tests {
        let definition = format!("fn {name}(");
        let places: Vec<Place> = files
            .iter()
            .filter(|file| file.text.contains(&definition))
            .filter_map(|file| Place::of(&file.path))
            .collect();
        let [place] = places.as_slice() else {
            found.push(format!(
                "{name}: {} files have a test of this name",
                places.len()
            ));
            continue;
        };
        let expected = commands_of(place);
        if *commands != expected {
            found.push(format!(
                "{name}: {} instead of {}",
                commands.join("; "),
                expected.join("; ")
            ));
        }
    }
    found
}

/// The command that runs the module of a place, and that which does more there.
fn commands_of(place: &Place) -> Vec<String> {
    let module = &place.module;
    let program = match (place.program, place.package.as_str()) {
        ("lib", "tarsy") => "--lib".to_owned(),
        ("lib", package) => format!("--package tarsy-{package} --lib"),
        (program, _) => format!("--test {program}"),
    };
    let is_in = |whole: &&str| module == *whole || module.starts_with(&format!("{whole}::"));
    let has_more = place.program == "it" && WHOLE.iter().any(is_in);
    let whole = has_more.then(|| "./dev prove tests".to_owned());
    [format!("./dev test {program} {module}")]
        .into_iter()
        .chain(whole)
        .collect()
}

// ---------------------------------------------------------------- the rule finds what is planted

#[test]
fn a_test_with_the_command_of_another_place_is_found() {
    let page = "`one` is no item\n\n- `one`:\n  `./dev test --package tarsy-store --lib a`\n- `two`: `./dev test --test it web::b`; whole:\n  \
                `./dev prove tests`\n- `three`\n- `four`:\n  `./dev test --lib proofs`\n- `gone`\n\nand `more`\n";
    let files = [
        source("crates/store/src/a.rs", "fn one() {"),
        source("tests/it/web/b.rs", "async fn two() {"),
        source("tests/it/web/browser/mod.rs", "fn three() {"),
        source("tests/it/proofs/mod.rs", "fn four() {"),
    ];
    let expected = [
        "two: ./dev test --test it web::b; ./dev prove tests instead of ./dev test --test it web::b",
        "three:  instead of ./dev test --test it web::browser; ./dev prove tests",
        "four: ./dev test --lib proofs instead of ./dev test --test it proofs; ./dev prove tests",
        "gone: 0 files have a test of this name",
    ];
    assert_eq!(wrong_commands(&listed(page), &files), expected);
}
