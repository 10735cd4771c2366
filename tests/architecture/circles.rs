//! Rules about circles: the modules of one folder use each other in one direction only.
//!
//! A use is any path that begins with `crate`, `super` or `self`, outside of comments and tests. A module counts with
//! everything below it. That a module and its parent name each other is no circle: then one type has several files.

use std::collections::BTreeSet;

use super::*;

/// Circles among the folders of a crate that are still there. The aim is an empty list: a line whose circle is gone has
/// to go, too.
const REMAINING: [(&str, &str); 0] = [];

#[test]
fn the_folders_of_a_crate_use_each_other_in_one_direction() {
    let trees = crate_trees();
    assert!(trees.len() > 10, "the crates are read: {trees:?}");
    let mut found = Vec::new();
    for tree in &trees {
        let modules = modules_of(tree, &sources(tree));
        let circles = circles(&uses_below(&modules, &[]));
        found.extend(circles.into_iter().map(|circle| (tree.clone(), circle)));
    }
    let wrong = differences(&found, &REMAINING);
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn the_modules_of_the_engine_use_each_other_in_one_direction() {
    let tree = "crates/engine/src";
    let modules = modules_of(tree, &sources(tree));
    let parents: BTreeSet<&[String]> = modules
        .keys()
        .filter_map(|module| Some(module.split_last()?.1))
        .collect();
    assert!(parents.len() > 4, "the folders are read: {parents:?}");
    let found: Vec<String> = parents
        .into_iter()
        .flat_map(|parent| circles(&uses_below(&modules, parent)))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

// ---------------------------------------------------------------- modules and what they use

/// The names of a module from the root of its crate on.
type Module = Vec<String>;

/// Modules of one folder, each with those of the same folder that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The folders with the code of each crate, and that of the package.
fn crate_trees() -> Vec<String> {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let mut trees: Vec<String> = crates
        .map(|entry| format!("crates/{}/src", entry.unwrap().file_name().display()))
        .collect();
    trees.push("src".to_owned());
    trees.sort();
    trees
}

/// The modules below `tree`, each with its code.
fn modules_of(tree: &str, sources: &[Source]) -> BTreeMap<Module, String> {
    let mut modules = BTreeMap::new();
    for source in sources.iter().filter(|source| !is_test(&source.path)) {
        let Some(file) = source
            .path
            .strip_prefix(tree)
            .and_then(|path| path.strip_prefix('/')?.strip_suffix(".rs"))
        else {
            continue;
        };
        let mut module: Module = file.split('/').map(str::to_owned).collect();
        if module == ["lib"] || module == ["main"] || module.last().unwrap() == "mod" {
            module.pop();
        }
        let code = modules.entry(module).or_insert_with(String::new);
        code.push_str(&program_code(&source.text));
    }
    modules
}

/// The code without comments and without the items of tests.
fn program_code(text: &str) -> String {
    let mut code = String::new();
    let mut is_of_tests = false;
    for (_, line) in code_lines(without_tests(text)) {
        if line.trim() == "#[cfg(test)]" {
            is_of_tests = true;
        }
        if !is_of_tests {
            code.push_str(line);
            code.push('\n');
        }
        if line.contains(';') {
            is_of_tests = false;
        }
    }
    code
}

/// The uses of modules directly below `parent`.
fn uses_below(modules: &BTreeMap<Module, String>, parent: &[String]) -> Uses {
    let mut uses = Uses::new();
    for (module, code) in modules {
        let Some(user) = child_of(parent, module) else {
            continue;
        };
        for path in paths(code) {
            let used = resolve(module, &path, modules);
            let used = child_of(parent, &used).filter(|used| *used != user);
            if let Some(used) = used {
                let of_user = uses.entry(user.to_owned()).or_default();
                of_user.insert(used.to_owned());
            }
        }
    }
    uses
}

/// The module directly below `parent` that is or contains `module`.
fn child_of<'a>(parent: &[String], module: &'a [String]) -> Option<&'a str> {
    let below = module.strip_prefix(parent)?;
    below.first().map(String::as_str)
}

/// The module that a path in `module` leads to, without the name of the item in it.
fn resolve(module: &[String], path: &[String], modules: &BTreeMap<Module, String>) -> Module {
    let mut at = module.to_vec();
    for word in path {
        match word.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            name => {
                at.push(name.to_owned());
                if !modules.contains_key(&at) {
                    at.pop();
                    break;
                }
            }
        }
    }
    at
}

/// Every path in the code that begins with `crate`, `super` or `self`. Paths in braces are written out.
fn paths(code: &str) -> Vec<Vec<String>> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let starts = ["crate", "super", "self"].contains(token)
            && tokens.get(at + 1) == Some(&"::")
            && (at == 0 || tokens[at - 1] != "::");
        if starts {
            read_tree(&tokens, at, &[], &mut found);
        }
    }
    found
}

/// Names, and the signs of which paths are made. Any other sign is a token of its own.
fn tokens(code: &str) -> Vec<&str> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_of_name(first) {
            rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Reads the tree of paths that begins at a token, and returns the position behind it.
fn read_tree(tokens: &[&str], at: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    let mut at = at;
    loop {
        match tokens.get(at) {
            Some(&"{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    let next = read_tree(tokens, at, &path, found);
                    // A comma, `as`, or the name behind it.
                    at = if next == at { at + 1 } else { next };
                }
                return at + 1;
            }
            Some(name) if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                path.push((*name).to_owned());
                at += 1;
                if tokens.get(at) != Some(&"::") {
                    break;
                }
                at += 1;
            }
            Some(_) | None => break,
        }
    }
    if path.len() > prefix.len() {
        found.push(path);
    }
    at
}

/// Each circle as the names of its modules, sorted.
fn circles(uses: &Uses) -> Vec<String> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses
        .keys()
        .map(|module| (module.as_str(), reached_from(module, uses)))
        .collect();
    let mut circles = BTreeSet::new();
    for (module, reaches) in &reached {
        let circle: Vec<&str> = reaches
            .iter()
            .filter(|other| {
                reached
                    .get(*other)
                    .is_some_and(|back| back.contains(module))
            })
            .copied()
            .collect();
        if circle.len() > 1 {
            circles.insert(circle.join(" "));
        }
    }
    circles.into_iter().collect()
}

/// The modules that a module uses, and those that these use.
fn reached_from<'a>(module: &str, uses: &'a Uses) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![module];
    while let Some(user) = open.pop() {
        for used in uses.get(user).into_iter().flatten() {
            if reached.insert(used.as_str()) {
                open.push(used);
            }
        }
    }
    reached
}

/// Circles that the list does not have, and lines of the list whose circle is gone. A circle may have become smaller.
fn differences(found: &[(String, String)], listed: &[(&str, &str)]) -> Vec<String> {
    let fits = |circle: &str, line: &str| {
        let modules: Vec<&str> = line.split(' ').collect();
        circle.split(' ').all(|module| modules.contains(&module))
    };
    let new = found
        .iter()
        .filter(|(tree, circle)| {
            !listed
                .iter()
                .any(|(of, line)| of == tree && fits(circle, line))
        })
        .map(|(tree, circle)| format!("{tree}: a circle: {circle}"));
    let gone = listed
        .iter()
        .filter(|(tree, line)| {
            !found
                .iter()
                .any(|(of, circle)| of == tree && fits(circle, line))
        })
        .map(|(tree, line)| format!("{tree}: no circle any more: {line}"));
    new.chain(gone).collect()
}

// ---------------------------------------------------------------- the rules find what is planted

#[test]
fn a_planted_circle_is_found() {
    let files = [
        source(
            "crates/x/src/a/mod.rs",
            "use crate::b::{self, B};\nmod inner;",
        ),
        source("crates/x/src/b.rs", "fn f() -> super::c::d::D {}"),
        source("crates/x/src/c/d.rs", "use crate::{a::inner::I as J, e};"),
        source("crates/x/src/c/mod.rs", "mod d;"),
        source("crates/x/src/a/inner.rs", "use super::A;"),
        source(
            "crates/x/src/e.rs",
            "// use crate::a::A;\n#[cfg(test)]\nuse crate::a::A;\nuse std::fmt;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n",
        ),
        source("crates/x/src/lib.rs", "pub use self::a::A;"),
    ];
    let modules = modules_of("crates/x/src", &files);
    let found = |parent: &[String]| circles(&uses_below(&modules, parent));
    assert_eq!(found(&[]), ["a b c"]);
    assert_eq!(found(&["a".to_owned()]), Vec::<String>::new());
}

#[test]
fn a_new_circle_and_one_that_is_gone_are_found() {
    let found = [
        ("crates/x/src".to_owned(), "a b".to_owned()),
        ("crates/y/src".to_owned(), "a b".to_owned()),
    ];
    let listed = [("crates/x/src", "a b c"), ("crates/z/src", "d e")];
    assert_eq!(
        differences(&found, &listed),
        [
            "crates/y/src: a circle: a b",
            "crates/z/src: no circle any more: d e"
        ]
    );
}
