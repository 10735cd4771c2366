//! `tarsy drill`: runs the whole system against recorded evidence; `--kill` kills the owner of the session.
//!
//! The LLM service, two workers and their MCP server are separate processes ([`processes`]). With `--provider`
//! ([`provider`]) a real model takes the place of the recording, and a rubric judges its report ([`verdict`]).

mod again;
mod approvals;
mod people;
mod provider;
mod processes;
mod question;
mod proof;
mod sub_agents;
mod verdict;

use std::cell::RefCell;
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use uuid::Uuid;

use self::people::{Past, People};
use self::processes::{DrillProcesses, Logging, Role};
use self::proof::{Counters, Facts};
use self::sub_agents::SubAgents;
use self::verdict::{Format, Investigation};
use super::output::{json_line, note, print};
use super::watch::follow::{Sources, Target};
use super::{addresses, write_error};
use crate::admin::drill::{RealModel, SERVER};
use crate::admin::{drill, migrate};
use crate::cli::args::{DrillArgs, GlobalArgs};
use crate::cli::exit::Exit;
use crate::cli::view::{TerminalEnv, ViewArgs};
use crate::cli::watch::{Options, TimelineItem};
use crate::process::connect::{Addresses, topology};
use tarsy_bus::{FINGERPRINT, NatsCredentials, NewAlert, Priority, SESSION_ID};
use tarsy_config::{Config, show};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_drill::decisions::Decision;
use tarsy_drill::{BUILTIN, Drill, Player};
use tarsy_engine::ports::Outbox as _;
use tarsy_store::{MIGRATION_TIMEOUT, Store};

/// The iteration in which the owner is killed. The first one is complete, so the next worker has a journal to replay.
const KILL_IN_ITERATION: u32 = 2;

/// A limit above the number of events that a drill has.
const ALL_EVENTS: u32 = 1_000_000;

pub(super) async fn run(global: &GlobalArgs, args: DrillArgs) -> anyhow::Result<Exit> {
    if args.list {
        return list(&args.view);
    }
    let model = provider::resolve(global, &args)?;
    let player = if model.is_some() {
        Player::Model
    } else {
        Player::Recording
    };
    let found =
        drill::find(&args.name).and_then(|drill| drill.check(player, SERVER).map(|()| drill));
    let drill = match found {
        Ok(drill) => drill,
        Err(fault) => {
            write_error(&format!("tarsy: {fault}"));
            return Ok(Exit::BadConfiguration);
        }
    };
    let program = std::env::current_exe()?;
    if args.print_config {
        print(&[show(&drill::system_config(
            &drill.reference(),
            &program,
            model,
        )?)])?;
        return Ok(Exit::Done);
    }
    if let Some(model) = &model
        && let Err(not_ready) = provider::check(model, &args).await
    {
        write_error(&format!("tarsy: {not_ready}"));
        return Ok(Exit::BadConfiguration);
    }
    if args.check_provider {
        return Ok(Exit::Done);
    }
    let config = drill::config(&drill.reference(), &program, model.clone())?;
    let decisions = match decisions(&drill, &config, &args) {
        Ok(decisions) => decisions,
        Err(fault) => {
            write_error(&format!("tarsy: {fault}"));
            return Ok(Exit::BadConfiguration);
        }
    };
    let mut addresses = addresses(global);
    set_up(&addresses, &config, drill.name).await?;

    let logging = if global.log_level.is_none() {
        Logging::Errors
    } else {
        Logging::Inherited
    };
    let counters = Counters::new()?;
    let mut processes = DrillProcesses::new(&program, logging, &counters);
    let run = Run {
        drill: &drill,
        config: &config,
        model: model.as_ref(),
        args: &args,
        counters: &counters,
        decisions: &decisions,
    };
    let result = run.perform(&mut processes, &mut addresses).await;
    processes.stop().await;
    result
}

/// One run of a drill.
struct Run<'r> {
    drill: &'r Drill,
    config: &'r Config,
    /// The model to ask; `None` replays the recording.
    model: Option<&'r RealModel>,
    args: &'r DrillArgs,
    counters: &'r Counters,
    /// The decisions of people about the calls that wait for them.
    decisions: &'r [Decision],
}

/// The decisions of people; with `--no-approve` they deny.
fn decisions(drill: &Drill, config: &Config, args: &DrillArgs) -> anyhow::Result<Vec<Decision>> {
    let name = drill.name;
    let decisions = drill.decisions(SERVER)?;
    let waits = config
        .mcp_servers
        .values()
        .any(|server| !server.approve.is_empty());
    if decisions.is_empty() && waits {
        bail!(
            "the drill {name} has no decisions.yaml: the calls of `approve` would wait for hours; docs/drills.md \
             describes it"
        );
    }
    if decisions.is_empty() && args.no_approve {
        bail!("no call of the drill {name} waits for a person: leave --no-approve out");
    }
    if waits && args.again {
        bail!("a call of the drill {name} waits for a person, who decides once: leave --again out");
    }
    Ok(if args.no_approve {
        decisions.into_iter().map(Decision::denied).collect()
    } else {
        decisions
    })
}

fn list(view: &ViewArgs) -> anyhow::Result<Exit> {
    for drill in BUILTIN {
        let name = drill.name;
        let title = drill.title()?;
        print(&[if view.json {
            json_line(&json!({"name": name, "title": title}))?
        } else {
            format!("{name:<16} {title}")
        }])?;
    }
    Ok(Exit::Done)
}

/// Migrates, unless the servers are in use with other settings.
async fn set_up(addresses: &Addresses, config: &Config, name: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    let nats = addresses.nats_for_command("drill").await?;
    // Migrating would change the streams of the system that uses these servers.
    if nats.has_topology().await? && nats.verify_topology(&topology(config)).await.is_err() {
        bail!(
            "these servers are in use with other settings, and a drill needs its own: ./dev demo {name} starts them"
        );
    }
    let done = migrate::run(addresses, config, MIGRATION_TIMEOUT).await?;
    let ensured = done.ensured;
    let fresh = ensured.created + ensured.updated;
    let detail = format!(
        "{} migrations, {fresh} streams and consumers changed",
        done.database.applied.len()
    );
    ok("migrate", &detail, Some(began))
}

impl Run<'_> {
    async fn perform(
        &self,
        processes: &mut DrillProcesses<'_>,
        addresses: &mut Addresses,
    ) -> anyhow::Result<Exit> {
        self.start(processes, addresses).await?;
        let session = SessionId(Uuid::now_v7());
        let nats = addresses.nats_for_command("drill").await?;
        let store = Store::new(&addresses.database("tarsy drill")?)?;
        let headers = json!({SESSION_ID: session, FINGERPRINT: again::fingerprint(session)});
        let alert = alert_of(self.drill, headers);
        let published = nats.publish_alert(alert).await?;
        note(&format!(
            "Alert {} → {}{}\n",
            self.drill.name,
            published.subject,
            follow_line(addresses, session)
        ))?;

        let options = Options {
            ends_with_us: true,
            ..self.args.view.options(&TerminalEnv::of_process())
        };
        let sources = Sources {
            nats,
            store: Some(store.into()),
            public_url: None,
        };
        let people = People {
            decisions: self.decisions,
            kills: self.args.kill,
            session,
            counters: self.counters,
            past: Past::default(),
        };
        let shown = self.show(&sources, &people, processes, options.clone());
        let exit = match (shown.await?, self.model) {
            (Exit::Done | Exit::Failed, Some(model)) => {
                self.judge_report(model, &sources, &people).await?
            }
            (Exit::Done, None) => judge(self.drill, &people, self.args)?,
            (other, _) => other,
        };
        let exit = if exit == Exit::Interrupted {
            exit
        } else {
            self.summary(&sources, &people, exit).await?
        };
        let exit = if self.args.again && exit == Exit::Done {
            again::run(&sources, self.drill, session, options.clone()).await?
        } else {
            exit
        };
        match &self.args.ask {
            Some(question) if exit == Exit::Done => {
                question::ask(&sources, session, question, options).await
            }
            Some(_) | None => Ok(exit),
        }
    }

    /// Shows the investigation to its end. Meanwhile its owner is killed, and people decide.
    async fn show(
        &self,
        sources: &Sources,
        people: &People<'_>,
        processes: &mut DrillProcesses<'_>,
        options: Options,
    ) -> anyhow::Result<Exit> {
        let processes = RefCell::new(processes);
        // Where people decide, the owner is killed while they think.
        let mut is_due = self.args.kill && self.decisions.is_empty();
        let target = Target {
            session: people.session,
            queue: None,
        };
        let past = &people.past;
        let showing = sources.show(target, options, |item| {
            if let TimelineItem::Event(event) = item {
                past.add(event);
                if is_due && self.is_time_to_kill(&past.seen.borrow(), event) {
                    is_due = false;
                    past.kill_owner(&processes)?;
                }
            }
            Ok(())
        });
        tokio::select! {
            exit = showing => exit,
            reason = people.act(sources, &processes) => Err(reason),
        }
    }

    /// Whether the owner is killed behind this event. A drill with sub-agents waits until all of them are at work, at a
    /// moment when no tool is called.
    fn is_time_to_kill(&self, seen: &[TimelineEvent], event: &TimelineEvent) -> bool {
        if self
            .config
            .agents
            .values()
            .all(|agent| agent.agents.is_empty())
        {
            return is_time_to_kill(event);
        }
        SubAgents::new(seen).is_some_and(|sub_agents| sub_agents.have_looked())
    }

    /// Starts the LLM service and two workers.
    async fn start(
        &self,
        processes: &mut DrillProcesses<'_>,
        addresses: &mut Addresses,
    ) -> anyhow::Result<()> {
        addresses.llm_addr = processes.start_llm_service(self.drill, self.model).await?;
        let model = match self.model {
            None => "SCRIPTED: replays a recording, no model is called".to_owned(),
            Some(model) => {
                let key = provider::key(model)
                    .map_or_else(|| "no key".to_owned(), |name| format!("key of {name}"));
                format!(
                    "REAL: {} {}, {key}",
                    model.provider.provider, model.provider.model
                )
            }
        };
        let detail = format!("{}, {model}", addresses.llm_addr);
        ok("llm-service", &detail, None)?;
        let evidence = self.drill.evidence()?;
        let role = Role {
            drill: &self.drill.reference(),
            model: self.model,
            now: evidence.now,
        };
        for name in ["w1", "w2"] {
            processes.start_worker(name, &role, addresses).await?;
        }
        let read_only = evidence.tools.iter().filter(|tool| tool.read_only).count();
        let tools = if self.decisions.is_empty() {
            format!("{read_only}, all read-only")
        } else {
            format!("{read_only} read-only; the calls of others wait for a person")
        };
        let slots = self.config.worker.slots;
        let lease = self.config.worker.lease.as_secs();

        let detail =
            format!("{slots} slots each; tools: drill ({tools}); lease {lease} s for this drill");
        ok("workers w1, w2", &detail, None)
    }

    /// Prints what was measured, and a command for the result. An exit code of success becomes a failure if the
    /// measurements contradict a guarantee.
    async fn summary(
        &self,
        sources: &Sources,
        people: &People<'_>,
        exit: Exit,
    ) -> anyhow::Result<Exit> {
        let session = people.session;
        let store = sources.store.as_ref().context("no database")?;
        let events = store.events(session, 0, ALL_EVENTS).await?;
        let evidence = self.drill.evidence()?;

        let tool_requests = self.counters.tool_requests()?;
        let model_requests = if self.model.is_none() {
            Some(self.counters.model_requests()?)
        } else {
            None
        };
        let kill = people.past.kill.borrow();
        let decided = people.past.decided.borrow();
        let facts = Facts {
            events: &events,
            evidence: &evidence,
            kill: kill.as_ref(),
            decided: &decided,
            lease: self.config.worker.lease,
            tool_requests: &tool_requests,
            model_requests: model_requests.as_deref(),
        };
        note("")?;
        for line in facts.lines() {
            note(&line)?;
        }
        if !self.args.servers_end {
            note(&format!(
                "\nThe result stays in this database: tarsy sessions show {}",
                session.short()
            ))?;
        }
        let faults = facts.faults();
        report_faults(self.drill, &faults);
        let sound = faults.is_empty();
        Ok(if sound { exit } else { Exit::Failed })
    }

    /// Judges the report of a real model with the rubric of the drill.
    async fn judge_report(
        &self,
        model: &RealModel,
        sources: &Sources,
        people: &People<'_>,
    ) -> anyhow::Result<Exit> {
        let store = sources.store.as_ref().context("no database")?;
        let stored = verdict::session(store.report(people.session).await?)?;
        let mut events = people.past.seen.borrow().clone();
        events.sort_by_key(|event| event.session_seq);
        events.dedup_by_key(|event| event.session_seq);
        if self.args.kill && !is_resumed(&events) {
            note(if self.decisions.is_empty() {
                "No worker was killed: the model called no tool in its second turn."
            } else {
                "No worker was killed: the model asked for no call that waits for a person."
            })?;
        }
        let format = if self.args.view.json {
            Format::Json
        } else {
            Format::Text
        };
        Investigation {
            drill: self.drill,
            model,
            events: &events,
            session: &stored,
        }
        .print(format)
    }
}

/// The alert of a drill with these headers.
fn alert_of(drill: &Drill, headers: Value) -> NewAlert {
    NewAlert {
        priority: Priority::Critical,
        suffix: "drill".parse().ok(),
        body: drill.alert.as_bytes().to_vec(),
        headers,
    }
}

/// A command that follows the session in any shell. It is empty for a server with credentials: the command would show
/// them, or not work without them.
fn follow_line(addresses: &Addresses, session: SessionId) -> String {
    let url = &addresses.nats_url;
    match std::env::current_exe() {
        Ok(program)
            if !url.contains('@') && addresses.nats_credentials == NatsCredentials::default() =>
        {
            format!(
                "\nFollow in another terminal: NATS_URL={url} {} watch {session}",
                program.display()
            )
        }
        _ => String::new(),
    }
}

/// Whether a tool call of the second iteration is durable: its tools are running.
fn is_time_to_kill(event: &TimelineEvent) -> bool {
    event.event_type == EventType::LlmToolCall
        && event.iteration.is_some_and(|n| n >= KILL_IN_ITERATION)
}

/// Whether the timeline is as the drill expects, and was resumed if its owner was killed.
fn judge(drill: &Drill, people: &People<'_>, args: &DrillArgs) -> anyhow::Result<Exit> {
    let seen = people.past.seen.borrow();
    let expected = drill
        .expected()
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut faults = expected.check(&seen);
    faults.extend(people.faults());
    if args.kill && !is_resumed(&seen) {
        faults.push("the owner was killed, but no worker resumed the session".to_owned());
    }
    report_faults(drill, &faults);
    let sound = faults.is_empty();
    Ok(if sound { Exit::Done } else { Exit::Failed })
}

fn is_resumed(events: &[TimelineEvent]) -> bool {
    events
        .iter()
        .any(|event| event.event_type == EventType::SessionResumed)
}

fn report_faults(drill: &Drill, faults: &[String]) {
    for fault in faults {
        write_error(&format!("drill {}: {fault}", drill.name));
    }
}

/// Prints progress on standard error; standard output is for the timeline.
fn ok(what: &str, detail: &str, since: Option<Instant>) -> anyhow::Result<()> {
    let took = since
        .map(|since| format!("{:.1} s", since.elapsed().as_secs_f64()))
        .unwrap_or_default();
    let line = format!("  ok  {what:<19}  {detail:<50}  {took:>6}");
    note(line.trim_end())
}
