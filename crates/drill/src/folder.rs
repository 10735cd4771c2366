//! Drills in folders of their authors.

use std::io;
use std::path::{Path, PathBuf};

use super::decisions::DecisionsError;
use super::evidence::EvidenceError;
use super::transcript::{Transcript, TranscriptError};
use super::{Drill, EVIDENCE, Recorded};
use tarsy_config::Faults;

const ALERT: &str = "alert.json";
const CONFIG: &str = "tarsy.yaml";
const TRANSCRIPT: &str = "transcript.yaml";
const EXPECTED: &str = "expected.yaml";
const RUBRIC: &str = "rubric.yaml";
const DECISIONS: &str = "decisions.yaml";

/// The player of the model in a drill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Player {
    /// The transcript of the drill.
    Recording,
    /// A real model.
    Model,
}

/// The reason why a drill cannot run.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder does not exist.
    #[error("there is no folder {}", folder.display())]
    NoFolder {
        /// The folder as it was given.
        folder: PathBuf,
    },
    /// A file that the drill needs is not there.
    #[error("{} has no {file}: {content}; docs/drills.md describes it", folder.display())]
    Missing {
        folder: PathBuf,
        file: &'static str,
        /// The content of the folder.
        content: &'static str,
    },
    /// A file cannot be read.
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    /// A transcript has a fault.
    #[error("{}: {error}", file.display())]
    Transcript {
        file: PathBuf,
        error: TranscriptError,
    },
    /// The evidence has a fault.
    #[error("{}: {error}", folder.display())]
    Evidence {
        folder: PathBuf,
        error: EvidenceError,
    },
    /// The expected result has a fault.
    #[error("{}: {error}", file.display())]
    Expected { file: PathBuf, error: String },
    /// The decisions of people have a fault.
    #[error("{}: {error}", file.display())]
    Decisions {
        file: PathBuf,
        error: DecisionsError,
    },
    /// The rubric has faults.
    #[error(transparent)]
    Rubric(#[from] Faults),
}

impl Drill {
    /// Reads the drill in `folder` for the rest of the process. [`Self::check`] says what is missing in it.
    ///
    /// # Errors
    /// When there is no such folder, or a file of it cannot be read.
    pub fn read(folder: &Path) -> Result<Self, FolderError> {
        let folder = folder.canonicalize().map_err(|_| FolderError::NoFolder {
            folder: folder.to_path_buf(),
        })?;
        let optional = |file: &Path| match std::fs::read_to_string(file) {
            Ok(text) => Ok(Some(&*text.leak())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FolderError::File {
                file: file.to_path_buf(),
                error,
            }),
        };
        let required = |file: &'static str, content: &'static str| {
            let text: Option<&'static str> = optional(&folder.join(file))?;
            text.ok_or_else(|| FolderError::Missing {
                folder: folder.clone(),
                file,
                content,
            })
        };
        let alert = required(ALERT, "the alert, as a producer publishes it")?;
        let config = required(CONFIG, "the agents, the chain and the limits")?;
        let mut transcripts: Vec<&'static str> = Vec::new();
        let files = transcript_files(&folder);
        for file in files.map_err(|error| FolderError::File {
            file: folder.clone(),
            error,
        })? {
            transcripts.extend(optional(&file)?);
        }
        let name = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        Ok(Self {
            name: name.leak(),
            alert,
            config,
            transcripts: transcripts.leak(),
            expected: optional(&folder.join(EXPECTED))?,
            rubric: optional(&folder.join(RUBRIC))?,
            decisions: optional(&folder.join(DECISIONS))?,
            recorded: Recorded::Folder(folder.leak()),
        })
    }

    /// Checks every file that an investigation by `player` needs, before anything is started. `server` is the name of
    /// the MCP server that serves the evidence.
    ///
    /// # Errors
    /// The first file that is missing or has a fault.
    pub fn check(&self, player: Player, server: &str) -> Result<(), FolderError> {
        // A drill of the program is checked by tests.
        let Some(folder) = self.folder() else {
            return Ok(());
        };
        let missing = |file, content| FolderError::Missing {
            folder: folder.to_path_buf(),
            file,
            content,
        };
        if let Err(error) = self.evidence() {
            return Err(FolderError::Evidence {
                folder: folder.join(EVIDENCE),
                error,
            });
        }
        if let Err(error) = self.decisions(server) {
            return Err(FolderError::Decisions {
                file: folder.join(DECISIONS),
                error,
            });
        }
        match player {
            Player::Recording if self.transcripts.is_empty() => Err(missing(
                TRANSCRIPT,
                "the answers of the scripted model; --provider asks a real one instead, and needs none",
            )),
            Player::Recording if self.expected.is_none() => {
                Err(missing(EXPECTED, "the result that the recording reaches"))
            }
            Player::Recording => {
                for text in self.transcripts {
                    let file = || folder.join(TRANSCRIPT);
                    Transcript::parse(text).map_err(|error| FolderError::Transcript {
                        file: file(),
                        error,
                    })?;
                }
                let expected = self.expected();
                expected.map_err(|error| FolderError::Expected {
                    file: folder.join(EXPECTED),
                    error,
                })?;
                Ok(())
            }
            Player::Model if self.rubric.is_none() => Err(missing(
                RUBRIC,
                "what the report of a real model has to say, which judges it",
            )),
            Player::Model => self.rubric(server).map(|_| ()).map_err(FolderError::Rubric),
        }
    }
}

/// The transcripts in a folder, sorted by name: of a drill `transcript.yaml` and `transcript.<agent>.yaml`, else every
/// `.yaml` file.
///
/// # Errors
/// When the folder cannot be read.
pub fn transcript_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let prefix = if folder.join(ALERT).is_file() {
        "transcript."
    } else {
        ""
    };
    let mut files = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    let name = |file: &Path| {
        file.file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
            .to_owned()
    };
    files.retain(|file| name(file).starts_with(prefix) && name(file).ends_with(".yaml"));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    /// A copy of the drill disk-full in a separate folder.
    fn copied() -> tempfile::TempDir {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/drills/disk-full");
        let folder = tempfile::tempdir().unwrap();
        for (from, to) in [
            (source.clone(), folder.path().to_path_buf()),
            (source.join(EVIDENCE), folder.path().join(EVIDENCE)),
        ] {
            std::fs::create_dir_all(&to).unwrap();
            for entry in std::fs::read_dir(from)
                .unwrap()
                .map(Result::unwrap)
                .filter(|entry| entry.path().is_file())
            {
                std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
        folder
    }

    #[test]
    fn a_folder_is_read_as_the_drill_of_the_program() {
        let folder = copied();
        let known = builtin("disk-full").unwrap();

        let read = Drill::read(folder.path()).unwrap();
        assert_eq!(
            (read.alert, read.config, read.transcripts),
            (known.alert, known.config, known.transcripts)
        );
        assert_eq!(
            read.evidence().unwrap().tools.len(),
            known.evidence().unwrap().tools.len()
        );
        assert_eq!(read.expected().unwrap(), known.expected().unwrap());
        for player in [Player::Recording, Player::Model] {
            read.check(player, "drill").unwrap();
        }
        assert_eq!(
            Path::new(&read.reference()),
            folder.path().canonicalize().unwrap()
        );
        assert_eq!(known.reference(), "disk-full");
    }

    #[test]
    fn what_is_missing_or_wrong_in_a_folder_is_named_before_it_runs() {
        let fault = |change: &dyn Fn(&Path), player| {
            let folder = copied();
            change(folder.path());
            let checked = Drill::read(folder.path()).and_then(|drill| drill.check(player, "drill"));
            checked.unwrap_err().to_string()
        };
        let remove = |file: &'static str| {
            move |folder: &Path| std::fs::remove_file(folder.join(file)).unwrap()
        };

        for (file, player) in [
            (ALERT, Player::Recording),
            (CONFIG, Player::Model),
            (TRANSCRIPT, Player::Recording),
            (EXPECTED, Player::Recording),
            (RUBRIC, Player::Model),
        ] {
            let said = fault(&remove(file), player);
            assert!(said.contains(&format!(" has no {file}: ")), "{said}");
        }
        for (file, player) in [
            ("evidence/evidence.yaml", Player::Model),
            (TRANSCRIPT, Player::Recording),
            (EXPECTED, Player::Recording),
            (RUBRIC, Player::Model),
        ] {
            let said = fault(
                &|folder: &Path| std::fs::write(folder.join(file), "a: [").unwrap(),
                player,
            );
            assert!(said.contains(file.rsplit('/').next().unwrap()), "{said}");
        }
        let decided = fault(
            &|folder: &Path| std::fs::write(folder.join(DECISIONS), "decision: []").unwrap(),
            Player::Recording,
        );
        assert!(
            decided.contains("decisions.yaml: top level: unknown field `decision`"),
            "{decided}"
        );
        assert!(
            fault(&remove("evidence/disk_usage.txt"), Player::Model).contains("disk_usage.txt")
        );
        assert!(
            Drill::read(Path::new("/no/such"))
                .unwrap_err()
                .to_string()
                .contains("there is no folder /no/such")
        );
    }

    #[test]
    fn each_player_needs_its_own_files_only() {
        let folder = copied();
        std::fs::remove_file(folder.path().join(RUBRIC)).unwrap();
        Drill::read(folder.path())
            .unwrap()
            .check(Player::Recording, "drill")
            .unwrap();
        let folder = copied();
        for file in [TRANSCRIPT, EXPECTED] {
            std::fs::remove_file(folder.path().join(file)).unwrap();
        }
        Drill::read(folder.path())
            .unwrap()
            .check(Player::Model, "drill")
            .unwrap();
    }
}
