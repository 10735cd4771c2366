//! Skills: texts of operators about how to look at something. An agent has some in its prompt, and loads others.
//!
//! A plan has the hashes of the texts, which the store keeps, so that a session loads the text that its list described,
//! whatever the directories have meanwhile.

mod hash;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use hash::TextHash;

/// The longest name.
pub const MAX_NAME_BYTES: usize = 64;

/// A text of a skill with its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillText {
    pub hash: TextHash,
    /// The masked text.
    pub text: String,
}

impl SkillText {
    /// The text with its hash.
    pub fn new(text: String) -> Self {
        Self {
            hash: TextHash::new(&text),
            text,
        }
    }
}

/// A skill as it was read from a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// 1 to 64 of `a-z0-9-`.
    pub name: String,
    /// One line: when it helps, and with which work.
    pub description: String,
    pub body: SkillText,
    /// The texts below `references/` by their paths in it.
    pub files: BTreeMap<String, SkillText>,
}

impl Skill {
    /// The reference that a plan has.
    pub fn reference(&self) -> SkillRef {
        let files = self.files.iter().map(|(path, text)| SkillFileRef {
            path: path.clone(),
            sha256: text.hash,
        });
        SkillRef {
            name: self.name.clone(),
            sha256: self.body.hash,
            bytes: u32::try_from(self.body.text.len()).unwrap_or(u32::MAX),
            files: files.collect(),
        }
    }

    pub fn texts(&self) -> impl Iterator<Item = &SkillText> {
        std::iter::once(&self.body).chain(self.files.values())
    }
}

/// A skill that an agent may load; its description is in the system message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRef {
    pub name: String,
    /// The hash of the text.
    pub sha256: TextHash,
    /// The length of the text.
    pub bytes: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SkillFileRef>,
}

/// One of the texts below `references/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFileRef {
    /// The path below `references/`.
    pub path: String,
    pub sha256: TextHash,
}

/// Whether a text can be the name of a skill.
pub fn is_name(text: &str) -> bool {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    is_plain && (1..=MAX_NAME_BYTES).contains(&text.len())
}
