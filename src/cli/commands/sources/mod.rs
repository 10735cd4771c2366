//! `tarsy sources`: the sources of alerts, as the configuration of this machine has them.
//!
//! `declaration` prints one source, `samples` reads recorded bodies, `first` guesses a new source from a body.

mod declaration;
mod samples;
mod first;

use super::load_config;
use super::output::{json_lines, print, style};
use crate::cli::args::{GlobalArgs, JsonArgs, SourcesCommand};
use crate::cli::exit::Exit;
use crate::cli::render::tables::sources::{self, ListedSource};
use tarsy_config::read::fault::did_you_mean;
use tarsy_config::{Config, SourceAuth};
use tarsy_core::sources::Sources;

pub(super) fn run(global: &GlobalArgs, command: SourcesCommand) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    match command {
        SourcesCommand::List(args) => list(&config, args),
        SourcesCommand::Show(args) => declaration::show(&config, &args),
        SourcesCommand::Test(args) => samples::test(&config, &args),
        SourcesCommand::Init(args) => first::print_guess(&config, &args),
    }
}

fn list(config: &Config, args: JsonArgs) -> anyhow::Result<Exit> {
    let all = config.sources.all();
    let listed: Vec<ListedSource> = all
        .iter()
        .map(|source| ListedSource {
            name: source.name.clone(),
            from: if is_of_user(config, &source.name) {
                "tarsy.yaml"
            } else {
                "built in"
            },
            recognised: !source.is_only_named(),
            statuses: source.statuses(),
            proof: proof(config.sources.auth(&source.name)),
        })
        .collect();
    print(&if args.json {
        json_lines(&listed)?
    } else {
        sources::list(&listed, &style())
    })?;
    Ok(Exit::Done)
}

fn is_of_user(config: &Config, name: &str) -> bool {
    config
        .sources
        .iter()
        .any(|configured| configured.source.name == name)
}

/// Describes the authentication of senders.
fn proof(auth: Option<&SourceAuth>) -> String {
    match auth {
        None | Some(SourceAuth::Receiver) => "token of receive".to_owned(),
        Some(SourceAuth::Token(_)) => "token of its own".to_owned(),
        Some(SourceAuth::Path(_)) => "token in the path".to_owned(),
        Some(SourceAuth::Header { name, .. }) => format!("header {name}"),
        Some(SourceAuth::HmacSha256 { header, .. }) => format!("signature in {header}"),
        Some(SourceAuth::Sns { .. }) => "signature of SNS".to_owned(),
    }
}

/// Names the sources that there are.
pub(super) fn unknown_source(sources: &Sources, name: &str) -> String {
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    let hint = did_you_mean(name, &names)
        .map(|meant| format!(" (did you mean {meant}?)"))
        .unwrap_or_default();
    format!(
        "there is no source {name:?}; there are: {}{hint}",
        names.join(", ")
    )
}
