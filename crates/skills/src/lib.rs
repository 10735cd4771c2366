//! Skills: reads the texts of operators from directories, checks them, and reads them again when they change.
//!
//! A directory has `<name>/SKILL.md` with further texts in `<name>/references/`, or `<name>.md`, as the keys of a
//! `ConfigMap`. Each text begins with front matter in YAML. A skill that cannot be used is left out, with the reason:
//! no worker waits for it. Nothing in a directory is ever run.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod front_matter;
mod directory;
mod library;
mod findings;
mod named_tools;
mod current;

pub use current::Skills;
pub use findings::findings;
pub use library::{Library, SkillFault, SourcedSkill};
pub use named_tools::missing_tools;

#[cfg(test)]
mod tests;
