//! Finds the secrets of all seeds at once, because the texts in which they are searched are long.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::AhoCorasick;

use crate::support::seeds::Seed;

/// The number of bytes before and after a secret in an excerpt.
const AROUND: usize = 120;

pub(crate) struct SeedSearch<'a> {
    names: Vec<&'a str>,
    secrets: AhoCorasick,
}

impl<'a> SeedSearch<'a> {
    pub(crate) fn new(seeds: impl IntoIterator<Item = &'a Seed>) -> Self {
        let of = |seed: &'a Seed| {
            seed.secrets
                .iter()
                .map(|secret| (seed.name.as_str(), secret))
        };
        let (names, secrets): (Vec<_>, Vec<_>) = seeds.into_iter().flat_map(of).unzip();
        Self {
            names,
            secrets: AhoCorasick::new(secrets).unwrap(),
        }
    }

    /// The names of the seeds of which one of these readings shows a secret, with the text around it.
    pub(crate) fn excerpts<'t>(
        &self,
        readings: impl IntoIterator<Item = &'t String>,
    ) -> BTreeMap<&'a str, &'t str> {
        let mut found = BTreeMap::new();
        for reading in readings {
            for hit in self.secrets.find_overlapping_iter(reading) {
                let start = reading.floor_char_boundary(hit.start().saturating_sub(AROUND));
                let end = reading.ceil_char_boundary(hit.start() + AROUND);
                found
                    .entry(self.names[hit.pattern().as_usize()])
                    .or_insert_with(|| &reading[start..end]);
            }
        }
        found
    }

    /// The names of the seeds of which one of these readings shows a secret.
    pub(crate) fn names<'t>(
        &self,
        readings: impl IntoIterator<Item = &'t String>,
    ) -> BTreeSet<&'a str> {
        self.excerpts(readings).into_keys().collect()
    }
}
