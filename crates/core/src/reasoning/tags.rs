//! The tags of reasoning and the tokens of chat templates.

/// The characters that a tag begins with.
pub(super) const STARTS: [char; 5] = ['<', '[', '◁', '&', '＜'];

/// The effect of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Open,
    Close,
    /// The text of the answer begins.
    Answer,
    /// The answer ends.
    End,
    /// A fold of reasoning in HTML.
    OpenFold,
    /// Any fold ends.
    CloseFold,
}

/// The tag or token that a text begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// A tag of this length.
    Tag(Tag, usize),
    /// The beginning of one.
    Begun,
    None,
}

/// The words of which one makes the name of a tag one of reasoning: `<think>`, `<seed:think>`, `<inner_monologue>`.
const WORDS: [&str; 12] = [
    "think",
    "thinking",
    "thought",
    "thoughts",
    "antthinking",
    "reasoning",
    "reflection",
    "scratchpad",
    "monologue",
    "cot",
    "planning",
    "deliberation",
];
/// The first words of a tag that closes: `<|end_of_thought|>`.
const END_WORDS: [&str; 3] = ["end", "stop", "close"];
/// The longest name of a tag.
const MAX_NAME: usize = 40;
/// The longest tag with attributes.
const MAX_TAG: usize = 100;

/// Tokens that are written exactly so, but for upper and lower case.
const TOKENS: [(&str, Tag); 50] = [
    ("◁think▷", Tag::Open),
    ("◁/think▷", Tag::Close),
    ("<|begin_of_solution|>", Tag::Answer),
    ("<|end_of_solution|>", Tag::End),
    ("<|start_response|>", Tag::Answer),
    ("<|end_response|>", Tag::End),
    // Escaped by a gateway, or with letters of another width.
    ("&lt;think&gt;", Tag::Open),
    ("&lt;/think&gt;", Tag::Close),
    ("&lt;thinking&gt;", Tag::Open),
    ("&lt;/thinking&gt;", Tag::Close),
    ("＜think＞", Tag::Open),
    ("＜/think＞", Tag::Close),
    // Apertus and MedGemma.
    ("<|inner_prefix|>", Tag::Open),
    ("<|inner_suffix|>", Tag::Close),
    ("<unused94>", Tag::Open),
    ("<unused95>", Tag::Close),
    // gpt-oss.
    ("<|channel|>analysis<|message|>", Tag::Open),
    ("<|channel|>final<|message|>", Tag::Answer),
    ("<|channel|>commentary<|message|>", Tag::Answer),
    ("<|start|>assistant", Tag::Answer),
    ("<|end|>", Tag::Answer),
    ("<|return|>", Tag::End),
    // Gemma.
    ("<|channel>thought", Tag::Open),
    ("<channel|>", Tag::Close),
    ("<end_of_turn>", Tag::End),
    ("<start_of_turn>model", Tag::Answer),
    ("<start_of_turn>user", Tag::End),
    // ChatML, Llama, GLM, DeepSeek, Command R and others.
    ("<|im_end|>", Tag::End),
    ("<|im_start|>assistant", Tag::Answer),
    ("<|im_start|>user", Tag::End),
    ("<|endoftext|>", Tag::End),
    ("<|end_of_text|>", Tag::End),
    ("<|end_of_turn|>", Tag::End),
    ("<|end_of_turn_token|>", Tag::End),
    ("<|eot_id|>", Tag::End),
    ("<|eom_id|>", Tag::End),
    ("<|eos|>", Tag::End),
    ("<|assistant|>", Tag::Answer),
    ("<|user|>", Tag::End),
    ("<|observation|>", Tag::End),
    ("<｜end▁of▁sentence｜>", Tag::End),
    ("<|endofresponse|>", Tag::End),
    ("[INST]", Tag::End),
    ("[/INST]", Tag::End),
    ("<turn|>", Tag::End),
    ("<|begin_of_box|>", Tag::Answer),
    ("<|end_of_box|>", Tag::Answer),
    ("<|eos_token|>", Tag::End),
    ("<|end_of_sentence|>", Tag::End),
    ("<|endofdocument|>", Tag::End),
];

/// The tag at the beginning of a text.
pub(super) fn at(text: &str) -> Match {
    let mut begun = false;
    for (token, tag) in TOKENS {
        match common(text, token) {
            Common::Whole => return Match::Tag(tag, token.len()),
            Common::Begun => begun = true,
            Common::None => {}
        }
    }
    let tag = match text.as_bytes() {
        [b'<', b'|', ..] => enclosed(text, "<|", "|>"),
        [b'<', ..] => named(text),
        [b'[', ..] => enclosed(text, "[", "]"),
        _ => Match::None,
    };
    if tag == Match::None && begun {
        Match::Begun
    } else {
        tag
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Common {
    Whole,
    Begun,
    None,
}

/// Compares a text with a token.
fn common(text: &str, token: &str) -> Common {
    let same = |a: &[u8], b: &[u8]| a.eq_ignore_ascii_case(b);
    let text = text.as_bytes();
    let token = token.as_bytes();

    match (text.get(..token.len()), token.get(..text.len())) {
        (Some(head), _) if same(head, token) => Common::Whole,
        (None, Some(head)) if same(text, head) => Common::Begun,
        (Some(_), _) | (None, _) => Common::None,
    }
}

/// `<think>`, `</think>`, `< think >`, `<think mode="on">`, `<longcat_think>`.
fn named(text: &str) -> Match {
    let inner = text.get(1..).unwrap_or_default();
    let bare = inner.trim_start_matches([' ', '/']);
    let before = inner.len() - bare.len();
    let is_close = inner.get(..before).is_some_and(|head| head.contains('/'));
    if before > 2 {
        return Match::None;
    }
    let behind = bare.trim_start_matches(is_of_name);
    let name = bare.strip_suffix(behind).unwrap_or_default();
    let length = 1 + before + name.len();
    match (behind.is_empty(), of_name(name)) {
        _ if name.len() > MAX_NAME => Match::None,
        (true, _) => Match::Begun,
        (false, _) if name.eq_ignore_ascii_case("details") => {
            let tag = if is_close {
                Tag::CloseFold
            } else {
                Tag::OpenFold
            };
            fold(behind_name(tag, behind, length), text)
        }
        (false, None) => Match::None,
        (false, Some(_)) if is_close => behind_name(Tag::Close, behind, length),
        (false, Some(tag)) => behind_name(tag, behind, length),
    }
}

/// `<details type="reasoning">`, which front ends write around reasoning. Any other fold is a part of the answer.
fn fold(found: Match, text: &str) -> Match {
    let Match::Tag(Tag::OpenFold, length) = found else {
        return found;
    };
    let attributes = text.get(..length).unwrap_or_default().to_ascii_lowercase();
    let of_reasoning = ["type=\"reasoning\"", "type='reasoning'", "type=reasoning"];
    if of_reasoning.iter().any(|of| attributes.contains(of)) {
        found
    } else {
        Match::None
    }
}

/// `<|begin_of_thought|>`, `<|/think|>`, `[BEGIN_THINK]`, `[/REASONING]`. In square brackets, small letters are a link
/// or a word.
fn enclosed(text: &str, open: &str, close: &str) -> Match {
    let inner = text.strip_prefix(open).unwrap_or_default();
    let bare = inner.strip_prefix('/').unwrap_or(inner);
    let behind = bare.trim_start_matches(|letter: char| {
        is_of_name(letter) && !(open == "[" && letter.is_ascii_lowercase())
    });
    let name = bare.strip_suffix(behind).unwrap_or_default();
    if name.len() > MAX_NAME || !(close.starts_with(behind) || behind.starts_with(close)) {
        return Match::None;
    }
    if behind.len() < close.len() {
        return Match::Begun;
    }
    let length = text.len() - behind.len() + close.len();
    match of_name(name) {
        Some(_) if bare.len() < inner.len() => Match::Tag(Tag::Close, length),
        Some(tag) => Match::Tag(tag, length),
        None => Match::None,
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':' | '-')
}

/// The effect of a tag of this name, if it is one of reasoning.
fn of_name(name: &str) -> Option<Tag> {
    let name = name.to_ascii_lowercase();
    // The names of services have hyphens: only a process of reasoning is one.
    let name = name.strip_suffix("-process").unwrap_or(&name);
    let mut words = name.split(['_', ':']);
    let is_of_reasoning = name.split(['_', ':']).any(|word| WORDS.contains(&word));
    let is_end = words.next().is_some_and(|word| END_WORDS.contains(&word));
    match (is_of_reasoning, is_end) {
        (false, _) => None,
        (true, true) => Some(Tag::Close),
        (true, false) => Some(Tag::Open),
    }
}

/// The end of a tag after its name; `length` is that of the tag so far.
fn behind_name(tag: Tag, behind: &str, length: usize) -> Match {
    if !(behind.is_empty() || behind.starts_with(['>', ' ', '\t', '/'])) {
        return Match::None;
    }
    match behind.find(['>', '<', '\n']) {
        Some(end)
            if behind.get(end..).is_some_and(|rest| rest.starts_with('>')) && end < MAX_TAG =>
        {
            // `<think/>` is empty.
            let is_empty = behind
                .get(..end)
                .is_some_and(|attributes| attributes.trim_end().ends_with('/'));
            let is_answer = is_empty && tag == Tag::Open;
            let tag = if is_answer { Tag::Answer } else { tag };
            Match::Tag(tag, length + end + 1)
        }
        Some(_) => Match::None,
        None if behind.len() < MAX_TAG => Match::Begun,
        None => Match::None,
    }
}
