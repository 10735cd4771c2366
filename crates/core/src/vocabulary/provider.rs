//! The table of providers: a row has everything that configuration, service, metrics and commands know about one.
//!
//! The keys and addresses of a row may be used by requests without being permitted, each key only with the addresses of
//! its own provider. The documentation repeats the table for operators (`docs/configuration.md`).

use super::OTHER;

/// A provider and what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The word in `llm_providers.<name>.provider` and in requests.
    pub name: &'static str,
    pub protocol: Protocol,
    /// The variables of its key. The first one that is set is used for a request without `api_key_env`.
    pub keys: &'static [&'static str],
    /// Patterns of its addresses. The first one is the default if it has no `*`.
    pub addresses: &'static [&'static str],
    /// The path of its interface below an address without a path.
    pub path: &'static str,
    /// The environment variable by which its official clients take another address; empty if they have none.
    pub base_url_variable: &'static str,
    /// The description of the `base_url` without which it has no address; empty if it has one.
    pub needed_base_url: &'static str,
    /// The value of `gen_ai.provider.name` in OpenTelemetry's conventions.
    pub gen_ai: &'static str,
    /// Whether it is only another name for [`OPENAI_COMPATIBLE`].
    pub is_alias: bool,
}

/// The interface of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Gemini's own.
    Gemini,
    /// The Responses API of OpenAI for its own models, chat completions for any other.
    OpenAi,
    /// Chat completions; the Responses API if the configuration says so.
    Chat,
    /// Chat completions, by an adapter of the provider's name in the crate `genai`.
    ChatOnly,
    /// The Messages API of Anthropic.
    Messages,
    /// The Converse API of Bedrock.
    Converse,
    /// None: it replays recordings.
    Recording,
}

impl Protocol {
    /// Whether it offers the chat completions of OpenAI.
    pub fn has_chat(self) -> bool {
        matches!(self, Self::OpenAi | Self::Chat | Self::ChatOnly)
    }

    /// Whether it has a word that forbids the calls of declared tools. Some servers with the chat completions of OpenAI
    /// ignore it, and some gateways refuse it.
    pub fn forbids_calls(self) -> bool {
        matches!(self, Self::Gemini | Self::OpenAi | Self::Messages)
    }

    /// Whether Vertex AI of Google Cloud offers models with it.
    pub fn has_vertex_ai(self) -> bool {
        matches!(self, Self::Gemini | Self::Messages)
    }

    /// Whether it offers the Responses API of OpenAI.
    pub fn has_responses(self) -> bool {
        matches!(self, Self::OpenAi | Self::Chat)
    }
}

/// Gemini, by its Developer API.
pub const GOOGLE: Provider = Provider {
    protocol: Protocol::Gemini,
    keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    addresses: &["https://generativelanguage.googleapis.com"],
    path: "",
    base_url_variable: "GOOGLE_GEMINI_BASE_URL",
    gen_ai: "gcp.gemini",
    ..chat("google", &[], &[], "")
};

/// The address of Vertex AI for the location `global`. Every other location stands before the host.
pub const VERTEX_AI_ADDRESS: &str = "https://aiplatform.googleapis.com";

/// Models by Vertex AI of Google Cloud. Requests have no word for it: a project makes `google` and `anthropic` use it.
/// Its accounts have no variable that a request may name without a permission.
pub const VERTEX_AI: Provider = Provider {
    name: "vertex-ai",
    keys: &[],
    addresses: &[
        VERTEX_AI_ADDRESS,
        "https://*-aiplatform.googleapis.com",
        "https://aiplatform.*.rep.googleapis.com",
    ],
    base_url_variable: "GOOGLE_VERTEX_BASE_URL",
    gen_ai: "gcp.vertex_ai",
    ..GOOGLE
};

/// Any server with the interface of OpenAI: it has no key and no address of its own.
pub const OPENAI_COMPATIBLE: Provider = Provider {
    needed_base_url: "the address of the server, such as https://llm.example.com/v1",
    ..chat("openai-compatible", &[], &[], "/v1")
};

/// Every provider that a configuration may name, in the order of the documentation. One with the chat completions of
/// OpenAI is a line.
#[rustfmt::skip]
pub const PROVIDERS: &[Provider] = &[
    GOOGLE,
    Provider {
        protocol: Protocol::OpenAi,
        base_url_variable: "OPENAI_BASE_URL",
        ..chat("openai", &["OPENAI_API_KEY"], &["https://api.openai.com"], "/v1")
    },
    Provider {
        protocol: Protocol::Messages,
        base_url_variable: "ANTHROPIC_BASE_URL",
        ..chat("anthropic", &["ANTHROPIC_API_KEY"], &["https://api.anthropic.com"], "/v1")
    },
    Provider {
        base_url_variable: "OLLAMA_HOST",
        ..chat("ollama", &["OLLAMA_API_KEY"], &["http://localhost:11434", "http://127.0.0.1:11434"], "/v1")
    },
    Provider {
        protocol: Protocol::ChatOnly,
        base_url_variable: "XAI_API_BASE",
        gen_ai: "x_ai",
        ..chat("xai", &["XAI_API_KEY"], &["https://api.x.ai"], "/v1")
    },
    Provider {
        protocol: Protocol::OpenAi,
        addresses: &[
            "https://*.openai.azure.com",
            "https://*.services.ai.azure.com",
            "https://*.cognitiveservices.azure.com",
        ],
        base_url_variable: "AZURE_OPENAI_ENDPOINT",
        gen_ai: "azure.ai.openai",
        ..chat("azure", &["AZURE_OPENAI_API_KEY"], &[], "/openai/v1")
    },
    Provider {
        protocol: Protocol::Converse,
        addresses: &["https://bedrock-runtime.*.amazonaws.com"],
        needed_base_url: "the address of a region, such as https://bedrock-runtime.eu-central-1.amazonaws.com",
        gen_ai: "aws.bedrock",
        ..chat("bedrock", &["BEDROCK_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"], &[], "")
    },
    Provider {
        protocol: Protocol::ChatOnly,
        gen_ai: "mistral_ai",
        ..chat("mistral", &["MISTRAL_API_KEY"], &["https://api.mistral.ai"], "/v1")
    },
    Provider {
        protocol: Protocol::ChatOnly,
        ..chat("groq", &["GROQ_API_KEY"], &["https://api.groq.com"], "/openai/v1")
    },
    chat("deepseek", &["DEEPSEEK_API_KEY"], &["https://api.deepseek.com"], "/v1"),
    chat("openrouter", &["OPENROUTER_API_KEY"], &["https://openrouter.ai"], "/api/v1"),
    chat("together", &["TOGETHER_API_KEY"], &["https://api.together.xyz"], "/v1"),
    chat("fireworks", &["FIREWORKS_API_KEY"], &["https://api.fireworks.ai"], "/inference/v1"),
    chat("cohere", &["COHERE_API_KEY"], &["https://api.cohere.com"], "/compatibility/v1"),
    alias("vllm", "the address of the server, such as http://vllm.example.com:8000/v1"),
    alias("llamacpp", "the address of the server, such as http://localhost:8080/v1"),
    alias("lmstudio", "the address of the server, such as http://localhost:1234/v1"),
    alias("litellm", "the address of the proxy, such as http://litellm.example.com:4000/v1"),
    OPENAI_COMPATIBLE,
    Provider {
        protocol: Protocol::Recording,
        ..chat("scripted", &[], &[], "")
    },
];

/// A provider with the chat completions of OpenAI at an address of its own.
const fn chat(
    name: &'static str,
    keys: &'static [&'static str],
    addresses: &'static [&'static str],
    path: &'static str,
) -> Provider {
    Provider {
        name,
        protocol: Protocol::Chat,
        keys,
        addresses,
        path,
        base_url_variable: "",
        needed_base_url: "",
        gen_ai: name,
        is_alias: false,
    }
}

/// A program that serves models at the operator's address.
const fn alias(name: &'static str, needed_base_url: &'static str) -> Provider {
    Provider {
        name,
        gen_ai: name,
        needed_base_url,
        is_alias: true,
        ..OPENAI_COMPATIBLE
    }
}

/// The words that a configuration may have.
pub fn names() -> Vec<&'static str> {
    PROVIDERS.iter().map(|provider| provider.name).collect()
}

/// The provider of a word in a configuration.
pub fn named(word: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.name == word)
}

/// The providers with a limit and a label of their own.
pub fn counted() -> impl Iterator<Item = &'static Provider> {
    PROVIDERS.iter().filter(|provider| !provider.is_alias)
}

/// The value of `gen_ai.provider.name` for a word in a configuration. `project` is set for Google Cloud.
pub fn gen_ai_name<'a>(word: &'a str, project: &str) -> &'a str {
    match named(word) {
        Some(provider) if provider.protocol.has_vertex_ai() && !project.is_empty() => {
            VERTEX_AI.gen_ai
        }
        Some(provider) => provider.gen_ai,
        None => word,
    }
}

/// The values of the label `provider` of the LLM service; `other` represents any other word of a request.
pub const LABELS: [&str; COUNTED + 1] = {
    let mut labels = [OTHER; COUNTED + 1];
    fill(&mut labels, PROVIDERS, Word::Name);
    labels
};

/// The values of the label `gen_ai_provider_name`.
pub const GEN_AI_LABELS: [&str; COUNTED + 2] = {
    let mut labels = [OTHER; COUNTED + 2];
    fill(&mut labels, &[VERTEX_AI], Word::GenAi);
    let [_vertex_ai, others @ ..] = &mut labels;
    fill(others, PROVIDERS, Word::GenAi);
    labels
};

const COUNTED: usize = {
    let mut count = 0;
    let mut rows = PROVIDERS;
    while let [row, others @ ..] = rows {
        rows = others;
        if !row.is_alias {
            count += 1;
        }
    }
    count
};

/// A word of a row that is a label.
#[derive(Clone, Copy)]
enum Word {
    Name,
    GenAi,
}

/// Writes a word of each counted row.
const fn fill(mut labels: &mut [&'static str], mut rows: &[Provider], word: Word) {
    while let [row, others @ ..] = rows {
        rows = others;
        if row.is_alias {
            continue;
        }
        if let [label, free @ ..] = labels {
            *label = match word {
                Word::Name => row.name,
                Word::GenAi => row.gen_ai,
            };
            labels = free;
        } else {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_unique_and_labels_have_each_counted_one() {
        let mut words = names();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), PROVIDERS.len());
        let counted: Vec<_> = counted().map(|provider| provider.name).collect();
        assert_eq!([counted.as_slice(), &[OTHER]].concat(), LABELS);
        assert_eq!(
            GEN_AI_LABELS.map(|label| label.is_empty() || label == OTHER),
            std::array::from_fn(|at| at == LABELS.len())
        );
        assert!(GEN_AI_LABELS.starts_with(&["gcp.vertex_ai", "gcp.gemini", "openai"]));
        assert!(GEN_AI_LABELS.ends_with(&["openai-compatible", "scripted", "other"]));
    }

    #[test]
    fn a_provider_without_an_address_says_what_its_base_url_is() {
        for provider in PROVIDERS {
            let has_address = provider
                .addresses
                .first()
                .is_some_and(|address| !address.contains('*'));
            let is_open = ["azure", "scripted"].contains(&provider.name);
            assert_eq!(
                provider.needed_base_url.is_empty(),
                has_address || is_open,
                "{}",
                provider.name
            );
        }
    }
}
