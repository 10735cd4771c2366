//! `tarsy prune`: deletes old rows and prints how many.

use std::time::{Duration, Instant};

use serde_json::json;

use super::output::{note, print, print_json};
use super::{addresses, load_config};
use crate::cli::args::{GlobalArgs, PruneArgs};
use crate::cli::exit::Exit;
use tarsy_engine::ports::Pruned;
use tarsy_store::{ConnectOptions, Store, check_schema};

/// The number of rows of each kind that one statement deletes at most.
const BATCH_ROWS: u32 = 500;
/// A dry run counts whole tables.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(600);
/// The shortest pause between two batches. A longer batch is followed by a pause of the same length, so that other
/// sessions have half of the time.
const MIN_PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn run(global: &GlobalArgs, args: PruneArgs) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    let cooldown = config.longest_cooldown();
    let retention = args.over(config.retention).beyond(cooldown);
    if retention.keeps_all() {
        note("no age is given: set --older-than, or configure `retention`")?;
        return Ok(Exit::Usage);
    }
    let options = ConnectOptions {
        statement_timeout: STATEMENT_TIMEOUT,
        may_be_read_only: args.dry_run,
        ..addresses(global).database_for_command("prune")?
    };
    check_schema(&options).await?;
    let store = Store::new(&options)?;
    let mut all = Pruned::default();
    if args.dry_run {
        all = store.preview_prune(retention).await?;
    } else {
        loop {
            let began = Instant::now();
            let some = store.prune_some(retention, BATCH_ROWS).await?;
            if some.rows.is_empty() {
                break;
            }
            all.add(&some);
            tokio::time::sleep(MIN_PAUSE.max(began.elapsed())).await; // pacing of batches
        }
    }
    show(&all, args)?;
    Ok(Exit::Done)
}

fn show(all: &Pruned, args: PruneArgs) -> anyhow::Result<()> {
    if args.json {
        return print_json(&json!({"dry_run": args.dry_run, "rows": all.rows}));
    }
    let outcome = if args.dry_run {
        "would be deleted"
    } else {
        "deleted"
    };
    if all.rows.is_empty() {
        return note(&format!("nothing is old enough: no row {outcome}"));
    }
    let lines: Vec<String> = all
        .rows
        .iter()
        .map(|(table, count)| format!("{count:>10}  {table} {outcome}"))
        .collect();
    print(&lines)
}
