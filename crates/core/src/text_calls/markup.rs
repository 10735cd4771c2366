//! The markups of calls in the chat templates of models.

/// The beginning of a markup, in small letters.
#[derive(Debug)]
pub(super) struct Opener {
    pub(super) word: &'static str,
    form: MarkupForm,
}

/// The text that has to follow the beginning of a markup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkupForm {
    /// A token of a chat template, which stands in no other text.
    Token,
    /// JSON or another tag, maybe below the name of a tool; a name of an offered tool does as well.
    Structure,
    /// The name of a tool that ends the tag, and then the same. The tool may be one that is not offered.
    Name,
}

/// The beginnings of all known markups.
pub(super) const OPENERS: [Opener; 35] = [
    // Hermes, Qwen, GLM, MiniMax, Granite, Nemotron, xLAM.
    structure("<tool_call>"),
    structure("<tool_calls>"),
    structure("<toolcall>"),
    structure("<tool>"),
    structure("<tool_use>"),
    structure("<function_call>"),
    structure("<function_calls>"),
    structure("<functioncall>"),
    structure("<minimax:tool_call>"),
    structure("<function_calls>"),
    structure("<tool_code>"),
    structure("<start_function_call>"),
    structure("<|tool_call|>"),
    // Llama, Qwen Coder, Claude.
    name("<function="),
    name("<function name="),
    name("<invoke name="),
    token("<|python_tag|>"),
    // Mistral.
    token("[tool_calls]"),
    structure("[tool_call]"),
    structure("[tool_request]"),
    // Kimi, LFM, Phi, Hunyuan.
    token("<|tool_calls_section_begin|>"),
    token("<|tool_call_begin|>"),
    token("<|tool_call_start|>"),
    token("<|tool_call_argument_begin|>"),
    token("<|tool_calls|>"),
    // DeepSeek.
    token("<｜tool▁calls▁begin｜>"),
    token("<｜tool▁call▁begin｜>"),
    token("<｜dsml｜"),
    // gpt-oss: a message to a function.
    token("<|channel|>commentary to="),
    token("to=functions."),
    token("<|constrain|>json"),
    token("<|recipient|>"),
    // InternLM, DSML with other bars.
    token("<|action_start|>"),
    token("<|dsml|"),
    // Command R.
    token("<|start_action|>"),
];

/// The languages of fences that hold a call.
pub(super) const FENCES: [&str; 4] = ["tool_code", "tool_call", "tool_calls", "tool_use"];

const fn token(word: &'static str) -> Opener {
    Opener {
        word,
        form: MarkupForm::Token,
    }
}

const fn structure(word: &'static str) -> Opener {
    Opener {
        word,
        form: MarkupForm::Structure,
    }
}

const fn name(word: &'static str) -> Opener {
    Opener {
        word,
        form: MarkupForm::Name,
    }
}

impl Opener {
    /// Whether the text behind the word is that of a call.
    pub(super) fn begins_call(&self, behind: &str) -> bool {
        let behind = behind.trim_start_matches(QUOTES);
        match self.form {
            MarkupForm::Token => true,
            MarkupForm::Structure => is_structure(behind) || is_structure(below_name(behind)),
            MarkupForm::Name => is_structure(behind) || is_structure(behind_tag(behind)),
        }
    }
}

const QUOTES: [char; 2] = ['"', '\''];

fn is_structure(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '<'])
}

/// The text in the lines below a name; empty without one.
fn below_name(text: &str) -> &str {
    let behind = behind_name(text.trim_start()).trim_start_matches([' ', '\r']);
    behind.strip_prefix('\n').unwrap_or_default()
}

/// The text behind a tag that ends with a name; empty without one.
fn behind_tag(text: &str) -> &str {
    let behind = behind_name(text).trim_start_matches(QUOTES).trim_start();
    behind.strip_prefix('>').unwrap_or_default()
}

/// The text behind a name of a tool; empty if the text begins with none.
fn behind_name(text: &str) -> &str {
    let behind = text.trim_start_matches(|letter: char| {
        letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.')
    });
    if behind.len() < text.len() {
        behind
    } else {
        ""
    }
}

/// Whether the text can have a markup at all.
pub(super) fn may_begin(text: &str) -> bool {
    text.contains(['<', '[']) || text.contains("to=functions.")
}
