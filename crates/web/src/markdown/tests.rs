use proptest::prelude::*;

use super::{Cites, MAX_BYTES, cited_html, html, line};
use crate::testing::data::id;
use crate::testing::markup;
use tarsy_core::readable::text::is_invisible;

#[test]
fn markdown_becomes_the_elements_that_are_allowed() {
    for (markdown, expected) in [
        (
            "# What *happened*\n\nOne\ntwo `x`",
            "<h3>What <em>happened</em></h3><p>One<br>two <code>x</code></p>",
        ),
        ("# A\n\n### B", "<h3>A</h3><h4>B</h4>"),
        ("## B\n\n# A", "<h3>B</h3><h3>A</h3>"),
        (
            "3. a\n4. b",
            "<ol class=\"nums\" start=\"3\"><li>a</li><li>b</li></ol>",
        ),
        (
            "```sh\nls <dir> [1]\n```",
            "<pre tabindex=\"0\"><code>ls &lt;dir&gt; [1]\n</code></pre>",
        ),
        (
            "> **a**",
            "<blockquote><p><strong>a</strong></p></blockquote>",
        ),
        (
            "|a|b|\n|-|-:|\n|x|1|",
            "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">a</th><th scope=\"col\">b</th>\
             </tr></thead><tbody><tr><td>x</td><td class=\"num\">1</td></tr></tbody></table></div>",
        ),
    ] {
        assert_eq!(html(markdown, 99).into_string(), expected, "{markdown}");
    }
}

#[test]
fn html_is_text_and_images_never_load() {
    let shown = html(
        "<script>alert(1)</script>\n\nand <b onclick=x>b</b> ![alt](https://evil.example/x.png)",
        9,
    );
    let shown = shown.into_string();
    assert!(
        !shown.contains("<script") && !shown.contains("<b ") && !shown.contains("<img"),
        "{shown}"
    );
    assert!(
        shown.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
        "{shown}"
    );
    assert!(
        shown.contains("[image: alt] https://evil.example/x.png"),
        "{shown}"
    );
}

#[test]
fn an_entity_becomes_no_control_and_no_invisible_character() {
    for markdown in [
        "a&#1;b&#x202e;c",
        "`&#1;`d **e&#x200b;f**",
        "[g&#27;[2J](https://h.example)",
        "| &#7; |\n|---|\n| &#xfeff; |",
    ] {
        for shown in [html(markdown, 9), line(markdown, 9)] {
            let shown = shown.into_string();
            let has_hidden =
                shown.contains(|c: char| (c.is_control() && c != '\n') || is_invisible(c));
            assert!(!has_hidden, "{shown:?}");
        }
    }
}

#[test]
fn a_link_shows_its_host_and_leads_to_the_web_only() {
    let rel = "rel=\"noopener noreferrer nofollow ugc\"";
    for (markdown, expected) in [
        (
            "[bank](https://evil.example/a?b=\"c)",
            format!(
                "<a {rel} href=\"https://evil.example/a?b=%22c\">bank</a> <span class=\"host\">evil.example</span>"
            ),
        ),
        (
            "<https://a.example/>",
            format!("<a {rel} href=\"https://a.example/\">https://a.example/</a>"),
        ),
        ("[x](javascript:alert)", "x (javascript:alert)".to_owned()),
        ("[x](data:text/html,a)", "x (data:text/html,a)".to_owned()),
        ("[x](//evil.example)", "x (//evil.example)".to_owned()),
        (
            "[x](https://good.example@evil.example)",
            "x (https://good.example@evil.example)".to_owned(),
        ),
        ("[x](/sessions)", "x (/sessions)".to_owned()),
    ] {
        assert_eq!(
            line(markdown, 99).into_string().trim(),
            expected,
            "{markdown}"
        );
    }
    // Letters that look like others are shown as the name server gets them.
    assert!(
        line("[x](https://ехample.com)", 9)
            .into_string()
            .contains("xn--")
    );
}

#[test]
fn a_citation_leads_to_its_event_and_a_false_one_is_text() {
    let link =
        |number: u32| format!("<a href=\"#{number}\"><span class=\"vh\">event </span>{number}</a>");
    let cites = |inner: &str| format!("<span class=\"cites\">{inner}</span>");
    for (markdown, expected) in [
        ("full [7].", format!("full {}.", cites(&link(7)))),
        ("[7, 9]", cites(&[link(7), link(9)].concat())),
        ("[7, 42?]", cites(&format!("{}[42?]", link(7)))),
        ("[7, 4000]", cites(&format!("{}[4000]", link(7)))),
        (
            "none [0] [4000] a[1] `[7]`",
            "none [0] [4000] a[1] <code>[7]</code>".to_owned(),
        ),
        (
            "[7](https://a.example/)",
            line("[7](https://a.example/)", 0)
                .into_string()
                .trim()
                .to_owned(),
        ),
    ] {
        assert_eq!(
            line(markdown, 99).into_string().trim(),
            expected,
            "{markdown}"
        );
    }
}

#[test]
fn a_text_that_is_nested_too_deeply_keeps_its_words_and_addresses() {
    let text = format!(
        "{} one [two](https://a.example/x) `three` ![four](https://b.example)\n\nfive",
        "> ".repeat(100)
    );
    let shown = html(&text, 9).into_string();
    for words in [
        "one",
        "two",
        "(https://a.example/x)",
        "<code>three</code>",
        "(https://b.example)",
        "four",
        "<p>five</p>",
    ] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(!shown.contains("<a "), "{shown}");
}

#[test]
fn deep_and_long_texts_stay_small() {
    for part in [
        "> ", "- ", "1. ", "*a ", "[", "![", "<div>", "|", "`", "\\", "_*",
    ] {
        let text = part.repeat(10_000);
        let begun = std::time::Instant::now();
        let shown = html(&text, 99).into_string();
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(3),
            "{part}"
        );
        assert!(markup::check(&shown).unwrap() <= 24, "{part}");
    }
    for text in [
        format!("{} {}", ">".repeat(20_000), "`a` ".repeat(10_000)),
        format!("[{}](https://a.example)", "*a **b ".repeat(10_000)),
    ] {
        let begun = std::time::Instant::now();
        assert!(markup::check(&html(&text, 99).into_string()).unwrap() <= 24);
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(3),
            "{:?}",
            begun.elapsed()
        );
    }
    let long = "x".repeat(MAX_BYTES + 1);
    assert_eq!(
        html(&long, 9).into_string(),
        format!("<pre tabindex=\"0\">{long}</pre>")
    );
}

proptest! {
    #[test]
    fn no_text_makes_an_element_of_its_own(markdown in prop::collection::vec(prop_oneof![
        any::<String>(), "[-#>*_`|:<>\\[\\]()!\n 0-9a-z\"'&;/=]{0,40}",
        Just("<img src=x onerror=y>".to_owned()), Just("[1](https://a.example)".to_owned()),
        Just("| a |\n|-|\n".to_owned()), Just("\n\n```\n".to_owned()), Just("<!-- ".to_owned()),
    ], 0..12)) {
        let markdown = markdown.concat();
        for shown in [html(&markdown, 50), line(&markdown, 50)] {
            let checked = markup::check(&shown.into_string());
            prop_assert!(checked.is_ok(), "{:?}", checked);
        }
    }
}

#[test]
fn an_answer_to_a_question_cites_events_of_its_investigation_and_the_report() {
    let text = "It leaks [7], as said [report]. `[report]` [8, report] [99]";
    let shown = |cites| cited_html(text, cites).into_string();
    let of = |page: &str| {
        let event = |number| {
            format!("<a href=\"{page}#{number}\"><span class=\"vh\">event </span>{number}</a>")
        };
        let report = format!("<a href=\"{page}#answer\">report</a>");
        format!(
            "<p>It leaks <span class=\"cites\">{}</span>, as said <span class=\"cites\">{report}</span>. \
             <code>[report]</code> <span class=\"cites\">{}<span class=\"cites\">{report}</span></span>",
            event(7),
            event(8)
        )
    };
    assert_eq!(shown(Cites::of_answer(20)), of("") + " [99]</p>");
    let page = format!("/sessions/{}", id("5e19c7f0"));
    let shown = shown(Cites::of_investigation(id("5e19c7f0")));
    assert!(shown.starts_with(&of(&page)), "{shown}");
    assert!(
        html("[report] [7]", 9)
            .into_string()
            .contains("<p>[report] "),
        "an analysis is the report"
    );
}
