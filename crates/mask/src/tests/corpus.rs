//! The mask, applied to the corpus of secrets in `tests/fixtures/secrets`.

#[path = "../../../../tests/it/support/seeds.rs"]
mod seeds;

use std::borrow::Cow;

use seeds::{LAYOUTS, Seed, look_alikes, seeds};

use crate::Mask;

#[test]
fn the_corpus_has_its_size_and_every_layout_shows_every_seed() {
    let seeds = seeds();
    assert!(seeds.len() >= 300 && LAYOUTS.len() == 20 && look_alikes().len() >= 200);
    let lost = seeds
        .iter()
        .flat_map(|seed| LAYOUTS.iter().map(move |layout| (seed, layout)));
    let lost = lost.filter(|(seed, layout)| seed.shown_in(&(layout.of)(&seed.text)).is_none());
    let lost: Vec<String> = lost
        .map(|(seed, layout)| format!("{} / {}", seed.name, layout.name))
        .collect();
    assert_eq!(lost, Vec::<String>::new());
}

fn texts() -> impl Iterator<Item = (Seed, String, &'static str)> {
    seeds().into_iter().flat_map(|seed| {
        LAYOUTS.iter().map(move |layout| {
            let text = (layout.of)(&seed.text);
            (
                Seed {
                    name: seed.name.clone(),
                    text: seed.text.clone(),
                    secrets: seed.secrets.clone(),
                },
                text,
                layout.name,
            )
        })
    })
}

#[test]
fn no_seed_survives_masking_in_any_layout() {
    let mask = Mask::default();
    let mut passed = Vec::new();
    for (seed, text, layout) in texts() {
        let masked = mask.apply(&text);
        if let Some(secret) = seed.shown_in(&masked) {
            passed.push(format!("{layout} / {}: {secret}\n{masked}", seed.name));
        }
    }
    assert!(
        passed.is_empty(),
        "{} of {} passed:\n{}",
        passed.len(),
        texts().count(),
        passed.join("\n\n")
    );
}

#[test]
fn a_json_text_stays_json_of_the_same_shape() {
    let mask = Mask::default();
    for (seed, text, layout) in texts() {
        let Ok(before) = serde_json::from_str::<serde_json::Value>(&text) else {
            continue;
        };
        let masked = mask.apply(&text);
        let after: serde_json::Value = serde_json::from_str(&masked)
            .unwrap_or_else(|e| panic!("{layout} / {}: {e}", seed.name));
        assert_eq!(shape(&before), shape(&after), "{layout} / {}", seed.name);
        assert_eq!(
            mask.json(&before).to_string(),
            mask.json(&after).to_string(),
            "{layout} / {}",
            seed.name
        );
    }
}

/// The value with every scalar replaced by null.
fn shape(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), shape(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Value::Null,
    }
}

#[test]
fn at_most_one_look_alike_in_a_hundred_is_changed() {
    let mask = Mask::default();
    let texts = look_alikes();
    let changed: Vec<String> = texts
        .iter()
        .map(|text| mask.apply(text))
        .filter(|masked| matches!(masked, Cow::Owned(_)))
        .map(Cow::into_owned)
        .collect();
    assert!(
        changed.len() * 100 <= texts.len(),
        "{} of {}:\n{}",
        changed.len(),
        texts.len(),
        changed.join("\n")
    );
}

/// The recorded results of the drills, and manifests of Kubernetes.
fn usual_texts() -> Vec<String> {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folder = |path: std::path::PathBuf| {
        std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
    };
    let drills = folder(root.join("examples/drills")).filter(|path| path.join("evidence").is_dir());
    let results = drills.flat_map(|drill| folder(drill.join("evidence")));
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let mut texts: Vec<String> = results.map(|path| read(&path)).collect();
    texts.push(read(&root.join("tests/fixtures/secrets/manifests.yaml")));
    texts
}

#[test]
fn at_most_one_usual_line_in_a_hundred_is_changed() {
    let mask = Mask::default();
    let texts = usual_texts();
    let mut changed = Vec::new();
    for text in &texts {
        let masked = mask.apply(text);
        assert_eq!(masked.lines().count(), text.lines().count(), "{masked}");
        let lines = text
            .lines()
            .zip(masked.lines())
            .filter(|(before, after)| before != after);
        changed.extend(lines.map(|(before, after)| format!("- {before}\n+ {after}")));
    }
    let lines: usize = texts.iter().map(|text| text.lines().count()).sum();
    println!(
        "{} of {lines} lines are changed:\n{}",
        changed.len(),
        changed.join("\n")
    );
    assert!(
        lines >= 2_000 && changed.len() * 100 <= lines,
        "{} of {lines}",
        changed.len()
    );
}

#[test]
fn masking_a_masked_text_changes_nothing() {
    let mask = Mask::default();
    for (seed, text, layout) in texts() {
        let once = mask.apply(&text).into_owned();
        assert_eq!(mask.apply(&once), once, "{layout} / {}", seed.name);
    }
}
