//! Tests of reasoning in the text.

use proptest::prelude::*;

use super::*;

fn parts(text: &str) -> (String, String) {
    let Split {
        text, reasoning, ..
    } = split(text);
    (text, reasoning)
}

fn both(text: &str, reasoning: &str) -> (String, String) {
    (text.to_owned(), reasoning.to_owned())
}

/// Opening and closing tags of all styles.
const STYLES: [(&str, &str); 28] = [
    ("<think>", "</think>"),
    ("<THINK>", "</Think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<antThinking>", "</antThinking>"),
    ("<think time=\"3\">", "</think >"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    (
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
    ),
    ("<|channel>thought\n", "<channel|>"),
    ("<think>", "</thinking>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<mm:think>", "</mm:think>"),
    ("<thought_process>", "</thought_process>"),
    ("<reasoning-process>", "</reasoning-process>"),
    ("<internal_monologue>", "</internal_monologue>"),
    ("<|reasoning|>", "<|/reasoning|>"),
    ("<|begin_of_reasoning|>", "<|end_of_reasoning|>"),
    ("[BEGIN_THINK]", "[END_THINK]"),
    ("[REASONING]", "[/REASONING]"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("&lt;think&gt;", "&lt;/think&gt;"),
    ("＜think＞", "＜/think＞"),
];

#[test]
fn reasoning_in_every_style_is_no_part_of_the_text() {
    for (open, close) in STYLES {
        let whole =
            format!("{open}It may be OOM.\nFinal Answer: OOM\n{close}\n\nCause: the disk [7].");
        assert_eq!(
            parts(&whole),
            both("Cause: the disk [7].", "It may be OOM.\nFinal Answer: OOM"),
            "{open}"
        );
        assert_eq!(split(&whole).tag.as_deref(), Some(open.trim()));
        let without_open = whole.strip_prefix(open).unwrap();
        if !close.contains("<|end|>") && !close.starts_with("<|channel|>") {
            assert_eq!(parts(without_open), parts(&whole), "without {open}");
        }
        let without_close = format!("{open}I will list the pods");
        assert_eq!(
            parts(&without_close),
            both("", "I will list the pods"),
            "without {close}"
        );
        assert!(split(&format!("Cause: x\n{open}hm")).is_unsure, "{open}");
        let twice = format!("{open}a{close}one\n{open}b{close}two");
        let (text, reasoning) = parts(&twice);
        assert_eq!(
            (text.as_str(), reasoning.replace("\n\n", "\n")),
            ("one\ntwo", "a\nb".to_owned()),
            "{open}"
        );
    }
}

#[test]
fn a_text_without_reasoning_stays_as_it_is() {
    for text in [
        "Cause: a < b [1], see <https://example.com> and [think](x).",
        "Cause: deploy <rethinkdb> on <reasoning-engine>, <namespace> and <|pod|> [REASON] [A/B] [reasoning] <think-tank>.",
        "The log has `<think>` and `</think>` in it.",
        "```\n<think>\nnot mine\n</think>\n```\nCause: a parser [3].",
        "~~~\n</think>\n~~~\n",
        "analysis of the log: it is the disk",
        "<thinker>a</thinker> <b>bold</b> <s>old</s>",
        "  two blanks before, one behind ",
        "a <",
        "[TH",
        "",
    ] {
        assert_eq!(
            split(text),
            Split {
                text: text.to_owned(),
                ..Split::default()
            },
            "{text:?}"
        );
    }
}

#[test]
fn a_fold_of_reasoning_is_none_of_the_answer() {
    for open in [
        "<details type=\"reasoning\" done=\"true\" duration=\"5\">",
        "<details type='reasoning'>",
    ] {
        let whole = format!(
            "{open}\n<summary>Thought for 5 s</summary>\nAction: k8s.restart\n</details>\nCause: x"
        );
        let reasoning = "<summary>Thought for 5 s</summary>\nAction: k8s.restart";
        assert_eq!(parts(&whole), both("Cause: x", reasoning), "{open}");
        assert_eq!(
            parts(&format!("{open}<think>a</think>b</details>c")),
            both("c", "ab"),
            "{open}"
        );
    }
    let folded = "Cause: x\n<details><summary>Log</summary>\nline\n</details>\nDo next: y";
    assert_eq!(parts(folded), both(folded, ""));
}

#[test]
fn notes_before_an_answer_are_reasoning_and_an_analysis_in_tags_is_the_answer() {
    let notes = "<analysis>\nAction: k8s.restart\nAction Input: {}\n</analysis>\n";
    assert_eq!(
        parts(&format!("{notes}Action: k8s.get")),
        both("Action: k8s.get", "Action: k8s.restart\nAction Input: {}")
    );
    assert_eq!(parts(&format!("{notes}Cause: x")).0, "Cause: x");
    assert!(split(&format!("{notes}I would rather look first.")).is_unsure);
    for whole in [
        "<analysis>Cause: x</analysis>",
        "<analysis>Cause: x</analysis>\nDo next: y",
    ] {
        assert_eq!(
            split(whole),
            Split {
                text: whole.to_owned(),
                ..Split::default()
            },
            "{whole}"
        );
    }
}

#[test]
fn a_token_of_a_template_ends_the_text() {
    for end in [
        "<|im_end|>",
        "<|eot_id|>",
        "</s>",
        "<｜end▁of▁sentence｜>",
        "<end_of_turn>",
        "<|return|>",
        "<|endoftext|>",
        "<|eos_token|>",
        "<eos>",
        "<pad><pad>",
        "[e~[",
        "</s>[INST] and y? [/INST]",
        "<turn|>",
    ] {
        assert_eq!(split(&format!("Cause: x{end}\n")).text, "Cause: x", "{end}");
    }
    assert_eq!(
        split("Cause: x<|im_end|>\n<|im_start|>user\nand y?<|im_end|>").text,
        "Cause: x"
    );
    assert_eq!(split("<|im_start|>assistant\nCause: x").text, "Cause: x");
    assert_eq!(
        split("<think>a</think><answer>Cause: x\n</answer>").text,
        "Cause: x"
    );
    assert_eq!(
        split("<|begin_of_box|>Cause: x<|end_of_box|>").text,
        "Cause: x"
    );
    assert_eq!(
        split("<answer>Cause: x</answer>").text,
        "<answer>Cause: x</answer>",
        "a form of its own"
    );
    let tag = Some("analysis…assistantfinal".to_owned());
    assert_eq!(
        split("analysisIt may be OOM.assistantfinalCause: x"),
        Split {
            text: "Cause: x".to_owned(),
            reasoning: "It may be OOM.".to_owned(),
            is_unsure: false,
            tag
        }
    );
    let call = "<|channel|>commentary to=functions.k8s__t <|constrain|>json<|message|>{}<|call|>";
    assert_eq!(split(call).text, call, "a call is no reasoning");
}

fn text() -> impl Strategy<Value = String> {
    let styles = STYLES
        .map(|(open, _)| open)
        .into_iter()
        .chain(STYLES.map(|(_, close)| close));
    let others = [
        "`",
        "```\n",
        "\n",
        " ",
        "<",
        "</",
        "[",
        "é",
        "Action: k8s.bad\n",
        "Final Answer: x",
        "<|im_end|>",
        "text",
    ];
    let part = prop::sample::select(styles.chain(others).collect::<Vec<_>>());
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn however_a_stream_is_cut_into_pieces_the_result_is_the_same(
        text in text(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        at.sort_unstable();
        let mut splitter = Splitter::default();
        let mut pieces = Vec::new();
let mut from = 0;

        for to in at.into_iter().map(|to| text.floor_char_boundary(to)).chain([text.len()]) {
            pieces.extend(splitter.push(text.get(from..to).unwrap()));
            from = to;
        }
        let (rest, streamed) = splitter.finish();
        pieces.extend(rest);
        prop_assert_eq!(&streamed, &split(&text));
        let shown: usize = pieces.iter().map(|piece| piece.text.len()).sum();
        prop_assert!(shown <= text.len() && pieces.iter().all(|piece| !piece.text.is_empty()));
    }

    #[test]
    fn what_stands_between_tags_is_never_text(
        style in prop::sample::select(STYLES.to_vec()),
        before in prop::sample::select(vec!["", "Look.\n"]),
        inside in "[a-z \n:]{0,40}",
    ) {
        let (open, close) = style;
        let whole = format!("{before}{open}SECRET {inside}{close}\nCause: x");
        let found = split(&whole);
        prop_assert!(!found.text.contains("SECRET") && found.text.ends_with("Cause: x"), "{:?}", found);
        prop_assert!(found.reasoning.contains("SECRET") && !found.is_unsure);
    }
}
