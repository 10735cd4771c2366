//! Selects the global options that the help of each command shows. A command accepts the others too.

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;
use super::help::with_help;

const NATS: &str = "nats_url";
const DATABASE: &str = "database_url";
const LLM: &str = "llm_addr";
const CONFIG: &str = "config";

/// The options that a command does not use. A command that is not listed uses all of them.
const UNUSED: [(&str, &[&str]); 26] = [
    ("llm-service", &[NATS, DATABASE, LLM]),
    ("receive", &[DATABASE, LLM]),
    ("web", &[LLM]),
    ("migrate", &[LLM]),
    ("prune", &[NATS, LLM]),
    ("submit", &[LLM]),
    ("watch", &[LLM]),
    ("ask", &[LLM]),
    ("queue", &[LLM]),
    ("sessions", &[LLM]),
    ("approvals", &[LLM]),
    ("verdict", &[LLM]),
    ("verdicts", &[NATS, LLM]),
    ("dead-letters", &[LLM]),
    ("init", &[NATS, DATABASE, LLM]),
    ("config", &[NATS, DATABASE, LLM]),
    ("health", &[NATS, DATABASE, LLM, CONFIG]),
    ("models", &[NATS, DATABASE]),
    ("tools", &[NATS, DATABASE, LLM]),
    ("notify", &[NATS, DATABASE, LLM]),
    ("destinations", &[NATS, DATABASE, LLM]),
    ("sources", &[NATS, DATABASE, LLM]),
    ("skills", &[NATS, DATABASE, LLM]),
    ("inspect", &[NATS, DATABASE, LLM]),
    ("completions", &[NATS, DATABASE, LLM, CONFIG]),
    ("man", &[NATS, DATABASE, LLM, CONFIG]),
];

impl Cli {
    /// The command line with the help that people see.
    pub fn shown() -> Command {
        let mut root = with_help(Self::command());
        let options: Vec<Arg> = root.get_arguments().cloned().collect();
        for (command, unused) in UNUSED {
            let unused = options
                .iter()
                .filter(|option| unused.contains(&option.get_id().as_str()));
            let hidden: Vec<Arg> = unused.map(|option| option.clone().hide(true)).collect();
            root = root.mut_subcommand(command, |command| command.args(hidden));
        }
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(words: &[&str]) -> String {
        let mut command = Cli::shown();
        command.build();
        let found = words.iter().try_fold(&mut command, |command, word| {
            command.find_subcommand_mut(word)
        });
        found.unwrap().render_long_help().to_string()
    }

    #[test]
    fn a_command_shows_only_the_addresses_that_it_uses_and_accepts_all() {
        for words in [
            &["completions"][..],
            &["config", "check"],
            &["config", "example"],
            &["inspect", "alert"],
            &["health"],
        ] {
            let help = help(words);
            let unused = ["--database-url", "--nats-url", "--llm-addr"];
            assert!(
                !unused.iter().any(|option| help.contains(option)) && help.contains("--log"),
                "{help}"
            );
        }
        let worker = help(&["worker"]);
        assert!(
            ["--database-url", "--nats-url", "--llm-addr"]
                .iter()
                .all(|option| worker.contains(option)),
            "{worker}"
        );
        let list = help(&["sessions", "list"]);
        assert!(
            list.contains("--database-url") && !list.contains("--llm-addr"),
            "{list}"
        );
        let line = [
            "tarsy",
            "config",
            "check",
            "--database-url",
            "postgres://h/d",
            "--nats-url",
            "nats://h",
        ];
        let read = Cli::read(line.map(Into::into)).unwrap();
        assert_eq!(read.global.database_url.as_deref(), Some("postgres://h/d"));
    }
}
