//! The built-in drills: the pages say in each row what the terminal says. The suite investigates the two drills that
//! together have every kind of row, the proof all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tarsy_drill::{BUILTIN, Drill};

use super::driver::Browser;
use crate::support::figures::is_proof;
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::process::Tarsy;

/// Several agents with a synthesis; and one with code, searches, thoughts and texts.
const IN_SUITE: [&str; 2] = ["bad-deploy-team", "xid-wraparound"];
/// A limit against a drill that hangs: the one with the longest journal takes a minute in parallel with other tests.
const LONGEST_DRILL: Duration = Duration::from_secs(600);

/// Number, name and words of each row, with those in folded ranges.
const ROWS: &str = "(async () => {
  const wait = () => new Promise((done) => setTimeout(done, 20));
  for (let run; (run = document.querySelector('.run .open')); ) {
    run.click();
    while (run.isConnected) await wait();
  }
  return [...document.querySelectorAll('#rows > .r')].map((row) =>
    [Number(row.dataset.n), row.querySelector('.w').textContent, row.querySelector('.d').textContent]);
})()";

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line has a name, or its beginning with dots: the column of names has a fixed width.
fn has_name(terminal: &str, name: &str) -> bool {
    let cut = |at: usize| terminal.contains(&format!(" {}… ", name.get(..at).unwrap_or(name)));
    terminal.contains(name) || (12..name.len()).any(cut)
}

/// The printed lines of each event, by its number.
fn printed(lines: &str) -> BTreeMap<u64, String> {
    let mut events: BTreeMap<u64, String> = BTreeMap::new();
    for line in lines.lines() {
        let mut words = line.split_whitespace();
        let (at, number) = (
            words.next().unwrap_or_default(),
            words.next().and_then(|word| word.parse().ok()),
        );
        let number = number
            .filter(|_| at.starts_with('+'))
            .or_else(|| events.keys().next_back().copied());
        if let Some(number) = number {
            let text = events.entry(number).or_default();
            text.push(' ');
            text.push_str(&plain(line));
        }
    }
    events
}

fn drills() -> Vec<Drill> {
    let drills = BUILTIN
        .into_iter()
        .filter(|drill| is_proof() || IN_SUITE.contains(&drill.name));
    drills.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_every_drill_has_the_words_of_the_terminal() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    for drill in drills() {
        let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
        let nats_url = nats.url();
        let env = [
            ("NATS_URL", nats_url.as_str()),
            ("DATABASE_URL", database.url()),
        ];
        let mut run = Tarsy::spawn("drill", &["drill", drill.name, "--json", "--kill"], &env);
        let (code, lines) = run.finished_within(LONGEST_DRILL).await;
        assert_eq!(code, 0, "{}: {}", drill.name, run.log());
        let events: Vec<Value> = lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let session = events[0]["session_id"].as_str().unwrap().to_owned();
        let wide = [&env[..], &[("COLUMNS", "4000"), ("LANG", "C.UTF-8")]].concat();
        let (_, shown) = Tarsy::spawn("watch", &["watch", "--thinking", &session], &wide)
            .finished()
            .await;
        let shown = printed(&shown);
        let mut web = Tarsy::spawn("web", &["web", "--listen", "127.0.0.1:0"], &env);
        let address = web.ready().await;
        browser
            .open(&format!("http://{address}/sessions/{session}?view=all"))
            .await;
        let rows: Vec<(u64, String, String)> =
            serde_json::from_value(browser.eval(ROWS).await).unwrap();
        let numbers: Vec<u64> = rows.iter().map(|(number, ..)| *number).collect();
        let expected: Vec<u64> = events
            .iter()
            .filter_map(|event| event["session_seq"].as_u64())
            .collect();
        assert_eq!(numbers, expected, "{}", drill.name);
        for (number, name, said) in &rows {
            let terminal = &shown[number];
            // A long text ends in both with dots, in the terminal later. Links to open calls are of the page, and so
            // are the point between a text and the totals after it, and the arrow between a program and its output.
            let said = said.split(". Open calls:").next().unwrap_or_default();
            assert!(
                has_name(terminal, &plain(name)),
                "{}: {number}: {name:?} is not in {terminal:?}",
                drill.name
            );
            for part in said
                .trim_end_matches('…')
                .split(" · ")
                .flat_map(|part| part.split(" → "))
            {
                assert!(
                    terminal.contains(&plain(part)),
                    "{}: {number}: {part:?} is not in {terminal:?}",
                    drill.name
                );
            }
        }
    }
}
