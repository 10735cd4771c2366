//! Texts of 100 KB that are made to be slow to read.

/// The bytes of each text.
pub(super) const BYTES: usize = 100 * 1024;

/// A text, by the name of its shape.
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) text: String,
}

/// Fragments that are repeated: of words and addresses, of Markdown, of HTML, of labels and of JSON.
const REPEATED: [&str; 32] = [
    "<!--",
    "a_",
    "./",
    "~/",
    "a@",
    "http://a/",
    "-1e5",
    "&a;",
    "a-",
    "1.",
    "<a ",
    "\\",
    "'",
    "\"",
    "key: v\n",
    "k=\"v\" ",
    "name: a\nvalue: b\n",
    "中",
    "> ",
    "- ",
    "1. ",
    "*a ",
    "_*",
    "[",
    "[a](",
    "![",
    "|a",
    "`",
    "<div>",
    "[1] ",
    "{\"a\":",
    "Cause: x\n",
];

/// A harmless text of the same size, and forty hostile ones.
pub(super) fn all() -> Vec<Shape> {
    let mut all = vec![made(
        "prose",
        "The pod restarts because its memory limit is too low. ".to_owned(),
    )];
    all.extend(
        REPEATED
            .iter()
            .map(|fragment| made(fragment, (*fragment).to_owned())),
    );
    let many =
        |count: usize, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<String>();
    for (name, text) in [
        (
            "distinct words",
            many(12_000, &|number| format!("w{number} ")),
        ),
        (
            "distinct labels",
            many(8_000, &|number| format!("k{number}: v\n")),
        ),
        (
            "combining characters",
            format!("a{}", "\u{301}".repeat(BYTES / 2)),
        ),
        (
            "quotations around code",
            format!("{} {}", ">".repeat(BYTES / 2), "`a` ".repeat(BYTES / 8)),
        ),
        (
            "emphases within a link",
            format!("[{}](http://a)", "*a **b ".repeat(BYTES / 8)),
        ),
        (
            "lists with empty lines",
            format!(
                "{}a\n{}",
                "- ".repeat(BYTES / 4),
                "\n\nb\n".repeat(BYTES / 8)
            ),
        ),
        (
            "growing runs of quotes",
            many(450, &|length| "`".repeat(length) + " "),
        ),
        (
            "references",
            format!(
                "{}\n\n{}",
                "[a][b] ".repeat(7_000),
                "[b]: http://a\n\n".repeat(3_000)
            ),
        ),
    ] {
        all.push(made(name, text));
    }
    all
}

/// The text repeated to its size, and cut.
fn made(name: &str, text: String) -> Shape {
    let mut text = text.repeat(BYTES / text.len() + 1);
    text.truncate(text.floor_char_boundary(BYTES));
    Shape {
        name: name.escape_debug().to_string(),
        text,
    }
}
