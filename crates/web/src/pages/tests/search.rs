//! Tests of the search in a session: its matches, and how far it went.

use maud::html;

use crate::pages::search::{Search, search};
use crate::testing::data::{id, story};
use crate::testing::markup::{check, texts};
use tarsy_core::search::Literal;
use tarsy_reports::{FoundEvent, FoundEvents, Match, Place};

/// The page of a search for a text among all events of a story, which ends at event 9.
fn shown(text: &str, found: Option<&FoundEvents>) -> String {
    let page = Search {
        id: id("00000010"),
        last: 21,
        text,
        after: 0,
        problem: None,
        found,
    };
    html! { main { (search(&page)) } }.into_string()
}

fn found(text: &str) -> FoundEvents {
    let text = Literal::parse(text).unwrap().unwrap();
    let events = story().into_iter().take(9).filter_map(|event| {
        let excerpt = text.pieces(&event.content);
        excerpt.iter().any(|piece| piece.is_match).then(|| {
            let found = Match {
                event: event.session_seq,
                place: Place::Content,
                excerpt,
                cut_before: true,
                cut_after: false,
            };
            FoundEvent { event, found }
        })
    });
    FoundEvents {
        events: events.collect(),
        searched_to: 9,
        is_complete: false,
    }
}

#[test]
fn each_event_has_its_link_and_its_marks_and_the_page_says_how_far_it_went() {
    let found = found("CHECKOUT");
    assert!(!found.events.is_empty());
    let page = shown("CHECKOUT", Some(&found));
    assert_eq!(check(&page).err(), None);
    for each in &found.events {
        let link = format!("/s/{}/{}", id("00000010"), each.found.event);
        assert!(page.contains(&link), "{link} in {page}");
    }
    assert!(page.contains("<mark>checkout</mark>"), "{page}");
    let text = texts(&page);
    assert!(
        text.contains("Searched up to event 9 of 21.") && text.contains("Continue after it"),
        "{text}"
    );
    assert!(page.contains("search?q=CHECKOUT&amp;after=9"), "{page}");

    let whole = FoundEvents {
        events: Vec::new(),
        searched_to: 21,
        is_complete: true,
    };
    let text = texts(&shown("none", Some(&whole)));
    assert!(
        text.contains("0 events with “none”")
            && text.contains("All stored events up to 21 were searched."),
        "{text}"
    );
}
