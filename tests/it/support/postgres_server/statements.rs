//! The statements and connections of workers in the log of a Postgres server.

use std::collections::BTreeMap;

/// The settings of a server whose log is read here.
pub(crate) const LOGGED: [&str; 4] = [
    "log_statement=all",
    "log_connections=on",
    "log_disconnections=on",
    "log_line_prefix=%a|",
];

/// The first words of statements that no investigation causes.
const BACKGROUND: [&str; 6] = [
    "A small write: shows whether",
    "Renews the leases of a worker",
    "Finds orphaned alerts and sessions",
    "The newest settled sessions before a time",
    "The texts of a session in which people search",
    "Writes all words of an ended session",
];
/// The first words of statements of a new connection, which is counted by itself. A connection is opened when more
/// statements than ever run at the same time.
const OPENING: [&str; 2] = ["SET ", "SELECT s.system_identifier"];
/// Enough of a statement to recognise it.
const WORDS: usize = 48;

/// The number of statements of workers by their first words, without those of background tasks and of new connections.
pub(crate) fn by_kind(log: &str) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::<String, usize>::new();
    for line in of_workers(log) {
        let Some((_, sql)) = line
            .split_once("execute ")
            .and_then(|(_, rest)| rest.split_once(": "))
        else {
            continue;
        };
        let words: String = sql.trim_start_matches("-- ").chars().take(WORDS).collect();
        if !BACKGROUND
            .iter()
            .chain(&OPENING)
            .any(|start| words.starts_with(start))
        {
            *kinds.entry(words).or_default() += 1;
        }
    }
    kinds
}

/// The connections that workers have opened and closed.
pub(crate) fn connections(log: &str) -> [usize; 2] {
    // A new connection has no name in the prefix of its line.
    let is_opened = |line: &&str| {
        line.contains("connection authorized") && line.contains("application_name=tarsy ")
    };
    let opened = log.lines().filter(is_opened).count();
    [
        opened,
        of_workers(log)
            .filter(|line| line.contains("disconnection:"))
            .count(),
    ]
}

fn of_workers(log: &str) -> impl Iterator<Item = &str> {
    log.lines()
        .filter_map(|line| line.split_once('|'))
        .filter(|(name, _)| name.starts_with("tarsy "))
        .map(|(_, rest)| rest)
}
