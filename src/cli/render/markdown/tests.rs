//! Markdown in a terminal: snapshots of a report at four widths, and what no text may do.

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::cli::render::style::Prose;

const REPORT: &str = include_str!("tests/report.md");

fn style() -> Style {
    Style {
        prose: Prose::Rendered,
        ..Style::default()
    }
}

fn shown(markdown: &str, width: usize) -> String {
    render(markdown, width, &style()).join("\n")
}

fn assert_fits(lines: &[String], width: usize) {
    for line in lines {
        assert!(line.width() <= width, "{width}: {line}");
        assert!(
            !line.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\n']),
            "{line:?}"
        );
    }
}

#[test]
fn a_report_is_laid_out_at_every_width() {
    for width in [40, 80, 120, 200] {
        let lines = render(REPORT, width, &style());
        assert_fits(&lines, width);
        insta::assert_snapshot!(format!("report_{width}"), lines.join("\n"));
    }
    let ascii = render(
        REPORT,
        80,
        &Style {
            charset: Charset::Ascii,
            ..style()
        },
    );
    assert!(ascii.iter().all(|line| line.is_ascii()), "{ascii:#?}");
    insta::assert_snapshot!("report_ascii", ascii.join("\n"));
    let coloured = render(
        REPORT,
        80,
        &Style {
            color: true,
            ..style()
        },
    )
    .join("\n");
    insta::assert_snapshot!("report_colour", coloured.replace('\u{1b}', "␛"));
}

#[test]
fn a_line_break_of_the_model_stays_and_a_citation_keeps_its_brackets() {
    assert_eq!(
        shown("Cause: a [5]\nEvidence: b [7][9]\n\n[9] is [[it]]", 40),
        "Cause: a [5]\nEvidence: b [7][9]\n\n[9] is [[it]]"
    );
    // A definition would make a link of a citation, and vanish itself.
    assert_eq!(
        shown("see [9] [a]\n\n[9]: https://x.example\n[b]: /y", 60),
        "see [9] <https://x.example> [a]\n\n[b]: /y"
    );
}

#[test]
fn an_address_is_never_hidden() {
    for (markdown, expected) in [
        ("[pods](https://a.example/p)", "pods <https://a.example/p>"),
        ("<https://a.example>", "https://a.example"),
        (
            "[https://good.example](https://evil.example)",
            "https://good.example <https://evil.example>",
        ),
        (
            "![chart](http://a.example/c.png)",
            "image chart <http://a.example/c.png>",
        ),
        ("[x](javascript:alert)", "x <javascript:alert>"),
        ("[](https://a.example)", "<https://a.example>"),
        (
            "<b>bold</b> <!-- note --> &amp;",
            "<b>bold</b> <!-- note --> &",
        ),
        ("<div>\nkept\n</div>", "<div>\nkept\n</div>"),
    ] {
        assert_eq!(shown(markdown, 60), expected);
    }
}

#[test]
fn a_terminal_that_knows_links_gets_the_address_that_is_shown() {
    let linked = Style {
        hyperlinks: true,
        ..style()
    };
    assert_eq!(
        render("[pods](https://a.example/p)", 60, &linked),
        ["pods <\u{1b}]8;;https://a.example/p\u{1b}\\https://a.example/p\u{1b}]8;;\u{1b}\\>"]
    );
    for other in [
        "[x](javascript:alert)",
        "[x](https://é.example)",
        "[x](</etc/passwd>)",
    ] {
        assert!(
            !render(other, 60, &linked).join("").contains('\u{1b}'),
            "{other}"
        );
    }
}

#[test]
fn escape_sequences_stay_out_however_they_are_spelled() {
    let hostile = "\u{1b}[2Jgone &#27;[31mred &#x1b;]0;t\u{7} &#x202e;txt `\u{9b}31m` [x](https://a&#27;[2J)\n\n\
        | \u{1b}[1m | &#x200b; |\n|---|---|\n| &#7; | \u{202e} |\n\n```\n\u{1b}]52;c;x\u{7}\n```\n<\u{1b}[5m>";
    assert_fits(&render(hostile, 40, &style()), 200);
}

#[test]
fn a_table_shrinks_wraps_and_at_last_becomes_pairs() {
    let table = "| service | state |\n|:--|--:|\n| checkout-gateway | restarts every four minutes |\n| db | ok |";
    assert_eq!(
        shown(table, 80),
        "service          │                       state\n\
         ─────────────────┼────────────────────────────\n\
         checkout-gateway │ restarts every four minutes\n\
         db               │                          ok"
    );
    assert_eq!(
        shown(table, 34),
        "service          │           state\n\
         ─────────────────┼────────────────\n\
         checkout-gateway │  restarts every\n                 │    four minutes\n\
         ─────────────────┼────────────────\n\
         db               │              ok"
    );
    assert_eq!(
        shown(table, 20),
        "service:\ncheckout-gateway\nstate: restarts\nevery four minutes\n\nservice: db\nstate: ok"
    );
    assert_eq!(
        shown("| 磁盘 | é |\n|---|---|\n| 满 | b |", 40),
        "磁盘 │ é\n─────┼──\n满   │ b"
    );
}

#[test]
fn code_is_neither_wrapped_nor_cut() {
    let line = "kubectl -n freight rollout undo deployment/quotes --to-revision=57";
    let printed = shown(&format!("```sh\n{line}\n  indented\n```"), 40);
    assert_eq!(
        printed,
        "  kubectl -n freight rollout undo deploy\n  ↪ ment/quotes --to-revision=57\n    indented"
            .replace("deploy\n", "depl\n")
            .replace("↪ ment", "↪ oyment")
    );
    assert_eq!(shown("run `ls  -l | wc` now", 40), "run `ls -l | wc` now");
    assert_eq!(
        shown("```\nnever closed\n# no heading", 40),
        "  never closed\n  # no heading"
    );
}

#[test]
fn nesting_of_any_depth_keeps_to_the_width() {
    for part in [
        "> ", "- ", "1. ", "* > ", "**", "[", "![", "`", "<", "&#", "\\", "| ", "~~~", "_", "    ",
    ] {
        for count in [10, 1_000, 20_000] {
            let text = format!("{}x", part.repeat(count));
            for width in [20, 80] {
                assert_fits(&render(&text, width, &style()), width);
            }
        }
    }
    let deep: String = (0..200)
        .map(|depth| format!("{}- level {depth}\n", "  ".repeat(depth)))
        .collect();
    let lines = render(&deep, 40, &style());
    assert_fits(&lines, 40);
    assert!(
        lines.iter().any(|line| line.ends_with("• level 199")),
        "{lines:#?}"
    );
}

#[test]
fn a_megabyte_and_a_huge_table_are_shown_within_bounds() {
    let megabyte = "**word** of [text](https://a.example) ".repeat(30_000);
    let lines = render(&megabyte, 80, &style());
    assert_fits(&lines, 80);
    assert_eq!(
        lines.concat().replace(' ', "").len(),
        megabyte.replace(' ', "").len(),
        "nothing is left out"
    );
    let row = "| a ".repeat(2_000);
    let wide = format!(
        "{row}\n{}\n{}",
        "|---".repeat(2_000),
        format!("{row}\n").repeat(10)
    );
    assert_fits(&render(&wide, 80, &style()), 80);
    let long = format!("| a | b |\n|---|---|\n{}", "| x | y |\n".repeat(10_000));
    assert_eq!(render(&long, 80, &style()).len(), 10_002);
}

#[test]
fn the_work_for_a_report_grows_with_its_size_only() {
    let report = REPORT.repeat(64 * 1024 / REPORT.len() + 1);
    for width in [40, 200] {
        let (lines, steps) = laid_out(&report, width, &style());
        assert!(
            steps < 4 * report.len(),
            "{steps} steps for {} bytes",
            report.len()
        );
        let printed: usize = lines.iter().map(String::len).sum();
        assert!(
            printed < 8 * report.len(),
            "{printed} bytes printed for {}",
            report.len()
        );
    }
}

#[test]
fn one_line_has_no_marks_of_markdown() {
    for (markdown, expected) in [
        (
            "The **heap** is _full_: see [docs](https://a.example)",
            "The heap is full: see docs <https://a.example>",
        ),
        ("run `kubectl get pods`", "run `kubectl get pods`"),
        ("", ""),
    ] {
        assert_eq!(plain(markdown, Charset::Unicode), expected);
    }
}

/// Every word of the source, in its order: layout may move words and repeat heads, and loses none.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_lowercase())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn piece() -> impl Strategy<Value = String> {
    let marks = [
        "# ",
        "## ",
        "- ",
        "1. ",
        "  - ",
        "> ",
        "```\n",
        "~~~\n",
        "`",
        "**",
        "_",
        "[",
        "](",
        ")",
        "| ",
        "|---|---|\n",
        "\n",
        "\n\n",
        "<b>",
        "&amp;",
        "&#27;",
        "\u{1b}[31m",
        "\u{202e}",
        "\u{200b}",
        "---\n",
        "    ",
        "\\",
        "!",
        "[x]: /y\n",
        "磁",
        "👩‍💻",
        "e\u{301}",
    ];
    prop_oneof![
        prop::sample::select(marks.to_vec()).prop_map(str::to_owned),
        "[a-z]{1,9} ?"
    ]
}

proptest! {
    #[test]
    fn no_markdown_panics_or_leaves_its_width(pieces in prop::collection::vec(piece(), 0..80), width in 20_usize..120) {
        let text = pieces.concat();
        for style in [style(), Style { charset: Charset::Ascii, ..style() }] {
            let lines = render(&text, width, &style);
            for line in &lines {
                prop_assert!(text::width(line) <= width, "{width}: {line}");
                prop_assert!(!line.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\n']), "{line:?}");
                prop_assert!(style.charset == Charset::Unicode || line.is_ascii(), "{line:?}");
            }
            // Colours add no column and lose no character.
            let coloured = render(&text, width, &Style { color: true, ..style.clone() }).join("\n");
            let has_other_sequences = coloured.replace("\u{1b}[", "").contains('\u{1b}');
            prop_assert!(!has_other_sequences, "{coloured:?}");
        }
        plain(&text, Charset::Unicode);
    }

    #[test]
    fn plain_words_are_all_shown_in_their_order(paragraphs in prop::collection::vec("([a-z]{1,30} ){1,20}", 1..8)) {
        for separator in ["\n\n", "\n", "\n- ", "\n\n> ", "\n\n1. ", "\n\n## "] {
            let text = paragraphs.join(separator);
            let shown = render(&text, 40, &style());
            prop_assert_eq!(words(&shown.join(" ")), words(&text));
        }
    }
}
