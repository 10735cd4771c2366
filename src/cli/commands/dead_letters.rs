//! `tarsy dead-letters`: alerts that were given up.

use std::io::{IsTerminal as _, Write as _};

use anyhow::bail;
use serde_json::{Value, json};

use super::reach::{Database, ambiguous, note, print, print_json, with_cause};
use super::watch::follow::Sources;
use super::watch::waiting::QueueWatch;
use super::{addresses, load_config, submit};
use crate::bus::{MAX_DEAD_LETTERS, Nats, Published, StoredDeadLetter};
use crate::cli::args::{
    DeadLettersCommand, DeadLettersDropArgs, DeadLettersListArgs, DeadLettersRetryArgs, DeadLettersShowArgs,
    GlobalArgs, LetterRef,
};
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::render::tables::dead_letters;
use crate::cli::view::Surroundings;
use crate::investigation::ids::SessionId;
use crate::investigation::mask::Mask;
use crate::roles::masked::dead_letter;
use crate::roles::secrets;

pub(super) async fn run(global: &GlobalArgs, command: DeadLettersCommand) -> anyhow::Result<Exit> {
    let nats = addresses(global).nats_for_command("dead-letters").await?;
    let outcome = match command {
        DeadLettersCommand::List(args) => list(global, &nats, args).await,
        DeadLettersCommand::Show(args) => show(global, &nats, args).await,
        DeadLettersCommand::Retry(args) => retry(global, nats.clone(), args).await,
        DeadLettersCommand::Drop(args) => drop(global, &nats, args).await,
    };
    with_cause(&nats, outcome).await
}

async fn list(global: &GlobalArgs, nats: &Nats, args: DeadLettersListArgs) -> anyhow::Result<Exit> {
    let mask = mask(global)?;
    let mut found: Vec<_> = nats.dead_letters().await?.into_iter().map(|letter| dead_letter(&mask, letter)).collect();
    let total = found.len();
    found.truncate(usize::try_from(args.limit)?);
    if found.is_empty() {
        note("there is no dead letter")?;
    } else if args.json {
        for letter in &found {
            print_json(&as_json(letter))?;
        }
    } else {
        print(&dead_letters::letters(&found, &Surroundings::of_process().style()))?;
        if total > found.len() {
            let bound = if total < MAX_DEAD_LETTERS { "" } else { "at least " };
            note(&format!("{} of {bound}{total}; --limit shows more", found.len()))?;
        }
    }
    Ok(Exit::Done)
}

async fn show(global: &GlobalArgs, nats: &Nats, args: DeadLettersShowArgs) -> anyhow::Result<Exit> {
    let letter = dead_letter(&mask(global)?, find(nats, &args.letter).await?);
    let style = Surroundings::of_process().style();
    if args.body {
        let mut out = std::io::stdout();
        if out.is_terminal() {
            writeln!(out, "{}", dead_letters::body_text(&letter, &style))?;
        } else {
            // A file or a program gets the very bytes.
            out.write_all(&letter.body)?;
            out.flush()?;
        }
    } else if args.json {
        print_json(&as_json(&letter))?;
    } else {
        // Only a hint: a faulty file is not this command's business.
        let chains = load_config(global).map(|config| config.agent_chains.into_keys().collect()).unwrap_or_default();
        print(&dead_letters::letter(&letter, &self::chains(chains, &letter), &style))?;
    }
    Ok(Exit::Done)
}

/// Another chain helps where the chain was the fault.
fn chains(defined: Vec<String>, letter: &StoredDeadLetter) -> Vec<String> {
    if letter.reason == "unknown_chain" { defined } else { Vec::new() }
}

async fn retry(global: &GlobalArgs, nats: Nats, args: DeadLettersRetryArgs) -> anyhow::Result<Exit> {
    let letter = find(&nats, &args.letter).await?;
    let (session, published) = nats.retry_dead_letter(&letter, args.chain.as_deref()).await?;
    let Published { subject, sequence } = &published;
    note(&format!("{}; does {} again", messages::published(subject, *sequence, session), letter.alert_id.short()))?;
    if !args.watch {
        if args.view.json {
            print_json(&json!({
                "session_id": session, "retry_of": letter.alert_id, "subject": subject, "stream_sequence": sequence,
            }))?;
        } else {
            print(&[session.to_string()])?;
            note(&format!("Watch: tarsy watch {}", session.short()))?;
        }
        return Ok(Exit::Done);
    }
    let (priority, _) = submit::queue_of(subject);
    let queue = QueueWatch::of_alert(&nats, priority, *sequence);
    let store = Database::of(global, "dead-letters").ok().map(|database| database.store);
    let options = args.view.options(&Surroundings::of_process());
    Sources { nats, store }.show_from_queue((session, queue), options).await
}

async fn drop(global: &GlobalArgs, nats: &Nats, args: DeadLettersDropArgs) -> anyhow::Result<Exit> {
    let letter = dead_letter(&mask(global)?, find(nats, &args.letter).await?);
    if !nats.drop_dead_letter(letter.sequence).await? {
        bail!("{} is gone already", dead_letters::named(&letter));
    }
    if args.json {
        print_json(&as_json(&letter))?;
    } else {
        print(&[format!("dropped {}", dead_letters::named(&letter))])?;
    }
    Ok(Exit::Done)
}

/// A dead letter is raw, so that it can be queued again; what is shown of it is not. A faulty file is not this command's
/// business.
fn mask(global: &GlobalArgs) -> anyhow::Result<Mask> {
    let addresses = addresses(global);
    match load_config(global) {
        Ok(config) => Ok(secrets::mask(&config, Some(&addresses))?),
        Err(_) => Ok(secrets::of_process(Some(&addresses))),
    }
}

/// The one that is meant; none and several are errors.
async fn find(nats: &Nats, wanted: &LetterRef) -> anyhow::Result<StoredDeadLetter> {
    let all = nats.dead_letters().await?;
    let wanted = match wanted {
        LetterRef::Number(number) => {
            let found = all.into_iter().find(|letter| letter.sequence == *number);
            return found.ok_or_else(|| anyhow::anyhow!("there is no dead letter number {number}"));
        }
        LetterRef::Alert(wanted) => wanted,
    };
    let mut fitting: Vec<StoredDeadLetter> = all.into_iter().filter(|letter| wanted.matches(letter.alert_id)).collect();
    let mut ids: Vec<SessionId> = fitting.iter().map(|letter| letter.alert_id).collect();
    ids.dedup();
    match (fitting.pop(), fitting.is_empty(), ids.len()) {
        (None, ..) => match wanted.whole() {
            Some(alert) => {
                bail!("alert {} has no dead letter: it was never one, or is retried or dropped", alert.short())
            }
            None => bail!("no dead letter's alert has {} at either end of its id", wanted.digits()),
        },
        (Some(only), true, _) => Ok(only),
        (Some(last), false, 1) => {
            fitting.push(last);
            let each = fitting.iter().map(|letter| format!("@{} ({})", letter.sequence, letter.reason));
            bail!(
                "alert {} has several dead letters: name one by its number: {}",
                wanted.digits(),
                each.collect::<Vec<_>>().join(", ")
            )
        }
        (Some(_), false, _) => bail!(ambiguous("dead letters", wanted.digits(), &ids)),
    }
}

/// As the stream has it, and the size of the body that is left out.
fn as_json(letter: &StoredDeadLetter) -> Value {
    let mut value = serde_json::to_value(letter).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("body_bytes".to_owned(), letter.body.len().into());
    }
    value
}
