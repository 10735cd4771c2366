//! Reports in every form, and texts that try to be marks.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::json;

use super::*;
use tarsy_config::sections::destinations::Part;

fn blocks(text: &str) -> Vec<Block> {
    parsed::blocks(text)
}

const SAMPLE: &str = "# Cause\nThe *disk* is **full** `df -h`\nnow\n\n- one\n- two\n\n3. three\n\n> said @ops\n\n```sh\nrm -r /tmp/x\n```\n\n\
                      | a | b |\n|---|---|\n| 1 | 2 |\n\n[docs](https://evil.example) <b>x</b>";

#[test]
fn a_text_has_its_marks_in_every_form() {
    let blocks = blocks(SAMPLE);
    assert_eq!(
        text::write(&blocks),
        "Cause\n\nThe disk is full df -h\nnow\n\n- one\n- two\n3. three\n\n> said @ops\n\n    rm -r /tmp/x\n\na  b\n\n1  2\n\n\
         docs (https://evil.example) <b>x</b>"
    );
    assert_eq!(
        markdown::write(&blocks),
        "**Cause**\n\nThe *disk* is **full** ` df -h `\\\nnow\n\n- one\n- two\n3. three\n\n> said @\u{2060}ops\n\n```\nrm -r /tmp/x\n```\n\n\
         a  b  \n\n1  2  \n\ndocs (https:\u{2060}//evil.example) \\<b\\>x\\</b\\>"
    );
    assert_eq!(
        html::write(&blocks),
        "<h4>Cause</h4><p>The <em>disk</em> is <strong>full</strong> <code>df -h</code><br>now</p><ul><li>one</li><li>two</li></ul>\
         <ol><li>three</li></ol><blockquote>said @ops</blockquote><pre>rm -r /tmp/x\n</pre><p>a  b  </p><p>1  2  </p>\
         <p>docs (https://evil.example) &lt;b&gt;x&lt;/b&gt;</p>"
    );
    let nodes = adf::write(&blocks);
    assert_eq!(
        nodes["content"][1]["content"][1],
        json!({"type": "text", "text": "disk", "marks": [{"type": "em"}]})
    );
    assert_eq!(
        nodes["content"][2]["content"].as_array().unwrap().len(),
        2,
        "one list"
    );
    assert_eq!(
        nodes["content"][5],
        json!({"type": "codeBlock", "content": [{"type": "text", "text": "rm -r /tmp/x\n"}]})
    );
}

#[test]
fn words_with_a_meaning_at_a_code_host_are_broken() {
    for (text, written) in [
        ("ping @octocat", "ping @\u{2060}octocat"),
        ("fixes #12", "fixes \\#\u{2060}12"),
        ("see !7", "see \\!\u{2060}7"),
        ("/close", "\u{2060}/close"),
        ("www.evil.example", "www\u{2060}.evil.example"),
        ("see 7) there", "see 7\\) there"),
        (
            "https:[//evil.example](x)",
            "https:\u{2060}//evil.example (x)",
        ),
        ("www[.evil.example](x)", "www\u{2060}.evil.example (x)"),
        ("#[1](x)", "\\#\u{2060}1 (x)"),
        ("a&amp;b ~~c~~ $x$", "a\\&b \\~\\~c\\~\\~ \\$x\\$"),
    ] {
        assert_eq!(
            markdown::write(&blocks(text)).replace('\n', " "),
            written,
            "{text}"
        );
    }
    assert_eq!(
        text::write(&blocks("[code]<b>[/code]")),
        "[\u{2060}code]<b>[\u{2060}/code]"
    );
}

#[test]
fn a_report_is_never_longer_than_its_limit_and_keeps_link_and_marker() {
    let mut message = crate::destination::tests::message(Default::default());
    message.summary.analysis = Some("Cause: **@** # x\n\n- [a](https://b)\n".repeat(5_000));
    message.may_repeat = true;
    let report = Report::new(&message);
    for form in Form::ALL {
        for part in Part::ALL {
            let written = rendered(
                &report,
                Render {
                    part,
                    form,
                    max: 2_000,
                },
            );
            let text = written
                .as_str()
                .map_or_else(|| written.to_string(), str::to_owned);
            assert!(
                text.chars().count() <= 2_000,
                "{form:?} {part:?}: {}",
                text.chars().count()
            );
            assert!(text.contains(&message.key.marker()), "{form:?} {part:?}");
            assert_eq!(
                text.contains("https://tarsy.example.com"),
                part != Part::Analysis,
                "{form:?} {part:?}"
            );
        }
    }
}

/// The links, images and HTML that a text would show as Markdown.
fn marks(markdown: &str) -> Vec<String> {
    Parser::new_ext(
        markdown,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES,
    )
    .filter_map(|event| {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            return Some(dest_url.into_string());
        }
        if let Event::Html(html) | Event::InlineHtml(html) = event {
            return Some(html.into_string());
        }
        let is_mark = matches!(
            event,
            Event::Start(Tag::Heading { .. } | Tag::Table(_) | Tag::Strikethrough)
        );
        is_mark.then(|| "mark".to_owned())
    })
    .collect()
}

proptest! {
    #[test]
    fn no_text_is_a_mark_in_markdown_or_an_element_in_html(
        text in "([\\PC]|[-*_`#<>\\[\\]()!&~|+=\\\\@:/.0-9 \n]){0,80}",
    ) {
        let block = Block { kind: Kind::Paragraph, spans: vec![Span::Text(text.clone())] };
        let written = markdown::write(std::slice::from_ref(&block));
        prop_assert_eq!(marks(&written), Vec::<String>::new(), "{}", written);
        let parsed = markdown::write(&blocks(&text));
        prop_assert_eq!(marks(&parsed), Vec::<String>::new(), "{} from {}", parsed, text);
        let html = html::write(&blocks(&text));
        for tag in html.split('<').skip(1) {
            let name = tag.trim_start_matches('/').split('>').next().unwrap_or_default();
            let known = ["p", "h4", "ul", "ol", "li", "blockquote", "pre", "strong", "em", "code", "br"];
            prop_assert!(known.contains(&name), "{}", html);
        }
    }
}
