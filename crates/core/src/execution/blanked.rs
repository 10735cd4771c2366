//! `Blanked`, the results that a note stands in the place of.

use super::entry::{Entry, LoadedSkills};
use crate::load_skill;

/// The origin of a result, as far as blanking treats it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The texts of skills.
    Skills,
    Others,
}

impl Origin {
    pub(super) fn of_entry(entry: &Entry) -> Self {
        match entry.result() {
            Some(result) if result.tool == load_skill::TOOL => Self::Skills,
            Some(_) | None => Self::Others,
        }
    }
}

/// The entry numbers up to which results are blanked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blanked {
    others: u32,
    skills: u32,
}

impl Blanked {
    /// All results up to this number.
    #[cfg(test)]
    pub(crate) fn up_to(number: u32) -> Self {
        Self {
            others: number,
            skills: number,
        }
    }

    /// The entry number up to which results are blanked, except texts of skills.
    pub fn others(self) -> u32 {
        self.others
    }

    /// Adds those of one more fact.
    pub(super) fn add(&mut self, up_to: u32, skills: LoadedSkills) {
        self.others = self.others.max(up_to);
        match skills {
            LoadedSkills::Blanked => self.skills = self.skills.max(up_to),
            LoadedSkills::Kept => {}
        }
    }

    /// Whether the result in the entry with this number is blanked.
    pub(super) fn covers(self, number: u32, entry: &Entry) -> bool {
        self.covers_result(number, Origin::of_entry(entry))
    }

    pub(super) fn covers_result(self, number: u32, origin: Origin) -> bool {
        match origin {
            Origin::Skills => number <= self.skills,
            Origin::Others => number <= self.others,
        }
    }
}
