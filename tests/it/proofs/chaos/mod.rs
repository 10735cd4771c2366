//! A chaos run: workers, broker, database, LLM service and tool servers as processes, and faults of every kind while
//! alerts of every kind arrive. Some are investigated by a model and with tools that misbehave in every way ([`odd`]).
//! At the end a checker compares each guarantee of `docs/guarantees.md` with the result. `./dev chaos` runs it for
//! people; the suite runs twenty seconds of it, with a short deadline of the investigations, and the proof ten minutes.
//!
//! `TARSY_CHAOS_MINUTES` sets the time of faults and `TARSY_CHAOS_SEED` selects them. `TARSY_CHAOS_REPORT` names a file
//! for the report (then the progress goes to standard error), `TARSY_CHAOS_LOGS` a directory for the workers' logs.
//! `TARSY_CHAOS_APPROVALS` sets the number of investigations whose calls wait for people ([`people`]): then almost all
//! are of this kind, the time follows from the number, and the database fails over to a standby that lacks commits.

mod checker;
mod facts;
mod faults;
mod history;
mod load;
mod observer;
mod odd;
mod people;
mod plan;
mod report;
mod script;
mod system;
mod watchers;
mod worker;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::facts::{Facts, Limits, Tables};
use self::faults::{InjectedFault, Progress};
use self::load::{SharedLedger, TestBed};
use self::observer::Observer;
use self::plan::{Fault, Stream};
use self::system::{ATTEMPTS, MAX_ITERATIONS, System, WORKERS, session_timeout};
use crate::support::figures::{by_depth, from_env};
use crate::support::gates::Gatekeeper;
use crate::support::wait::eventually_within;

/// Length of the run in the suite.
const MINUTES: f64 = 1.0 / 3.0;
const MINUTES_IN_PROOF: f64 = 10.0;
/// The time of faults for one investigation, in a run about approvals.
const MINUTES_OF_AN_APPROVAL: f64 = 0.5 / 60.0;
/// Fewest faults of a minute.
const FAULTS_OF_A_MINUTE: f64 = 15.0;
const REPORT: &str = "TARSY_CHAOS_REPORT";
/// Time from the last fault to the end of every investigation: deadlines, and the detection of a half-open link.
const SETTLED_WITHIN: Duration = Duration::from_secs(180);
/// Without an open alert for this time, a run with failovers has ended.
const QUIET: Duration = Duration::from_secs(20);
/// See [`Limits::grace`].
const GRACE: chrono::Duration = chrono::Duration::seconds(45);

/// Prints progress: to standard error when a report is requested, otherwise into the test's output.
fn print_progress(line: &str) {
    use std::io::Write as _;
    if std::env::var_os(REPORT).is_some() {
        writeln!(std::io::stderr(), "{line}").ok();
    } else {
        println!("{line}");
    }
}

/// The number of investigations whose calls wait for people, in a run about these; 0 in any other.
fn approvals() -> usize {
    from_env("TARSY_CHAOS_APPROVALS", 0)
}

/// The duration of the faults.
fn minutes() -> f64 {
    if approvals() > 0 {
        return approvals() as f64 * MINUTES_OF_AN_APPROVAL;
    }
    by_depth("TARSY_CHAOS_MINUTES", MINUTES, MINUTES_IN_PROOF)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_guarantee_holds_under_faults_of_every_kind() {
    let minutes = minutes();
    let seed = from_env("TARSY_CHAOS_SEED", fastrand::u64(0..1_000_000));
    let command = match approvals() {
        0 => format!("./dev chaos --minutes {minutes} --seed {seed}"),
        number => format!("./dev chaos --approvals {number} --seed {seed}"),
    };
    print_progress(&format!(
        "chaos for {minutes:.2} minutes; to repeat it: {command}"
    ));
    let (system, gates) = System::start(seed).await;
    let system = Arc::new(system);
    let observer = Arc::new(Observer::start(system.database.url()));
    let bed = TestBed {
        system: Arc::clone(&system),
        observer: Arc::clone(&observer),
        shared_ledger: Arc::default(),
    };
    let (facts, settled) = run(bed, gates, seed, Duration::from_secs_f64(minutes * 60.0)).await;

    let mut violations = checker::check(&facts);
    violations.extend(checker::lacks(&facts, least(seed, minutes)));
    let run = report::Run {
        seed,
        minutes,
        command,
        workers: WORKERS,
        settled,
    };
    let page = report::page(&run, &facts, &violations);
    match std::env::var_os(REPORT) {
        Some(path) => std::fs::write(path, page).unwrap(),
        None => println!("{page}"),
    }
    assert!(
        violations.is_empty(),
        "seed {seed}: {} violations of a guarantee: the report has the histories",
        violations.len()
    );
    assert!(
        facts.faults.len() as f64 >= FAULTS_OF_A_MINUTE * minutes,
        "there were too few faults"
    );
}

/// The least that a run about approvals, or any other, has to do.
fn least(seed: u64, minutes: f64) -> checker::Least {
    let run = Duration::from_secs_f64(minutes * 60.0);
    let mut planned = Vec::new();
    match approvals() {
        0 => checker::Least {
            asking: 1,
            channels: 1,
            fail_overs: 0,
        },
        number => {
            plan::fail_overs(&mut planned, seed, run);
            checker::Least {
                // Emptied streams and failovers lose some alerts before they ask.
                asking: number - number / 10,
                channels: 3.min(number),
                fail_overs: planned.len(),
            }
        }
    }
}

/// Runs load and faults, waits until all sessions have ended, and reads the facts.
async fn run(bed: TestBed, gates: Gatekeeper, seed: u64, run: Duration) -> (Facts, Duration) {
    let TestBed {
        system,
        shared_ledger,
        ..
    } = bed.clone();
    let (end, decided) = (CancellationToken::new(), CancellationToken::new());
    let everything = Arc::new(Mutex::new(watchers::Everything::new()));
    let reader = tokio::spawn(watchers::read_everything(
        system.nats_url.clone(),
        Arc::clone(&everything),
        end.clone(),
    ));
    let deadly = tokio::spawn(kill_at_gates(Arc::clone(&system), gates, end.clone()));
    let (watched, sessions) = mpsc::unbounded_channel();
    let following = tokio::spawn(watchers::follow(Arc::clone(&system), sessions));
    let began = Instant::now();
    let publishing = tokio::spawn(load::run(bed.clone(), seed, began + run, watched));
    let deciding = tokio::spawn(people::decide(Arc::clone(&system), seed, decided.clone()));
    let mut planned = plan::faults(seed, run, WORKERS);
    if approvals() > 0 {
        plan::fail_overs(&mut planned, seed, run);
    }
    let (all, (over, mut overs), idle) =
        (planned.len(), watch::channel(0), CancellationToken::new());
    let settling = async {
        publishing.await.expect("the load");
        overs
            .wait_for(|count| *count == all)
            .await
            .expect("the faults");
        let last = Instant::now();
        system.mend();
        let wrong = settle(&system, &shared_ledger).await;
        print_progress(&format!(
            "{:>6.1} s  every alert is settled",
            began.elapsed().as_secs_f64()
        ));
        idle.cancel();
        (wrong, last.elapsed())
    };
    let (faults, (mut wrong, settled)) = tokio::join!(
        faults::run(
            &bed,
            planned,
            began,
            Progress {
                ended: over,
                idle: idle.clone()
            }
        ),
        settling
    );
    let watched = following.await.expect("the watchers");
    decided.cancel();
    let casts = deciding.await.expect("the voters");
    let pending = people::unrecorded(&system).await;
    for worker in &system.workers {
        worker.end().await;
    }
    end.cancel();
    reader.await.expect("the reader");
    deadly.await.expect("the gates");
    let (deaths, of_workers) = {
        let ledger = system.ledger.lock().unwrap();
        (ledger.deaths.clone(), ledger.wrong.clone())
    };
    wrong.extend(of_workers);
    let shown = std::mem::take(&mut *everything.lock().unwrap());
    let read = Read {
        faults,
        deaths,
        wrong,
        watched,
        shown,
        casts,
        pending,
    };
    (facts(&system, &shared_ledger, read).await, settled)
}

/// Facts that were gathered during the run.
struct Read {
    faults: Vec<InjectedFault>,
    deaths: Vec<DateTime<Utc>>,
    wrong: Vec<String>,
    watched: Vec<facts::Watched>,
    shown: watchers::Everything,
    casts: Vec<people::Cast>,
    /// Messages of people that no worker has recorded.
    pending: u64,
}

async fn facts(system: &System, shared_ledger: &SharedLedger, read: Read) -> Facts {
    let Tables {
        alerts,
        sessions,
        entries,
        events,
    } = Tables::read(system).await;
    let Read {
        faults,
        deaths,
        wrong,
        mut watched,
        shown,
        casts,
        pending,
    } = read;
    let length = |events: &Vec<facts::Event>| u32::try_from(events.len()).unwrap_or(u32::MAX);
    let over = alerts
        .keys()
        .filter_map(|id| Some((*id, length(events.get(id)?))))
        .collect();
    watched.extend(watchers::follow_late(system, &over).await);
    let empties =
        |fault: Fault| matches!(fault, Fault::Purge(Stream::Timeline) | Fault::LoseStreams);
    let emptied = faults
        .iter()
        .filter(|one| empties(one.fault))
        .map(|one| (one.from, one.until))
        .collect();
    let session_timeout = chrono::Duration::from_std(session_timeout()).unwrap();
    let limits = Limits {
        attempts: ATTEMPTS,
        iterations: MAX_ITERATIONS,
        session_timeout,
        grace: GRACE,
    };
    let ledger = std::mem::take(&mut *shared_ledger.ledger.lock().unwrap());
    Facts {
        limits,
        ledger,
        alerts,
        sessions,
        entries,
        events,
        shown,
        on_stream: watchers::on_stream(system).await,
        emptied,
        watched,
        letters: watchers::letters(system).await,
        model_calls: facts::model_calls(system),
        tool_calls: facts::tool_calls(system),
        faults,
        deaths,
        wrong,
        odd: system.odd.facts(),
        people: people::read(system, casts, pending),
    }
}

/// Kills the worker that investigates a deadly alert, at each request to the model.
async fn kill_at_gates(system: Arc<System>, mut gates: Gatekeeper, end: CancellationToken) {
    let mut killing = JoinSet::new();
    loop {
        let arrived = tokio::select! {
            () = end.cancelled() => return,
            arrived = gates.arrival() => arrived,
        };
        let system = Arc::clone(&system);
        killing.spawn(async move {
            let execution = arrived
                .detail
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned();
            let limit = Instant::now() + session_timeout();
            // The session has no owner at the moment, or the database is unavailable.
            while !system.kill_owner_of(&execution).await && Instant::now() < limit {
                tokio::time::sleep(Duration::from_millis(200)).await; // pacing of tries
            }
            // The call is never answered.
            arrived.fail().await;
        });
    }
}

/// Waits until every known alert is settled and every worker is ready. Returns what is missing at the time limit.
async fn settle(system: &System, shared_ledger: &SharedLedger) -> Vec<String> {
    let mut wrong = Vec::new();
    let known = "(SELECT count(*)::text FROM alerts)";
    let left = "(SELECT count(*)::text FROM alerts WHERE settled_at IS NULL)";
    let sent = {
        let ledger = shared_ledger.ledger.lock().unwrap();
        ledger.sent.len() - ledger.lost_with_the_stream.len()
    };
    let limit = Instant::now() + SETTLED_WITHIN;
    let mut quiet = Instant::now();
    loop {
        let number = |sql: &str| system.ask(sql).and_then(|text| text.parse::<usize>().ok());
        if number(left) != Some(0) {
            quiet = Instant::now();
        }
        // The alerts that a failover lost are known from nowhere.
        let may_be_lost = approvals() > 0 && quiet.elapsed() > QUIET;
        if number(left) == Some(0)
            && (may_be_lost || number(known).is_some_and(|known| known >= sent))
        {
            break;
        }
        if Instant::now() > limit {
            wrong.push(format!(
                "{:?} alerts are not over {SETTLED_WITHIN:?} behind the last fault",
                number(left)
            ));
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await; // pacing of looks
    }
    for worker in &system.workers {
        let limit = Duration::from_secs(60);
        eventually_within(limit, "every worker is ready again", async || {
            worker.takes_work().await
        })
        .await;
    }
    wrong
}
