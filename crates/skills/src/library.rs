//! `Library`, the skills of all directories, and the reasons why others are left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::directory::{self, Found};
use super::front_matter;
use tarsy_core::skills::{Skill, SkillText};
use tarsy_core::visible::visible;
use tarsy_mask::Mask;

/// The most skills.
pub(crate) const MAX_SKILLS: usize = 200;

/// The skills that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// In the order of their names.
    pub skills: Vec<SourcedSkill>,
    /// In the order of the directories.
    pub faults: Vec<SkillFault>,
}

/// A skill with what only people see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcedSkill {
    pub skill: Arc<Skill>,
    /// The file.
    pub path: PathBuf,
    /// The keys of its front matter that no model sees, with their values.
    pub shown: Vec<(String, String)>,
    /// Whether the mask has replaced a part of a text.
    pub has_secret: bool,
}

/// The reason why a skill, a file of it or a directory is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFault {
    pub path: PathBuf,
    pub why: String,
}

impl Library {
    /// Reads all directories. Texts are masked. Skills beyond `max_bytes` together are left out.
    pub fn read(directories: &[PathBuf], max_bytes: u64, mask: &Mask) -> Self {
        let mut reading = Reading {
            library: Self::default(),
            left: max_bytes,
            max_bytes,
            mask,
        };
        for directory in directories {
            match directory::found(directory) {
                Ok(found) => found.into_iter().for_each(|found| reading.add(found)),
                Err(why) => reading.fault(directory, why),
            }
        }
        let mut library = reading.library;
        library
            .skills
            .sort_by(|one, other| one.skill.name.cmp(&other.skill.name));
        library
    }

    /// The skills for the planner.
    pub fn for_plans(&self) -> Vec<Arc<Skill>> {
        let skills = self.skills.iter().map(|known| Arc::clone(&known.skill));
        skills.collect()
    }

    /// The skill of this name.
    pub fn named(&self, name: &str) -> Option<&SourcedSkill> {
        self.skills.iter().find(|known| known.skill.name == name)
    }
}

struct Reading<'a> {
    library: Library,
    /// The bytes that further skills may have.
    left: u64,
    max_bytes: u64,
    mask: &'a Mask,
}

impl Reading<'_> {
    fn fault(&mut self, path: &Path, why: String) {
        let path = path.to_owned();
        self.library.faults.push(SkillFault { path, why });
    }

    fn add(&mut self, found: Found) {
        let path = found.path.clone();
        match self.skill(found) {
            Ok(skill) => self.library.skills.push(skill),
            Err(why) => self.fault(&path, why),
        }
    }

    fn skill(&mut self, found: Found) -> Result<SourcedSkill, String> {
        let parsed = front_matter::parse(&found.name, &found.text?)?;
        if let Some(known) = self.library.named(&found.name) {
            let path = known.path.display();
            return Err(format!("a second skill {}: {path} is used", found.name));
        }
        if self.library.skills.len() >= MAX_SKILLS {
            return Err(format!("there are {MAX_SKILLS} skills already"));
        }
        let of_files = found.files.iter().map(|file| file.text.len());
        let bytes = parsed.body.len() + of_files.sum::<usize>();
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if bytes > self.left {
            return Err(format!(
                "all skills together would have more than {} bytes (skills.max_bytes)",
                self.max_bytes
            ));
        }
        self.left -= bytes;
        for why in found.file_faults {
            self.fault(&found.path, format!("references/{why}"));
        }
        let mut has_secret = false;
        let mut masked = |text: &str| {
            let masked = self.mask.apply(text).into_owned();
            has_secret |= masked != text;
            masked
        };
        let description = masked(&parsed.description);
        let body = SkillText::new(masked(&parsed.body));
        let mut files = BTreeMap::new();
        for file in found.files {
            let text = masked(&visible(&file.text));
            files.insert(visible(&file.path), SkillText::new(text));
        }
        let shown = parsed.shown.into_iter();
        let shown = shown.map(|(key, value)| (key, masked(&value))).collect();
        let skill = Skill {
            name: found.name,
            description,
            body,
            files,
        };
        Ok(SourcedSkill {
            skill: Arc::new(skill),
            path: found.path,
            shown,
            has_secret,
        })
    }
}
