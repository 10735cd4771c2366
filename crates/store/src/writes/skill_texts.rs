//! The texts of skills: stored before a plan names them, and read when an agent loads them.

use std::collections::BTreeMap;

use diesel::prelude::*;
use diesel::sql_types::{Binary, Text};

use tarsy_core::skills::{SkillText, TextHash};
use tarsy_engine::ports::StoreError;

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::rows::nul;
use crate::statement::statement;

pub(crate) struct KeepSkillTexts {
    hashes: Vec<Vec<u8>>,
    texts: Vec<String>,
}

statement!(KeepSkillTexts, "skill_texts_keep.sql" -> (), [hashes, texts]);

pub(crate) struct ReadSkillTexts {
    hashes: Vec<Vec<u8>>,
}

statement!(ReadSkillTexts, "skill_texts.sql" -> (Binary, Text), [hashes]);

#[derive(Queryable)]
struct TextRow {
    sha256: Vec<u8>,
    text: String,
}

impl Store {
    /// Stores the texts that a plan names, before the session is opened. Those that this process has stored in the last
    /// hour are not sent again, so most sessions need no statement.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn keep_skill_texts(&self, texts: Vec<SkillText>) -> Result<(), StoreError> {
        let missing = self.kept_texts.missing(texts);
        if missing.is_empty() {
            return Ok(());
        }
        // Two workers write their rows in the same order, so that neither waits for the other in a circle.
        let rows: BTreeMap<TextHash, String> = missing
            .into_iter()
            .map(|text| (text.hash, nul::replace(text.text)))
            .collect();
        let hashes: Vec<TextHash> = rows.keys().copied().collect();
        let write = KeepSkillTexts {
            hashes: bytes(&hashes),
            texts: rows.into_values().collect(),
        };
        self.run(Operation::Skills, move |connection| {
            (&write).execute(connection)
        })
        .await?;
        self.kept_texts.add(hashes);
        Ok(())
    }

    /// The stored texts with these hashes.
    pub(crate) async fn read_skill_texts(
        &self,
        hashes: Vec<TextHash>,
    ) -> Result<BTreeMap<TextHash, String>, Error> {
        let read = ReadSkillTexts {
            hashes: bytes(&hashes),
        };
        let rows: Vec<TextRow> = self
            .run(Operation::Skills, move |connection| {
                (&read).get_results(connection)
            })
            .await?;
        let texts = rows.into_iter().map(|TextRow { sha256, text }| {
            let hash: [u8; 32] = sha256
                .try_into()
                .map_err(|_| Error::Unreadable("a hash of a skill's text".to_owned()))?;
            Ok((TextHash(hash), text))
        });
        texts.collect()
    }
}

fn bytes(hashes: &[TextHash]) -> Vec<Vec<u8>> {
    hashes.iter().map(|hash| hash.0.to_vec()).collect()
}
