//! The tags of reasoning and the tokens of chat templates.

/// The characters that a tag begins with.
pub(super) const STARTS: [char; 3] = ['<', '[', '◁'];

/// What a tag does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Open,
    Close,
    /// The text of the answer begins.
    Answer,
    /// The answer ends.
    End,
}

/// What a text begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// A tag of this length.
    Tag(Tag, usize),
    /// The beginning of one.
    Begun,
    None,
}

/// Names of tags in angle brackets, `<think>` and `</think>`: in small letters, longer ones before their beginnings.
const NAMES: [&str; 13] = [
    "thinking",
    "think",
    "thoughts",
    "thought",
    "reasoning",
    "reflection",
    "scratchpad",
    "inner_monologue",
    "inner_thoughts",
    "antthinking",
    "seed:think",
    "chain_of_thought",
    "internal_reasoning",
];
/// The longest tag with attributes.
const MAX_TAG: usize = 100;

/// Tokens that are written exactly so, but for upper and lower case.
const TOKENS: [(&str, Tag); 42] = [
    ("◁think▷", Tag::Open),
    ("◁/think▷", Tag::Close),
    ("[THINK]", Tag::Open),
    ("[/THINK]", Tag::Close),
    ("<|think|>", Tag::Open),
    ("<|/think|>", Tag::Close),
    ("<|thinking|>", Tag::Open),
    ("<|/thinking|>", Tag::Close),
    ("<|begin_of_thought|>", Tag::Open),
    ("<|end_of_thought|>", Tag::Close),
    ("<|begin_of_solution|>", Tag::Answer),
    ("<|end_of_solution|>", Tag::End),
    ("<|start_thinking|>", Tag::Open),
    ("<|end_thinking|>", Tag::Close),
    ("<|start_response|>", Tag::Answer),
    ("<|end_response|>", Tag::End),
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
    let tag = if text.starts_with('<') { named(text) } else { Match::None };
    if tag == Match::None && begun { Match::Begun } else { tag }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Common {
    Whole,
    Begun,
    None,
}

/// Compares a text with a token. `[THINK]` in small letters is a link or a word.
fn common(text: &str, token: &str) -> Common {
    let is_exact = token.starts_with('[');
    let same = |a: &[u8], b: &[u8]| if is_exact { a == b } else { a.eq_ignore_ascii_case(b) };
    let (text, token) = (text.as_bytes(), token.as_bytes());
    match (text.get(..token.len()), token.get(..text.len())) {
        (Some(head), _) if same(head, token) => Common::Whole,
        (None, Some(head)) if same(text, head) => Common::Begun,
        (Some(_), _) | (None, _) => Common::None,
    }
}

/// `<think>`, `</think>`, `< think >`, `<think mode="on">`.
fn named(text: &str) -> Match {
    let inner = text.get(1..).unwrap_or_default();
    let bare = inner.trim_start_matches([' ', '/']);
    let before = inner.len() - bare.len();
    let tag = if inner.get(..before).is_some_and(|head| head.contains('/')) { Tag::Close } else { Tag::Open };
    if before > 2 {
        return Match::None;
    }
    for name in NAMES {
        match common(bare, name) {
            Common::None => {}
            Common::Begun => return Match::Begun,
            Common::Whole => {
                let behind = bare.get(name.len()..).unwrap_or_default();
                return behind_name(tag, behind, 1 + before + name.len());
            }
        }
    }
    Match::None
}

/// The end of a tag behind its name; `length` is that of the tag so far.
fn behind_name(tag: Tag, behind: &str, length: usize) -> Match {
    if !(behind.is_empty() || behind.starts_with(['>', ' ', '\t', '/'])) {
        return Match::None;
    }
    match behind.find(['>', '<', '\n']) {
        Some(end) if behind.get(end..).is_some_and(|rest| rest.starts_with('>')) && end < MAX_TAG => {
            // `<think/>` is empty.
            let is_empty = behind.get(..end).is_some_and(|attributes| attributes.trim_end().ends_with('/'));
            Match::Tag(if is_empty && tag == Tag::Open { Tag::Answer } else { tag }, length + end + 1)
        }
        Some(_) => Match::None,
        None if behind.len() < MAX_TAG => Match::Begun,
        None => Match::None,
    }
}
