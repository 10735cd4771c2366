//! The families of models: the output limit of each, and its parameter for thinking.
//!
//! This is the only place that reads the name of a model for this purpose. Sources: the pages on models of Anthropic,
//! OpenAI, xAI, Mistral and of the API of `deepseek` (2026-11).

/// A family of models.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    prefix: &'static str,
    /// Tokens, if the request names no limit. Every request has a limit.
    pub(super) max_output: u32,
    pub(super) thinking: Thinking,
}

/// The parameter with which a family is asked to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// The family does not think, or thinks as it likes. Only what the request names is sent.
    Unspecified,
    /// Tokens, if the request names none. Its answers go back only with their signed thoughts.
    Budget(u32),
    /// The model chooses how long; the request names an effort.
    Adaptive,
    Effort,
}

const fn family(prefix: &'static str, max_output: u32, thinking: Thinking) -> Family {
    Family {
        prefix,
        max_output,
        thinking,
    }
}

use Thinking::{Adaptive, Budget, Effort, Unspecified};

/// The first family whose prefix fits.
const FAMILIES: [Family; 39] = [
    family("claude-3-opus", 4_096, Unspecified),
    family("claude-3-haiku", 4_096, Unspecified),
    family("claude-3-sonnet", 4_096, Unspecified),
    family("claude-3-5", 8_192, Unspecified),
    family("claude-3-7", 64_000, Budget(32_000)),
    family("claude-opus-4-5", 64_000, Budget(32_000)),
    family("claude-opus-4-6", 64_000, Adaptive),
    family("claude-opus-4-7", 64_000, Adaptive),
    family("claude-opus-4-8", 128_000, Adaptive),
    family("claude-opus-4-9", 128_000, Adaptive),
    family("claude-opus-4", 32_000, Budget(16_000)),
    family("claude-sonnet-4-6", 64_000, Adaptive),
    family("claude-sonnet-4", 64_000, Budget(32_000)),
    family("claude-haiku-4", 64_000, Budget(32_000)),
    // Every later generation: `claude-*-5` refuses a budget.
    family("claude", 64_000, Adaptive),
    family("gpt-3.5", 4_096, Unspecified),
    family("gpt-4-turbo", 4_096, Unspecified),
    family("gpt-4.1", 32_768, Unspecified),
    family("gpt-4o", 16_384, Unspecified),
    family("gpt-4", 8_192, Unspecified),
    family("gpt-5-chat", 16_384, Unspecified),
    family("gpt-5-main", 16_384, Unspecified),
    family("gpt-5.1-chat", 16_384, Unspecified),
    family("gpt-5.2-chat", 16_384, Unspecified),
    family("gpt-5.3-chat", 16_384, Unspecified),
    family("gpt-5", 128_000, Effort),
    family("gpt-6", 128_000, Effort),
    family("gpt-oss", 32_768, Unspecified),
    family("codex-", 100_000, Effort),
    family("o1-preview", 32_768, Unspecified),
    family("o1-mini", 65_536, Unspecified),
    family("o1", 100_000, Effort),
    family("o3", 100_000, Effort),
    family("o4", 100_000, Effort),
    family("grok", 32_768, Unspecified),
    family("deepseek-reasoner", 32_768, Unspecified),
    family("magistral", 32_768, Unspecified),
    family("mistral", 16_384, Unspecified),
    family("llama", 4_096, Unspecified),
];
/// A limit that small servers accept together with a prompt, too.
const UNKNOWN: Family = family("", 8_192, Unspecified);

/// The family of a model. Gateways write its maker before the name: `anthropic/claude…`, `us.anthropic.claude…`.
pub(super) fn family_of(model: &str) -> &'static Family {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name
        .rsplit_once("anthropic.")
        .map_or(name, |(_, name)| name);
    // Gateways write versions with a point.
    let name = if name.starts_with("claude") {
        name.replace('.', "-")
    } else {
        name.to_ascii_lowercase()
    };
    FAMILIES
        .iter()
        .find(|family| name.starts_with(family.prefix))
        .unwrap_or(&UNKNOWN)
}

/// Whether what the model `other` signed is valid for this one: it is the same model, of any date.
pub(super) fn is_same(model: &str, other: &str) -> bool {
    !model.is_empty() && without_date(model) == without_date(other)
}

fn without_date(model: &str) -> &str {
    // Vertex AI writes the date after `@`.
    let model = model.split_once('@').map_or(model, |(name, _date)| name);
    let model = model.strip_suffix("-latest").unwrap_or(model);
    let is_date = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((name, date)) = model.rsplit_once('-')
        && is_date(date)
    {
        return name;
    }
    let digits = model
        .len()
        .checked_sub("-2025-01-01".len())
        .and_then(|end| model.split_at_checked(end));
    match digits {
        Some((name, date)) if date.starts_with('-') && is_date(&date.replace('-', "")) => name,
        Some(_) | None => model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_of_a_model_is_found_by_its_name() {
        for (model, max_output, thinking) in [
            ("claude-sonnet-4-5", 64_000, Budget(32_000)),
            ("claude-sonnet-4-20250514", 64_000, Budget(32_000)),
            ("claude-opus-4-1-20250805", 32_000, Budget(16_000)),
            ("claude-opus-4-6", 64_000, Adaptive),
            ("claude-sonnet-5", 64_000, Adaptive),
            ("anthropic/claude-sonnet-4.5", 64_000, Budget(32_000)),
            (
                "us.anthropic.claude-haiku-4-5-20251001-v1:0",
                64_000,
                Budget(32_000),
            ),
            ("gpt-5.1", 128_000, Effort),
            ("gpt-5-chat-latest", 16_384, Unspecified),
            ("openai/gpt-oss-120b", 32_768, Unspecified),
            ("o3-mini", 100_000, Effort),
            ("meta-llama/Llama-3.3-70B", 4_096, Unspecified),
            ("Qwen/Qwen3-32B", 8_192, Unspecified),
        ] {
            let family = family_of(model);
            assert_eq!(
                (family.max_output, family.thinking),
                (max_output, thinking),
                "{model}"
            );
        }
    }

    #[test]
    fn the_same_model_of_another_date_accepts_its_signatures() {
        for (model, other) in [
            ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929"),
            ("claude-sonnet-4-5-latest", "claude-sonnet-4-5"),
            ("gpt-5.1-2025-11-13", "gpt-5.1"),
            ("o1", "o1"),
        ] {
            assert!(is_same(model, other), "{model} {other}");
        }
        for (model, other) in [
            ("claude-sonnet-4-5", "claude-opus-4-5"),
            ("gpt-5.1", "gpt-5.1-mini"),
            ("", ""),
            ("gpt-5", ""),
        ] {
            assert!(!is_same(model, other), "{model} {other}");
        }
    }
}
