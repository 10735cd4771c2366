//! `approvals freeze` and `approvals unfreeze`: stop all changes, and permit them again.

use crate::admin::publishing::decisions::{self, Freeze};
use crate::cli::args::{ApprovalsFreezeArgs, ApprovalsUnfreezeArgs, GlobalArgs};
use crate::cli::commands::database::Database;
use crate::cli::commands::output::note;
use crate::cli::commands::person::{AsPerson, Looks, Next};
use crate::cli::exit::Exit;
use tarsy_core::approvals::FreezeWord;

const NOT_RECORDED: &str = "sent, not recorded: no worker runs, or it does not count, because approvals.people has no \
                            person with this name as cli; the log of the workers has the reason";

pub(super) async fn begin(global: &GlobalArgs, args: ApprovalsFreezeArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "approvals")?;
    let person = AsPerson::connect(global, &args.person).await?;
    let message = decisions::freeze(Freeze {
        sender: person.sender.clone(),
        change: FreezeWord::Begin,
        until: args.until,
        reason: args.reason,
        by: None,
    });
    person.publish(&message).await?;
    let mut looks = Looks::begin();
    loop {
        let freezes = database.call(database.store.approval_freezes()).await;
        let freezes = looks.found(freezes.map(Some)).unwrap_or_default();
        if freezes.iter().any(|freeze| freeze.freeze_id == message.id) {
            note("all changes are frozen: tarsy approvals unfreeze ends it")?;
            return Ok(Exit::Done);
        }
        if looks.next().await? == Next::End {
            break;
        }
    }
    note(NOT_RECORDED)?;
    Ok(Exit::NotRecorded)
}

pub(super) async fn end(global: &GlobalArgs, args: ApprovalsUnfreezeArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "approvals")?;
    let freeze = database.call(database.store.approval_freeze()).await?;
    if freeze.is_none() {
        note("changes are not frozen")?;
        return Ok(Exit::Done);
    }
    let person = AsPerson::connect(global, &args.person).await?;
    let message = decisions::freeze(Freeze {
        sender: person.sender.clone(),
        change: FreezeWord::End,
        until: None,
        reason: None,
        by: None,
    });
    person.publish(&message).await?;
    let mut looks = Looks::begin();
    loop {
        let freeze = database.call(database.store.approval_freeze()).await;
        if looks.found(freeze.map(Some)) == Some(None) {
            note("changes are permitted again")?;
            return Ok(Exit::Done);
        }
        if looks.next().await? == Next::End {
            break;
        }
    }
    note(NOT_RECORDED)?;
    Ok(Exit::NotRecorded)
}
