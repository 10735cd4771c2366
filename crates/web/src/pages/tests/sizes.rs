//! Tests of the sizes of pages. `-- --nocapture` prints the figures.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::assets::{SCRIPT, STYLE};
use crate::pages::list::{List, Query, System, list};
use crate::testing::data::{at, entry, long, report, story};
use crate::testing::markup::nodes;
use tarsy_core::chain::RunStatus;

use super::shown;

fn compressed(bytes: &[u8]) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap().len()
}

#[test]
fn the_files_of_all_pages_are_small() {
    let style = compressed(STYLE.bytes());
    let script = compressed(SCRIPT.bytes());
    let lines = String::from_utf8_lossy(SCRIPT.bytes()).lines().count();
    println!("style {style} bytes gz, script {script} bytes gz in {lines} lines");
    assert!(style <= 7_000 && script <= 4_000 && lines <= 250);
}

#[test]
fn the_first_part_of_a_session_is_small() {
    let page = shown(&report(), &story());
    let first = compressed(page.first.as_bytes());
    let whole = compressed(page.whole().as_bytes());
    println!(
        "session of {} events: first part {first} bytes gz, whole {whole} bytes gz",
        story().len()
    );
    assert!(first <= 14_000);
}

#[test]
fn a_session_of_five_thousand_events_has_few_nodes() {
    let mut report = report();
    report.session.as_mut().unwrap().last_seq = 5_001;
    let begun = std::time::Instant::now();
    let page = shown(&report, &long(2_500, &"line of a result\n".repeat(140))).whole();
    println!(
        "5,001 events: {} bytes, {} nodes, rendered in {:?}",
        page.len(),
        nodes(&page),
        begun.elapsed()
    );
    assert!(nodes(&page) <= 12_000);
    assert!(page.contains("data-from=") && page.contains("Show them"));
}

#[test]
fn a_list_of_five_hundred_sessions_is_small() {
    let entries: Vec<_> = (0..500)
        .map(|number| {
            entry(
                &format!("{number:08x}"),
                &format!("Alert{number} shop/checkout"),
                RunStatus::Completed,
            )
        })
        .collect();
    let query = Query::parse(Some("since=24h"));
    let page = list(&List {
        entries: &entries,
        asked: &[],
        counts: None,
        query: &query,
        system: &System::default(),
        facets: &tarsy_reports::Facets::default(),
        faults: &[],
        hidden: &[],
        next: None,
        now: at(0),
    });
    let page = page.into_string();
    println!(
        "500 sessions: {} bytes, {} bytes gz, {} nodes",
        page.len(),
        compressed(page.as_bytes()),
        nodes(&page)
    );
    assert!(nodes(&page) <= 15_000 && compressed(page.as_bytes()) <= 40_000);
}
