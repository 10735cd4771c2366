//! Guarantee 3 for sub-agents: each is dispatched once, has one journal, and gives one result.

use tarsy_core::ids::SessionId;
use uuid::Uuid;

use super::{Violation, add};
use crate::proofs::chaos::facts::{Entry, Facts};

pub(super) fn each_has_one_journal_and_one_result(facts: &Facts, violations: &mut Vec<Violation>) {
    for (parent, entries) in &facts.entries {
        let dispatched = entries.iter().filter(|entry| entry.kind == "dispatched");
        for entry in dispatched {
            let session = SessionId(entry.session_id);
            let call = entry.tool_call_id.as_deref().unwrap_or_default();
            let of_call = |kinds: &[&str]| {
                let is_one = |entry: &&Entry| {
                    kinds.contains(&entry.kind.as_str())
                        && entry.tool_call_id.as_deref() == Some(call)
                };
                entries.iter().filter(is_one).count()
            };
            let times = of_call(&["dispatched"]);
            if times > 1 {
                let what =
                    format!("execution {parent} has dispatched an agent {times} times for {call}");
                add(violations, 3, session, what);
            }
            let ended = entries.last().is_some_and(|last| last.kind == "ended");
            let results = of_call(&["tool_result", "observation"]);
            if ended && results != 1 {
                let what = format!("execution {parent} has {results} results for {call}");
                add(violations, 3, session, what);
            }
            let child = entry.body["execution_id"]
                .as_str()
                .and_then(|id| Uuid::parse_str(id).ok());
            let journal = child.and_then(|child| facts.entries.get(&child));
            let is_over = journal.and_then(|entries| entries.last());
            if results == 1 && is_over.is_none_or(|last| last.kind != "ended") {
                let what = format!("execution {parent} has a result for {call} of an open agent");
                add(violations, 3, session, what);
            }
        }
    }
}
