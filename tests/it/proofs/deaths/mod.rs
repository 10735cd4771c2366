//! Kills each part of a real system and prints the times until the work continues. The table in
//! `docs/operations/failures.md` is this output.
//!
//! The proof runs each death once, with short leases and outages. The suite leaves out those of which it has another
//! test with more points of time, named in the list, and has shorter leases and outages. `TARSY_DEATHS_RUNS=3` runs
//! each three times with the settings of production and outages of a minute. `TARSY_DEATHS_AT_ONCE` is the number of
//! systems at the same time, `TARSY_DEATHS_ONLY` lists parts of the names of the deaths to run, separated by commas.

mod bed;
mod broker;
mod database;
mod everything;
mod models;
mod producers;
mod tools;
mod workers;

use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};

use crate::support::figures::{Figures, by_depth, from_env, is_proof};

const AT_ONCE: usize = 5;
const AT_ONCE_IN_PROOF: usize = 3;

const PATIENT_LEASE: Duration = Duration::from_secs(10);

/// The settings that decide how long a death lasts.
#[derive(Clone, Copy, Debug)]
struct Pace {
    lease: Duration,
    tool_wait: Duration,
    /// The duration of an outage that does not end at once.
    outage: Duration,
    /// The delay that the provider asks for when it refuses.
    retry_after: Duration,
    /// Answers of a session: more than it needs while a part dies.
    answers: usize,
    /// The time of an answer.
    call: Duration,
}

impl Pace {
    const SUITE: Self = Self {
        lease: Duration::from_secs(2),
        tool_wait: Duration::from_secs(1),
        outage: Duration::from_secs(1),
        retry_after: Duration::from_secs(1),
        answers: 10,
        call: Duration::from_millis(200),
    };
    const PROOF: Self = Self {
        lease: Duration::from_secs(3),
        tool_wait: Duration::from_secs(2),
        outage: Duration::from_secs(3),
        retry_after: Duration::from_secs(1),
        answers: 20,
        call: Duration::from_millis(300),
    };
    /// The defaults of a worker.
    const PRODUCTION: Self = Self {
        lease: Duration::from_secs(30),
        tool_wait: Duration::from_secs(60),
        outage: Duration::from_secs(60),
        retry_after: Duration::from_secs(10),
        ..Self::PROOF
    };
}

impl Pace {
    fn chosen(runs: usize) -> Self {
        match runs {
            0 if is_proof() => Self::PROOF,
            0 => Self::SUITE,
            _ => Self::PRODUCTION,
        }
    }

    /// For deaths after which no lease has to expire: on a busy machine no session may change its worker.
    fn patient(self) -> Self {
        Self {
            lease: self.lease.max(PATIENT_LEASE),
            ..self
        }
    }
}

/// The measurements of one run of a death.
struct Measured {
    what: &'static str,
    times: Vec<Duration>,
}

impl Measured {
    fn new(what: &'static str, times: Vec<Duration>) -> Self {
        Self { what, times }
    }

    fn one(what: &'static str, time: Duration) -> Self {
        Self::new(what, vec![time])
    }
}

/// One death, and how it is run.
struct Death {
    name: &'static str,
    run: fn(Pace) -> LocalBoxFuture<'static, Vec<Measured>>,
    /// The tests of the suite in which the same part dies at more points of time.
    elsewhere: Option<&'static str>,
}

macro_rules! deaths {
    ($($name:literal => $run:path $(, also in $elsewhere:literal)?;)+) => {
        [$(Death {
            name: $name,
            run: |pace| $run(pace).boxed_local(),
            elsewhere: [$($elsewhere)?].first().copied(),
        }),+]
    };
}

fn deaths() -> Vec<Death> {
    deaths![
        "worker killed (kill -9)" => workers::killed;
        "worker killed and started again in its pod" => workers::restarted, also in "faults::restart";
        "worker stopped (SIGTERM)" => workers::terminated, also in "faults::survive, proofs::load::rollout";
        "worker frozen, then continued" => workers::frozen, also in "faults::survive";
        "every worker killed, a new one later" => workers::all_killed, also in "faults::survive";
        "alert that kills each worker that reads it" => workers::poisoned, also in "faults::poison";
        "broker killed and restarted" => broker::restarted, also in "proofs::load::outages";
        "broker gone" => broker::gone;
        "queue full" => broker::queue_full;
        "timeline stream full" => broker::timeline_full;
        "database killed and restarted" => database::restarted, also in "proofs::load::outages";
        "database gone" => database::gone;
        "disk of the database full" => database::disk_full;
        "clock of the database jumps by an hour" => database::clock_jumps;
        "LLM service killed in the middle of answers" => models::killed, also in "faults::survive";
        "LLM service gone" => models::gone, also in "proofs::load::outages";
        "provider refuses twice (429 with a delay)" => models::rate_limited;
        "provider fails three times (5xx)" => models::failing;
        "tool server killed during a call (stdio)" => tools::stdio_killed, also in "faults::survive, faults::side_effects";
        "tool server gone (HTTP)" => tools::http_gone;
        "receiver killed and restarted" => producers::receiver_killed;
        "everything killed at once" => everything::killed;
    ]
    .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_death_delays_investigations_by_a_known_time_and_loses_nothing() {
    let runs: usize = from_env("TARSY_DEATHS_RUNS", 0);
    let only: String = from_env("TARSY_DEATHS_ONLY", String::new());
    let pace = Pace::chosen(runs);
    let began = Instant::now();
    let is_named = |death: &Death| only.split(',').any(|part| death.name.contains(part));
    let in_suite =
        |death: &Death| death.elsewhere.is_none() || !only.is_empty() || runs > 0 || is_proof();
    let (chosen, left_out): (Vec<_>, Vec<_>) =
        deaths().into_iter().filter(is_named).partition(in_suite);
    for Death {
        name, elsewhere, ..
    } in left_out
    {
        println!(
            "left to the proof: {name}; also in {}",
            elsewhere.unwrap_or_default()
        );
    }
    let runs = runs.max(1);
    println!(
        "runs of each death: {runs}; lease {:?}, outages {:?}",
        pace.lease, pace.outage
    );
    println!("{:<62} {:>9} {:>9} {:>6}", "", "median", "worst", "count");
    let mut measured = pin!(
        stream::iter(chosen)
            .map(|death| measure(death, pace, runs))
            .buffered(by_depth("TARSY_DEATHS_AT_ONCE", AT_ONCE, AT_ONCE_IN_PROOF))
    );
    while let Some(lines) = measured.next().await {
        println!("{lines}");
    }
    println!("all in {:.0?}", began.elapsed());
}

/// Runs a death several times; returns its lines of the table.
async fn measure(death: Death, pace: Pace, runs: usize) -> String {
    let mut measured: Vec<Measured> = Vec::new();
    for _ in 0..runs {
        for new in (death.run)(pace).await {
            match measured.iter_mut().find(|known| known.what == new.what) {
                Some(known) => known.times.extend(new.times),
                None => measured.push(new),
            }
        }
    }
    let lines = measured.into_iter().map(|Measured { what, times }| {
        let (count, figures) = (times.len(), Figures::from_iter(times));
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        let (median, worst) = if count == 0 {
            Default::default()
        } else {
            (seconds(figures.median()), seconds(figures.worst()))
        };
        format!("\n  {what:<60} {median:>9} {worst:>9} {count:>6}")
    });
    death.name.to_owned() + &lines.collect::<String>()
}
