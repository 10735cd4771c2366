//! Rules about packed code: one value per `let`, no name for a closure that is used once, one convention of modules.
//!
//! A file is read as tokens, so that a statement over several lines, or inside the call of a macro, counts as well.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::*;

#[test]
fn every_let_binds_one_value() {
    assert_none(&program(), paired_values);
}

#[test]
fn a_closure_with_a_name_is_used_more_than_once() {
    assert_none(&program(), single_use_closures);
}

#[test]
fn a_condition_that_ignores_the_value_is_an_if() {
    assert_none(&program(), filters_without_value);
}

#[test]
fn no_function_of_the_program_is_named_of() {
    assert_none(&program(), functions_named_of);
}

#[test]
fn the_root_of_a_folder_of_modules_is_its_mod_rs() {
    let paths: Vec<String> = program().into_iter().map(|source| source.path).collect();
    assert_eq!(roots_beside_their_folder(&paths), Vec::<String>::new());
}

// ---------------------------------------------------------------- rules: a file in, one line a violation out

/// A pattern of a tuple with a tuple behind it, as in `let (first, second) = (1, 2);`.
fn paired_values(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for statements in blocks(&source.text) {
        for (at, token) in statements.iter().enumerate() {
            let Some(TokenTree::Group(pattern)) = statements.get(at + 1) else {
                continue;
            };
            if !is_word(token, "let") || pattern.delimiter() != Delimiter::Parenthesis {
                continue;
            }
            // A type may stand between the pattern and the value.
            let rest = &statements[at + 2..];
            let Some(equals) = rest.iter().position(|token| is_sign(token, '=')) else {
                continue;
            };
            let [TokenTree::Group(value), end, ..] = &rest[equals + 1..] else {
                continue;
            };
            let is_tuple = value.delimiter() == Delimiter::Parenthesis && is_sign(end, ';');
            if is_tuple && elements(pattern.stream()) == elements(value.stream()) {
                found.push(format!("line {}: a let of several values", line_of(token)));
            }
        }
    }
    found
}

/// A closure is written where it is used, or is a function: its name has to occur twice after its statement.
fn single_use_closures(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for statements in blocks(&source.text) {
        for (at, token) in statements.iter().enumerate() {
            if !is_word(token, "let") {
                continue;
            }
            let Some((name, rest)) = closure(&statements[at + 1..]) else {
                continue;
            };
            let end = rest.iter().position(|token| is_sign(token, ';'));
            let after = &rest[end.map_or(rest.len(), |end| end + 1)..];
            if uses_of(&name, after) == 1 {
                found.push(format!("line {}: {name} is used once", line_of(token)));
            }
        }
    }
    found
}

fn filters_without_value(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for tokens in blocks(&source.text) {
        for pair in tokens.windows(2) {
            let [name, TokenTree::Group(arguments)] = pair else {
                continue;
            };
            let first: Vec<TokenTree> = arguments.stream().into_iter().take(3).collect();
            let ignores = matches!(&first[..], [open, value, close]
                if is_sign(open, '|') && is_word(value, "_") && is_sign(close, '|'));
            if is_word(name, "filter") && ignores {
                found.push(format!(
                    "line {}: a filter ignores its value",
                    line_of(name)
                ));
            }
        }
    }
    found
}

/// A constructor is `new`, `parse` or `from_…`, and a lookup says what it finds. Tests may have shorter names.
fn functions_named_of(source: &Source) -> Vec<String> {
    if is_test(&source.path) {
        return Vec::new();
    }
    code_lines(without_tests(&source.text))
        .filter(|(_, line)| line.contains("fn of(") || line.contains("fn of<"))
        .map(|(line, _)| format!("line {line}: a function named `of`"))
        .collect()
}

/// Most folders have a `mod.rs`; the other convention is a file of the folder's name beside it.
fn roots_beside_their_folder(paths: &[String]) -> Vec<String> {
    let has_folder = |path: &str| {
        path.strip_suffix(".rs").is_some_and(|stem| {
            paths
                .iter()
                .any(|path| path.starts_with(&format!("{stem}/")))
        })
    };
    paths
        .iter()
        .filter(|path| has_folder(path))
        .cloned()
        .collect()
}

/// The tokens of the file, and those between each pair of brackets in it.
fn blocks(text: &str) -> Vec<Vec<TokenTree>> {
    let text: TokenStream = text.parse().unwrap();
    let mut open = vec![text];
    let mut blocks = Vec::new();
    while let Some(stream) = open.pop() {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        for token in &tokens {
            if let TokenTree::Group(group) = token {
                open.push(group.stream());
            }
        }
        blocks.push(tokens);
    }
    blocks
}

/// The name of the closure that a `let` binds, and the tokens after its `=`.
fn closure(tokens: &[TokenTree]) -> Option<(String, &[TokenTree])> {
    let tokens = without(tokens, "mut");
    let [TokenTree::Ident(name), equals, rest @ ..] = tokens else {
        return None;
    };
    let first = without(without(rest, "async"), "move").first()?;
    (is_sign(equals, '=') && is_sign(first, '|')).then(|| (name.to_string(), rest))
}

fn without<'a>(tokens: &'a [TokenTree], word: &str) -> &'a [TokenTree] {
    match tokens {
        [first, rest @ ..] if is_word(first, word) => rest,
        _ => tokens,
    }
}

fn uses_of(name: &str, tokens: &[TokenTree]) -> usize {
    let uses = tokens.iter().map(|token| match token {
        TokenTree::Group(group) => uses_of(name, &group.stream().into_iter().collect::<Vec<_>>()),
        TokenTree::Ident(_) => usize::from(is_word(token, name)),
        TokenTree::Punct(_) | TokenTree::Literal(_) => 0,
    });
    uses.sum()
}

fn elements(tuple: TokenStream) -> usize {
    let tokens: Vec<TokenTree> = tuple.into_iter().collect();
    tokens
        .split(|token| is_sign(token, ','))
        .filter(|element| !element.is_empty())
        .count()
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}

// ---------------------------------------------------------------- the rules find what is planted

#[test]
fn a_let_of_several_values_is_found() {
    let text = "fn f() {\n    let (a, b) = (1, 2);\n    let (c, d): (u8, u8) = (\n        g(1, 2),\n        3,\n    );\n    let (e, f) = g(1, 2);\n    let (g, h) = (1, 2).pair();\n}\n";
    assert_eq!(
        paired_values(&source("src/new/a.rs", text)),
        [
            "line 2: a let of several values",
            "line 3: a let of several values"
        ]
    );
}

#[test]
fn a_closure_that_is_used_once_is_found_in_code_and_in_macros() {
    let text = "fn f() {\n    let once = |a: u8| a + 1;\n    let twice = move || 2;\n    once(twice());\n    twice();\n}\n#[test]\nfn g() {\n    let mut add = |a| {\n        let add = 2;\n        a + add\n    };\n    assert!(add(1));\n}\n";
    assert_eq!(
        single_use_closures(&source("src/new/a.rs", text)),
        ["line 9: add is used once", "line 2: once is used once"]
    );
}

#[test]
fn a_filter_that_ignores_its_value_is_found() {
    let text = "fn f() {\n    a.filter(|_| b);\n    a.filter(|(_, c)| *c);\n}\n";
    assert_eq!(
        filters_without_value(&source("src/new/a.rs", text)),
        ["line 2: a filter ignores its value"]
    );
}

#[test]
fn a_function_that_is_named_of_is_found() {
    let text = "fn part_of(a: u8) {}\nconst fn of<T>(a: T) {}\nfn of(a: u8) {}\n#[cfg(test)]\nmod tests {\n    fn of() {}\n}\n";
    assert_eq!(
        functions_named_of(&source("src/new/a.rs", text)),
        [
            "line 2: a function named `of`",
            "line 3: a function named `of`"
        ]
    );
    assert_eq!(
        functions_named_of(&source("src/new/tests.rs", text)),
        [""; 0]
    );
}

#[test]
fn the_root_of_a_folder_beside_it_is_found() {
    let paths = ["a/b.rs", "a/b/c.rs", "a/bc/mod.rs", "a/bc/b.rs"].map(str::to_owned);
    assert_eq!(roots_beside_their_folder(&paths), ["a/b.rs"]);
}
