//! `tarsy destinations`: the destinations of notes, as the configuration of this machine has them.
//!
//! `trial` makes the requests of a note about an alert, and sends them when it is asked to.

mod trial;

use anyhow::bail;

use super::load_config;
use super::output::{json_lines, note, print, style};
use crate::cli::args::{DestinationsCheckArgs, DestinationsCommand, GlobalArgs, JsonArgs};
use crate::cli::exit::Exit;
use crate::cli::render::tables::destinations::{self, ListedDestination};
use crate::process::secrets;
use tarsy_config::read::fault::did_you_mean;
use tarsy_config::sections::destinations::{Destination, builtin_destinations};
use tarsy_config::{Config, NotificationRoute};
use tarsy_core::notification::Moment;
use tarsy_notifications::Routes;

pub(super) async fn run(global: &GlobalArgs, command: DestinationsCommand) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    match command {
        DestinationsCommand::List(args) => list(&config, args),
        DestinationsCommand::Check(args) => check(&config, args).await,
        DestinationsCommand::Test(args) => trial::run(&config, args).await,
    }
}

fn list(config: &Config, args: JsonArgs) -> anyhow::Result<Exit> {
    let configured = config.destinations.iter().filter_map(|(name, configured)| {
        let destination = configured.destination()?;
        Some(listed(name, destination, Some(&configured.route)))
    });
    let builtin = builtin_destinations()
        .filter(|(name, _)| !config.destinations.contains_key(*name))
        .map(|(name, destination)| listed(name, destination, None));
    let all: Vec<ListedDestination> = configured.chain(builtin).collect();
    print(&if args.json {
        json_lines(&all)?
    } else {
        destinations::list(&all, &style())
    })?;
    Ok(Exit::Done)
}

/// `route` is `None` for a destination that is not configured.
fn listed(
    name: &str,
    destination: &Destination,
    route: Option<&NotificationRoute>,
) -> ListedDestination {
    let moments = route.map(|route| route.filter.on.clone());
    ListedDestination {
        name: name.to_owned(),
        from: if route.is_some() {
            "tarsy.yaml"
        } else {
            "built in"
        },
        when: moments
            .unwrap_or_default()
            .into_iter()
            .map(Moment::as_str)
            .collect(),
        needs: destination
            .needs
            .iter()
            .map(|need| need.name.clone())
            .collect(),
        repetition: match (&destination.find, destination.idempotent) {
            (Some(_), _) => "found again",
            (None, true) => "the vendor",
            (None, false) => "a remark",
        },
    }
}

async fn check(config: &Config, args: DestinationsCheckArgs) -> anyhow::Result<Exit> {
    let names: Vec<String> = match args.name {
        Some(name) => vec![known(config, &name)?.to_owned()],
        None => config.destinations.keys().cloned().collect(),
    };
    if names.is_empty() {
        note("no destination is configured")?;
        return Ok(Exit::Done);
    }
    let routes = Routes::new(config.notification_routes(), secrets::mask(config, None)?);
    let mut exit = Exit::Done;
    for name in names {
        let line = match routes.check(&name).await {
            Ok(()) => format!("{name}: its secret can be read, and its address answers"),
            Err(reason) => {
                exit = Exit::Failed;
                format!("{name}: {reason}")
            }
        };
        print(&[line])?;
    }
    Ok(exit)
}

/// The name of a configured destination.
fn known<'n>(config: &Config, name: &'n str) -> anyhow::Result<&'n str> {
    if config.destinations.contains_key(name) {
        return Ok(name);
    }
    let names: Vec<&str> = config.destinations.keys().map(String::as_str).collect();
    let hint = did_you_mean(name, &names)
        .map(|meant| format!(" (did you mean {meant}?)"))
        .unwrap_or_default();
    if names.is_empty() {
        bail!("the configuration has no destinations: see destinations in tarsy config example");
    }
    bail!(
        "there is no destination {name:?}; there are: {}{hint}",
        names.join(", ")
    )
}
