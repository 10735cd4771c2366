//! The protocol of delivery as a model: every order of actions of workers, store and broker, and every fault
//! between them, within small bounds.
//!
//! Two workers, at most two alerts of one fingerprint, two checkpoints a session (the second is its end). The model has
//! the rows of the store, the messages by their sequence in the stream, the subjects of the timeline, the dead letters,
//! and the next step of each worker. One transition corresponds to one statement or one message:
//!
//! | in the model | in tarsy |
//! |---|---|
//! | `statements.rs` | `src/store/sql/`: `receive`, `give_up`, `open`, `claim`, `checkpoint`, `finish`, `release`, `settled` |
//! | `worker.rs`, `Step` | `src/engine/delivery/dispatch.rs`, `src/engine/run/` |
//! | `worker.rs`, `row_to_publish` and `publish` | `src/bus/timeline/publisher.rs` |
//! | `model.rs`, `Requeue`, `Settle`, `TakeOverdue` | the sweeper: `Sessions::sweep` and `Queue` in `src/engine/ports/` |
//! | `model.rs`, everything for which `is_fault` is true | kill -9, SIGSTOP, SIGTERM, lost or late messages, lost streams |
//!
//! `rules.rs` names the rules and where each is kept. `properties.rs` says what holds in every reachable state; beyond
//! that, from every reachable state there has to be a way to a good end on which nothing else goes wrong. Each rule is
//! needed: without it a property breaks, and the test prints the shortest story of how.
//!
//! Not in the model: several executions of a session, tools, the cooldown, bodies that nobody can decode, tokens (they
//! tell apart epochs that a restored database gave twice), how long anything takes. It shows that there is no trap, not
//! that the way out is short.
//!
//! `TARSY_PROTOCOL_DEPTH=1` lets everything that may go wrong in a run do so once more; see `profiles.rs`.

mod model;
mod profiles;
mod properties;
mod rules;
mod state;
mod statements;
mod walk;
mod worker;

use std::collections::BTreeSet;
use std::time::Instant;

use self::model::Protocol;
use self::profiles::{Profile, fate, profiles};
use self::properties::GOOD_END_AHEAD;
use self::rules::Rule;
use self::walk::{Checked, check, tell, walk};

#[test]
fn with_every_rule_nothing_breaks_and_a_good_end_stays_within_reach() {
    let (mut states, mut failed) = (0, Vec::new());
    for Profile { name, bounds } in profiles() {
        let model = Protocol { without: None, bounds, workers_alike: true };
        let since = Instant::now();
        let (walked, checked) = std::thread::scope(|scope| {
            let checked = scope.spawn(|| check(&model, None));
            (walk(&model, None), checked.join().expect("a search"))
        });
        let seconds = since.elapsed().as_secs_f64();
        println!(
            "alerts: {}, {name:<35} {:>8} states {:>9} actions {seconds:>6.1} s",
            bounds.alerts, walked.states, walked.actions
        );
        states += walked.states;
        failed
            .extend(walked.broken.iter().map(|(what, story)| format!("{name}: not so: {what}{}", tell(&model, story))));
        let always = walked.broken.iter().map(|(what, _)| *what).filter(|what| *what != GOOD_END_AHEAD).collect();
        assert_eq!(checked, Checked { states: walked.states, broken: always }, "{name}: two searches, one answer");
    }
    println!("{states} states");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn each_rule_that_is_switched_off_breaks_its_property() {
    for rule in Rule::ALL {
        let (property, bounds) = fate(rule);
        let model = Protocol { without: Some(rule), bounds, workers_alike: false };
        let walked = walk(&model, Some(property));
        let found = walked.broken.iter().find(|(what, _)| *what == property);
        let Some((_, story)) = found else {
            panic!("without {rule:?} it holds in {} states: {property}; but {:?}", walked.states, walked.broken)
        };
        println!("without {rule:?} ({} states), not so: {property}{}", walked.states, tell(&model, story));
        if property != GOOD_END_AHEAD {
            assert!(check(&model, Some(property)).broken.contains(property), "stateright finds it, too: {property}");
        }
        let kept = Protocol { without: None, workers_alike: true, ..model };
        let broken: BTreeSet<_> = walk(&kept, None).broken.into_iter().map(|(what, _)| what).collect();
        assert_eq!(broken, BTreeSet::new(), "with {rule:?}");
    }
}
