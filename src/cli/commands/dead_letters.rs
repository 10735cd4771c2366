//! `tarsy dead-letters`: lists, shows, retries and drops alerts that were given up.

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use super::database::{Database, ambiguous, with_cause};
use super::output::{add, json_line, json_lines, note, print, print_json, style};
use super::publish::{Origin, PublishedSession};
use super::watch::follow::Sources;
use super::{addresses, load_config, submit};
use crate::admin::publishing::reruns;
use crate::cli::args::{
    DeadLettersCommand, DeadLettersDropArgs, DeadLettersListArgs, DeadLettersRetryArgs,
    DeadLettersShowArgs, GlobalArgs, LetterRef,
};
use crate::cli::exit::Exit;
use crate::cli::render::tables::dead_letters::{self, Remedy};
use crate::process::masked::dead_letter;
use crate::process::secrets;
use tarsy_bus::{CHAIN, MAX_DEAD_LETTERS, Nats, StoredDeadLetter};
use tarsy_config::Config;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::MAX_BODY_BYTES;
use tarsy_mask::Mask;

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
    let letters = nats.dead_letters().await?.into_iter();
    let mut found: Vec<_> = letters.map(|letter| dead_letter(&mask, letter)).collect();
    let total = found.len();
    found.truncate(usize::try_from(args.limit)?);
    if found.is_empty() {
        note("no dead letters")?;
    } else if args.json {
        print(&json_lines(&found.iter().map(as_json).collect::<Vec<_>>())?)?;
    } else {
        print(&dead_letters::letters(&found, &style()))?;
        if total > found.len() {
            // A full page may have left out further ones.
            let is_all = total < MAX_DEAD_LETTERS;
            let bound = if is_all { "" } else { "at least " };
            note(&format!(
                "{} of {bound}{total}; --limit shows more",
                found.len()
            ))?;
        }
    }
    Ok(Exit::Done)
}

async fn show(global: &GlobalArgs, nats: &Nats, args: DeadLettersShowArgs) -> anyhow::Result<Exit> {
    let letter = dead_letter(&mask(global)?, find(nats, &args.letter).await?);
    let style = style();
    if args.body {
        let mut out = std::io::stdout();
        if out.is_terminal() {
            writeln!(out, "{}", dead_letters::body_text(&letter, &style))?;
        } else {
            // A file or a pipe gets the unchanged bytes.
            out.write_all(&letter.body)?;
            out.flush()?;
        }
    } else if args.json {
        print_json(&as_json(&letter))?;
    } else {
        // The remedy is only a hint, so a faulty configuration is ignored.
        let remedy = remedy(&letter, load_config(global).ok().as_ref());
        print(&dead_letters::letter(&letter, &remedy, &style))?;
    }
    Ok(Exit::Done)
}

/// The remedy for a dead letter, with this configuration of the workers.
fn remedy(letter: &StoredDeadLetter, config: Option<&Config>) -> Remedy {
    let is_kept = !letter.body.is_empty();
    let fits = letter.body.len() <= MAX_BODY_BYTES;

    match letter.reason.as_str() {
        "undecodable" | "empty" => Remedy::Nothing,
        "too_large" if !is_kept || !fits => Remedy::SubmitAgain,
        "unknown_chain" => {
            let chains = config.iter().flat_map(|config| config.agent_chains.keys());
            Remedy::Retry(chains.cloned().collect())
        }
        _ => Remedy::Retry(Vec::new()),
    }
}

async fn retry(
    global: &GlobalArgs,
    nats: Nats,
    args: DeadLettersRetryArgs,
) -> anyhow::Result<Exit> {
    let letter = find(&nats, &args.letter).await?;
    may_retry(&letter, args.chain.as_deref(), &load_config(global)?)?;
    let (session, published) = nats
        .retry_dead_letter(&letter, args.chain.as_deref())
        .await?;
    let (priority, _) = reruns::queue_of(&published.subject);
    let origin = Some(Origin {
        key: "retry_of",
        session: letter.alert_id,
        words: "retry of",
    });
    let sources = args.watch.then(|| {
        // Without a database the timeline comes from the stream alone.
        let database = Database::new(global, "dead-letters").ok();
        Sources::new(global, nats, database.map(|database| database.store))
    });
    PublishedSession {
        session,
        published,
        priority,
        origin,
    }
    .finish(global, sources, &args.view)
    .await
}

/// Refuses what would become the same dead letter again.
fn may_retry(
    letter: &StoredDeadLetter,
    chain: Option<&str>,
    config: &Config,
) -> anyhow::Result<()> {
    let short = letter.alert_id.short();
    let same = |why: &str| format!("alert {short} would become the same dead letter: {why}");
    match remedy(letter, Some(config)) {
        Remedy::Nothing => bail!(
            "{}; tarsy dead-letters drop {short} removes it",
            same(&letter.detail)
        ),
        Remedy::SubmitAgain if letter.body.is_empty() => {
            bail!(tarsy_bus::Error::BodyNotKept(letter.alert_id))
        }
        Remedy::SubmitAgain => {
            bail!(
                "{}; at most {MAX_BODY_BYTES} bytes are read",
                same(&letter.detail)
            );
        }
        Remedy::Retry(_) => {}
    }
    submit::check_chain(config, chain)?;
    let named = chain
        .or_else(|| letter.headers.get(CHAIN)?.as_str())
        .map(str::trim);
    if let (Some(named), "unknown_chain", Some(known)) =
        (named, letter.reason.as_str(), config.named_chains())
    {
        let others = known.join(", ");
        ensure!(
            known.contains(&named),
            "{}; --chain names another one: {others}",
            same(&format!("there is no chain \"{named}\""))
        );
    }
    Ok(())
}

async fn drop(global: &GlobalArgs, nats: &Nats, args: DeadLettersDropArgs) -> anyhow::Result<Exit> {
    let letter = dead_letter(&mask(global)?, find(nats, &args.letter).await?);
    if !nats.drop_dead_letter(letter.sequence).await? {
        bail!("{} has been dropped already", dead_letters::named(&letter));
    }
    print(&[if args.json {
        json_line(&as_json(&letter))?
    } else {
        format!("dropped {}", dead_letters::named(&letter))
    }])?;
    Ok(Exit::Done)
}

/// The mask for shown dead letters: the stream keeps them unmasked, so that they can be queued again. With a faulty
/// configuration the mask knows the secrets of the process only.
fn mask(global: &GlobalArgs) -> anyhow::Result<Mask> {
    let addresses = addresses(global);
    match load_config(global) {
        Ok(config) => Ok(secrets::mask(&config, Some(&addresses))?),
        Err(_) => Ok(secrets::of_process(Some(&addresses))),
    }
}

/// The dead letter that a reference names.
///
/// # Errors
/// When no dead letter matches, or several do.
async fn find(nats: &Nats, wanted: &LetterRef) -> anyhow::Result<StoredDeadLetter> {
    let all = nats.dead_letters().await?;
    let wanted = match wanted {
        LetterRef::Number(number) => {
            let found = all.into_iter().find(|letter| letter.sequence == *number);
            return found.with_context(|| format!("no dead letter has number {number}"));
        }
        LetterRef::Alert(wanted) => wanted,
    };
    let mut matching: Vec<_> = all
        .into_iter()
        .filter(|letter| wanted.matches(letter.alert_id))
        .collect();
    let mut ids: Vec<SessionId> = matching.iter().map(|letter| letter.alert_id).collect();
    ids.dedup();
    ensure!(
        ids.len() <= 1,
        ambiguous("dead letters", wanted.digits(), &ids)
    );
    if matching.len() > 1 {
        let numbers: Vec<String> = matching
            .iter()
            .map(|letter| format!("@{} ({})", letter.sequence, letter.reason))
            .collect();
        bail!(
            "alert {} has several dead letters: name one by its number: {}",
            wanted.digits(),
            numbers.join(", ")
        );
    }
    matching.pop().with_context(|| match wanted.whole() {
        Some(alert) => {
            let short = alert.short();
            format!("alert {short} has no dead letter: it was never given up, or has been retried or dropped")
        }
        None => format!("no dead letter's alert has {} at either end of its id", wanted.digits()),
    })
}

/// The dead letter as stored, with the size of its body instead of the body.
fn as_json(letter: &StoredDeadLetter) -> Value {
    let mut value = json!(letter);
    add(&mut value, "body_bytes", letter.body.len());
    value
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_retry_is_offered_exactly_where_it_is_accepted() {
        let config = Config::load(None, &|_| None).unwrap();
        let letter = |reason: &str, bytes: usize, headers: Value| StoredDeadLetter {
            alert_id: SessionId(Uuid::nil()),
            reason: reason.to_owned(),
            detail: "why".to_owned(),
            subject: "tarsy.alerts.low".to_owned(),
            alert_sequence: 1,
            deliveries: 1,
            stored_at: Utc::now(),
            sequence: 1,
            headers,
            body: vec![b'x'; bytes],
        };
        let over = MAX_BODY_BYTES + 1;
        for (reason, bytes, expected) in [
            ("undecodable", 2, Remedy::Nothing),
            ("empty", 0, Remedy::Nothing),
            ("too_large", 0, Remedy::SubmitAgain),
            ("too_large", over, Remedy::SubmitAgain),
            ("too_large", 9, Remedy::Retry(Vec::new())),
            (
                "unknown_chain",
                9,
                Remedy::Retry(vec!["default".to_owned()]),
            ),
            ("of a newer version", 9, Remedy::Retry(Vec::new())),
        ] {
            let letter = letter(reason, bytes, json!({}));
            let offered = remedy(&letter, Some(&config));
            let accepted = may_retry(&letter, None, &config);

            assert_eq!(
                matches!(offered, Remedy::Retry(_)),
                accepted.is_ok(),
                "{reason}: {accepted:?}"
            );
            assert_eq!(offered, expected, "{reason}");
        }
    }
}
