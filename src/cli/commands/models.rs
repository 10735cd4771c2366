//! `tarsy models`: the configured models, and whether they can be called.

use anyhow::ensure;

use super::output::{json_lines, note, print, style};
use super::{addresses, load_config};
use crate::admin::models::{Ask, State, report};
use crate::cli::args::{GlobalArgs, ModelsArgs};
use crate::cli::exit::Exit;
use crate::cli::render::tables::models;
use tarsy_config::find;

/// The message for a directory without a configuration.
const NO_FILE: &str = "there is no tarsy.yaml: a recording knows the alerts of `tarsy drill --list` only; any other alert \
                       fails. tarsy init writes a first tarsy.yaml; --config names another file";

pub(super) async fn run(global: &GlobalArgs, args: ModelsArgs) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    if find(global.config.clone()).is_none() {
        note(NO_FILE)?;
    }
    let mut names: Vec<&str> = config.llm_providers.keys().map(String::as_str).collect();
    if let Some(wanted) = &args.name {
        ensure!(
            names.contains(&wanted.as_str()),
            "there is no provider {wanted:?}; defined: {}",
            names.join(", ")
        );
        names.retain(|name| name == wanted);
    }
    let ask = if args.probe {
        Ask::ToolCall(args.timeout)
    } else {
        Ask::Nothing
    };
    let reports = report(&config, &names, &addresses(global).llm()?, ask).await;
    let lines = if args.json {
        json_lines(&reports)?
    } else {
        models::list(&reports, &style())
    };
    print(&lines)?;
    let unusable = reports.iter().any(|report| report.state == State::Unusable);
    Ok(if unusable { Exit::Failed } else { Exit::Done })
}
