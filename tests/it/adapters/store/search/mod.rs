//! A search in a session finds what a naive comparison finds, and reads a bounded part of it.

use std::time::Instant;

use tarsy_core::ids::SessionId;
use tarsy_core::search::Literal;
use tarsy_reports::{EventSearch, FoundEvents, Place};
use tarsy_store::Store;
use uuid::Uuid;

use crate::support::figures::by_depth;
use crate::support::postgres::TestDatabase;

/// Characters that patterns, case and escapes of SQL treat in a special way, and letters that are equal to others.
const CHARACTERS: [char; 24] = [
    'a', 'B', 'b', 'A', '%', '_', '\\', '\'', '"', '*', '.', '[', '<', ' ', 'ä', 'Ä', 'ß', 'ẞ',
    'Σ', 'σ', 'ς', '\u{212a}', 'K', '🦀',
];

/// A session whose events and results the test writes.
struct Written {
    database: TestDatabase,
    store: Store,
    session: SessionId,
}

impl Written {
    async fn new() -> Self {
        let database = TestDatabase::create().await;
        let session = SessionId(Uuid::now_v7());
        let sql = "INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token,
                                               worker_name, chain, fingerprint)
                     VALUES ('ID', now(), now(), '30 s', 'ID', 'w', 'default', 'f')";
        database.execute(&sql.replace("ID", &session.to_string()));
        Self {
            store: database.store(),
            database,
            session,
        }
    }

    /// Writes an event, and the stored result of its call if there is one.
    fn event(&self, number: usize, content: &str, result: Option<&str>) {
        let session = self.session;
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let content = quoted(content);
        let kind = match result {
            Some(_) => "tool_result",
            None => "llm_response",
        };
        self.database.execute(&format!(
            "INSERT INTO timeline_events (session_id, execution_id, created_at, session_seq, sequence_number, lease_epoch,
                                          event_type, status, content, metadata)
               VALUES ('{session}', '{session}', now(), {number}, {number}, 1, '{kind}', 'completed', {content},
                       jsonb_build_object('call_id', 'c{number}'))"
        ));
        if let Some(result) = result.map(quoted) {
            // Of two calls with one id, the later one counts, as for `tarsy.read_result`.
            self.database.execute(&format!(
                "INSERT INTO tool_interactions (session_id, execution_id, created_at, checkpoint, call_no, iteration,
                                                duration_ms, read_only, state, call_id, tool, arguments, result)
                   SELECT '{session}', '{session}', now(), n * 100000 + {number}, 1, 1, 1, true, 'done', 'c{number}', 't', '{{}}',
                          CASE n WHEN 1 THEN 'superseded' ELSE {result} END FROM generate_series(1, 2) n"
            ));
        }
    }

    async fn search(&self, text: &str, after: u32, limit: u32) -> FoundEvents {
        let search = EventSearch {
            session: self.session,
            after,
            limit,
            text: Literal::parse(text).unwrap().unwrap(),
        };
        self.store.search_events(search).await.unwrap()
    }
}

fn numbers(found: &FoundEvents) -> Vec<u32> {
    found.events.iter().map(|each| each.found.event).collect()
}

/// Whether two characters differ by case at most.
fn same(one: char, other: char) -> bool {
    if one.is_ascii() || other.is_ascii() {
        return one.eq_ignore_ascii_case(&other);
    }
    one.to_uppercase().eq(other.to_uppercase()) || one.to_lowercase().eq(other.to_lowercase())
}

fn contains(text: &str, wanted: &str) -> bool {
    let wanted: Vec<char> = wanted.trim().chars().collect();
    let text: Vec<char> = text.chars().collect();
    text.windows(wanted.len()).any(|part| {
        part.iter()
            .zip(&wanted)
            .all(|(one, other)| same(*one, *other))
    })
}

/// Texts that differ with each run of the generator, and are the same in each run of the test.
struct Texts(u64);

impl Texts {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit).unwrap()).unwrap()
    }

    fn text(&mut self, most: usize) -> String {
        let length = self.below(most) + 1;
        (0..length)
            .map(|_| CHARACTERS[self.below(CHARACTERS.len())])
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_finds_what_a_naive_comparison_finds() {
    let written = Written::new().await;
    let mut texts = Texts(0x9e37_79b9_7f4a_7c15);
    let mut stored = Vec::new();
    for number in 1..=60 {
        let content = texts.text(12);
        let result = (number % 3 == 0).then(|| texts.text(12));
        written.event(number, &content, result.as_deref());
        stored.push((content, result));
    }
    let mut hits = 0;
    for _ in 0..300 {
        let wanted = texts.text(3);
        if wanted.trim().is_empty() {
            continue;
        }
        let found = written.search(&wanted, 0, 100).await;
        let expected: Vec<(u32, Place)> = (1..)
            .zip(&stored)
            .filter_map(|(number, (content, result))| {
                if contains(content, &wanted) {
                    return Some((number, Place::Content));
                }
                let result = result.as_deref()?;
                contains(result, &wanted).then_some((number, Place::Result))
            })
            .collect();
        let places: Vec<(u32, Place)> = found
            .events
            .iter()
            .map(|each| (each.found.event, each.found.place))
            .collect();
        assert_eq!(places, expected, "{wanted:?} in {stored:?}");
        assert_eq!((found.searched_to, found.is_complete), (60, true));
        // Each excerpt has the match, and is the text as it is stored.
        for each in &found.events {
            let (content, result) = &stored[usize::try_from(each.found.event).unwrap() - 1];
            let text = match each.found.place {
                Place::Content => content,
                Place::Result => result.as_ref().unwrap(),
            };
            assert_eq!(&each.found.text(usize::MAX), text);
            assert!(each.found.excerpt.iter().any(|piece| piece.is_match));
        }
        hits += places.len();
    }
    assert!(hits > 500, "{hits} events were found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_continues_after_what_was_found_and_after_its_bytes() {
    let written = Written::new().await;
    let unknown = written.search("x", 0, 5).await;
    assert_eq!((unknown.searched_to, unknown.is_complete), (0, true));
    for number in 1..=7 {
        written.event(number, if number % 2 == 1 { "odd" } else { "even" }, None);
    }
    let first = written.search("ODD", 0, 2).await;
    assert_eq!(
        (numbers(&first), first.searched_to, first.is_complete),
        (vec![1, 3], 3, false)
    );
    let rest = written.search("ODD", 3, 2).await;
    assert_eq!(
        (numbers(&rest), rest.searched_to, rest.is_complete),
        (vec![5, 7], 7, true)
    );
    let none = written.search("ODD", 7, 2).await;
    assert_eq!(
        (numbers(&none), none.searched_to, none.is_complete),
        (vec![], 7, true)
    );

    // Three results of 10 MiB: one statement reads the first two of them.
    let session = written.session;
    for number in 8..=10 {
        written.event(number, "large", Some("x"));
    }
    written.database.execute(&format!(
        "UPDATE tool_interactions SET result = repeat('0123456789abcde ', 640 * 1024) || 'needle ' || call_id
         WHERE session_id = '{session}' AND result = 'x'"
    ));
    let begun = Instant::now();
    let first = written.search("NEEDLE C", 0, 5).await;
    println!("a search in 20 MiB took {:?}", begun.elapsed());
    assert_eq!(
        (numbers(&first), first.searched_to, first.is_complete),
        (vec![8, 9], 9, false)
    );
    let last = written.search("NEEDLE C", 9, 5).await;
    assert_eq!(
        (numbers(&last), last.searched_to, last.is_complete),
        (vec![10], 10, true)
    );
    let found = &last.events[0].found;
    assert!(
        found.cut_before && !found.cut_after && found.text(usize::MAX).ends_with("needle c10"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_in_ten_thousand_events_takes_seconds_at_most() {
    let written = Written::new().await;
    let events: u32 = by_depth("TARSY_SEARCH_EVENTS", 10_000, 10_000);
    let session = written.session;
    written.database.execute(&format!(
        "INSERT INTO timeline_events (session_id, execution_id, created_at, session_seq, sequence_number, lease_epoch,
                                      event_type, status, content, metadata)
           SELECT '{session}', '{session}', now(), n, n, 1, CASE n % 2 WHEN 0 THEN 'tool_result' ELSE 'llm_tool_call' END,
                  'completed', repeat('a line of Größe ' || n || chr(10), 60), jsonb_build_object('call_id', 'c' || n)
           FROM generate_series(1, {events}) n;
         INSERT INTO tool_interactions (session_id, execution_id, created_at, checkpoint, call_no, iteration, duration_ms,
                                        read_only, state, call_id, tool, arguments, result)
           SELECT '{session}', '{session}', now(), n, 1, 1, 1, true, 'done', 'c' || n, 't', '{{}}',
                  repeat('a whole result ' || n || chr(10), 60)
           FROM generate_series(2, {events}, 2) n;
         ANALYZE timeline_events, tool_interactions;"
    ));
    for text in ["not in any event", "GRÖẞE 9999", "a"] {
        let mut after = 0;
        let mut requests = 0;
        let mut found = 0;
        let begun = Instant::now();
        loop {
            let part = written.search(text, after, 50).await;
            requests += 1;
            found += part.events.len();
            after = part.searched_to;
            if part.is_complete || found >= 50 {
                break;
            }
        }
        let took = begun.elapsed();
        println!(
            "{text:?} in {events} events: {found} found, searched up to {after} in {requests} requests, {took:?}"
        );
        assert!(took.as_secs() < 60, "{took:?}");
        assert!(requests <= 10, "{requests}");
    }
}
