//! The examples that `tarsy config example` prints, one file for each common case.

/// The example of a common case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The word on the command line.
    pub case: &'static str,
    /// The purpose of the example, in one line.
    pub about: &'static str,
    /// The file. It has no faults, whichever variables are set.
    pub text: &'static str,
}

const fn example(case: &'static str, about: &'static str, text: &'static str) -> Example {
    Example { case, about, text }
}

/// Every case.
pub const EXAMPLES: [Example; 15] = [
    example(
        "first-try",
        "no model: a recording answers",
        include_str!("../../../examples/config/first-try.yaml"),
    ),
    example(
        "gemini",
        "Gemini by its Developer API",
        include_str!("../../../examples/config/gemini.yaml"),
    ),
    example(
        "vertex",
        "Gemini by Vertex AI of Google Cloud",
        include_str!("../../../examples/config/vertex.yaml"),
    ),
    example(
        "vertex-claude",
        "Claude by Vertex AI of Google Cloud",
        include_str!("../../../examples/config/vertex-claude.yaml"),
    ),
    example(
        "openai",
        "models of OpenAI",
        include_str!("../../../examples/config/openai.yaml"),
    ),
    example(
        "anthropic",
        "models of Anthropic",
        include_str!("../../../examples/config/anthropic.yaml"),
    ),
    example(
        "ollama",
        "a local Ollama",
        include_str!("../../../examples/config/ollama.yaml"),
    ),
    example(
        "openai-compatible",
        "vLLM, llama.cpp, LiteLLM and other servers with the interface of OpenAI",
        include_str!("../../../examples/config/openai-compatible.yaml"),
    ),
    example(
        "fallback",
        "Gemini, then Anthropic, then OpenAI when one fails",
        include_str!("../../../examples/config/fallback.yaml"),
    ),
    example(
        "team",
        "two agents, and a cheaper model for their synthesis",
        include_str!("../../../examples/config/team.yaml"),
    ),
    example(
        "kubernetes",
        "tools for a Kubernetes cluster: kubernetes-mcp-server",
        include_str!("../../../examples/config/kubernetes.yaml"),
    ),
    example(
        "prometheus",
        "tools for Prometheus: prometheus-mcp-server",
        include_str!("../../../examples/config/prometheus.yaml"),
    ),
    example(
        "grafana",
        "tools for Grafana and its data sources: mcp-grafana",
        include_str!("../../../examples/config/grafana.yaml"),
    ),
    example(
        "github",
        "tools for commits, releases and workflow runs: github-mcp-server",
        include_str!("../../../examples/config/github.yaml"),
    ),
    example(
        "postgres",
        "tools for Postgres: MCP Toolbox for Databases",
        include_str!("../../../examples/config/postgres.yaml"),
    ),
];

/// The example of this case.
pub fn example_of(case: &str) -> Option<&'static Example> {
    EXAMPLES.iter().find(|example| example.case == case)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Config;

    #[test]
    fn every_example_has_no_fault_whichever_variables_are_set() {
        for Example { case, text, .. } in EXAMPLES {
            for value in [None, Some("value-1".to_owned())] {
                if let Err(faults) = Config::parse(case, text, &|_| value.clone()) {
                    panic!("{faults}");
                }
            }
            assert!(
                text.starts_with("# ") && text.lines().count() < 45,
                "{case}"
            );
        }
    }

    #[test]
    fn every_file_of_the_folder_is_an_example_with_a_case_of_its_own() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/config");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(
            files,
            EXAMPLES
                .iter()
                .map(|example| format!("{}.yaml", example.case))
                .collect()
        );
    }
}
