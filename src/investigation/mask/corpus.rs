//! The corpus of `tests/fixtures/secrets` against the mask.

#[path = "../../../tests/it/support/seeds.rs"]
mod seeds;

use seeds::{LAYOUTS, look_alikes, seeds};

#[test]
fn the_corpus_has_its_size_and_every_layout_shows_every_seed() {
    let seeds = seeds();
    assert!(seeds.len() >= 300 && LAYOUTS.len() == 12 && look_alikes().len() >= 200);
    let lost = seeds.iter().flat_map(|seed| LAYOUTS.iter().map(move |layout| (seed, layout)));
    let lost = lost.filter(|(seed, layout)| seed.shown_in(&(layout.of)(&seed.text)).is_none());
    let lost: Vec<String> = lost.map(|(seed, layout)| format!("{} / {}", seed.name, layout.name)).collect();
    assert_eq!(lost, Vec::<String>::new());
}
