//! `tarsy routes test`: prints the route of each alert of a body, and the effects of the route.

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;

use crate::cli::args::{GlobalArgs, RoutesCommand};
use crate::cli::commands::inspect::message::{check_source, received};
use crate::cli::commands::output::{json_lines, print};
use crate::cli::commands::{load_config, submit};
use crate::cli::exit::Exit;
use crate::cli::render::text;
use crate::process::secrets;
use crate::roles::worker::message::hints;
use tarsy_config::{AlertRoute, Config};
use tarsy_core::intake::{Intake, Part};
use tarsy_core::readable::format;
use tarsy_core::routing::Facts;
use tarsy_engine::plan::narrowing::Narrowing;
use tarsy_engine::plan::route;
use tarsy_engine::plan::session_planner::named_chain;
use tarsy_engine::ports::Received;
use tarsy_mask::Mask;

/// The route of an alert, with the reasons for the choice. Fields are added and never removed.
#[derive(Debug, Serialize)]
struct Chosen {
    title: String,
    /// `None`: no route matches.
    route: Option<String>,
    /// The matchers of the route.
    because: Vec<String>,
    /// The first matcher of each earlier route that does not hold, with the value of the alert.
    not: Vec<String>,
    /// The reason why it ends without an investigation.
    ignored_because: Option<String>,
    chain: String,
    /// `header`, `route`, `alert_types` or `default`.
    chain_from: &'static str,
    /// The patterns of the route; the agents get the tools of the chain that they name. `None`: all tools.
    tools_of_route: Option<Vec<String>>,
    /// The patterns of the header, which limit the tools further.
    tools_of_header: Option<String>,
    priority: &'static str,
    cooldown_s: u64,
    /// Investigations that the route opens in an hour; `None`: as many as alerts need.
    max_per_hour: Option<u32>,
}

pub(super) fn run(global: &GlobalArgs, command: RoutesCommand) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    let RoutesCommand::Test(args) = command;
    let intake = Intake::new(config.sources.all());
    check_source(&args.message, intake.sources())?;
    let body = submit::read(&args.file)?;
    let received = received(&args.message);
    let mut hints = hints(&received);
    hints.source = args.message.source.clone().or(hints.source);
    hints.suffix = args
        .suffix
        .map_or_else(String::new, |suffix| suffix.to_string());
    let parts = match hints.part {
        Some(_) => intake.part(&body, &hints).map(|part| vec![part]),
        None => intake.read(&body, &hints),
    };
    let parts = parts.with_context(|| format!("{} is not an alert", submit::named(&args.file)))?;
    let mask = secrets::mask(&config, None)?;
    let router = Router {
        config: &config,
        mask: &mask,
        received: &received,
        suffix: &hints.suffix,
    };
    let chosen: Vec<Chosen> = parts
        .iter()
        .map(|part| router.choose(part))
        .collect::<anyhow::Result<_>>()?;
    if args.json {
        print(&json_lines(&chosen)?)?;
        return Ok(Exit::Done);
    }
    let blocks: Vec<String> = chosen
        .iter()
        .map(|chosen| chosen.lines().join("\n"))
        .collect();
    print(&[blocks.join("\n\n")])?;
    Ok(Exit::Done)
}

/// Chooses routes as a worker would.
struct Router<'r> {
    config: &'r Config,
    mask: &'r Mask,
    received: &'r Received,
    suffix: &'r str,
}

impl Router<'_> {
    fn choose(&self, part: &Part) -> anyhow::Result<Chosen> {
        let Self {
            config,
            mask,
            received,
            suffix,
        } = self;
        let facts = Facts::new(part, suffix);
        let route = config.routes.first(&facts);
        let earlier = config
            .routes
            .iter()
            .take_while(|earlier| Some(*earlier) != route);
        let masked = |text: &str| mask.apply(text).into_owned();
        let named = named_chain(received, route);
        let alert = &part.alert;

        let chain = route::choose(config, &alert.alert_type, named.as_deref())?.name;
        let of_header = named_chain(received, None).is_some();
        let is_of_type = config
            .agent_chains
            .get(chain)
            .is_some_and(|chain| chain.alert_types.contains(&alert.alert_type));
        let chain_from = match (of_header, &named) {
            (true, _) => "header",
            (false, Some(_)) => "route",
            (false, None) if is_of_type => "alert_types",
            (false, None) => "default",
        };
        let tools_of_header = received.headers.get(tarsy_bus::TOOLS);
        let tools_of_header = tools_of_header.and_then(Value::as_str).map(str::to_owned);
        Narrowing::new(config, route, tools_of_header.as_deref())?;
        let tools = route.and_then(|route| route.tools.as_ref());
        Ok(Chosen {
            title: masked(&alert.title),
            route: route.map(|route| route.name.clone()),
            because: route
                .iter()
                .flat_map(|route| &route.matchers)
                .map(ToString::to_string)
                .collect(),
            not: earlier
                .filter_map(|earlier| {
                    let mut matchers = earlier.matchers.iter();
                    let matcher = matchers.find(|matcher| !matcher.matches(&facts))?;
                    let value = masked(facts.get(matcher.name()));
                    let route = &earlier.name;
                    Some(format!("{route}: {matcher} does not hold for {value:?}"))
                })
                .collect(),
            ignored_because: route.and_then(AlertRoute::ignored_because),
            chain: chain.to_owned(),
            chain_from,
            tools_of_route: tools.map(|tools| tools.iter().map(ToString::to_string).collect()),
            tools_of_header,
            priority: route
                .and_then(|route| route.priority)
                .unwrap_or(alert.severity)
                .as_str(),
            max_per_hour: route.and_then(|route| route.max_per_hour),
            cooldown_s: route
                .and_then(|route| route.cooldown)
                .unwrap_or(config.dedupe.cooldown)
                .as_secs(),
        })
    }
}

impl Chosen {
    fn lines(&self) -> Vec<String> {
        let line = |name: &str, text: &str| format!("  {name:<10}{text}");
        let because = if self.because.is_empty() {
            "it matches every alert".to_owned()
        } else {
            self.because.join(" and ")
        };
        let mut lines = vec![self.title.clone()];
        lines.push(match &self.route {
            Some(route) => line("route", &format!("{route}, because {because}")),
            None => line("route", "none"),
        });
        lines.extend(self.not.iter().map(|not| line("not", not)));
        if let Some(because) = &self.ignored_because {
            lines.push(line("ignored", because));
            return lines;
        }
        let chain = format!("{}, by the {}", self.chain, self.chain_from);
        lines.push(line("chain", &chain));
        let of_route = self.tools_of_route.as_ref().map(|tools| tools.join(", "));
        let patterns = text::join([of_route, self.tools_of_header.clone()], " and by ");
        let tools = if patterns.is_empty() {
            "all of the chain".to_owned()
        } else {
            format!("those of the chain that are named by {patterns}")
        };
        lines.push(line("tools", &tools));
        let priority = format!("{}, if tarsy receive publishes it", self.priority);
        lines.push(line("priority", &priority));
        lines.push(line("cooldown", &format!("{} s", self.cooldown_s)));
        if let Some(most) = self.max_per_hour {
            let most = format::count(most, "investigation");
            lines.push(line("limit", &format!("{most} an hour")));
        }
        lines
    }
}
