//! The exit codes of the commands.

use std::process::ExitCode;

use tarsy_core::timeline::EventType;

/// The exit codes of every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success; for `watch`: the investigation completed.
    Done = 0,
    /// Failure; for `watch`: the investigation ended without an analysis.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The investigation is still running at `--timeout`; for `approvals`: the decision does not count.
    StillRunning = 3,
    /// The report of a real model in a drill is not solved.
    NotSolved = 4,
    /// A decision or a verdict was sent, and no worker has recorded it yet (`EX_TEMPFAIL` of sysexits.h).
    NotRecorded = 75,
    /// `tarsy.yaml` is wrong (`EX_CONFIG` of sysexits.h).
    BadConfiguration = 78,
    /// Ctrl-C (128 + SIGINT).
    Interrupted = 130,
    /// The reader closed the output (128 + SIGPIPE).
    OutputClosed = 141,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The exit code for a session whose last event is `end`; `None` if the session is not over. A `joined` event is no
    /// end: the session that the alert joined decides.
    pub fn of_end(end: &EventType) -> Option<Self> {
        if !end.is_end() || *end == EventType::Joined {
            return None;
        }
        let completed = *end == EventType::SessionCompleted;
        Some(if completed { Self::Done } else { Self::Failed })
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_completed_investigation_exits_with_zero() {
        let end = |word: &str| Exit::of_end(&EventType::from(word.to_owned())).map(Exit::code);
        assert_eq!(end("session_completed"), Some(0));
        for failed in ["session_failed", "session_cancelled", "session_timed_out"] {
            assert_eq!(end(failed), Some(1), "{failed}");
        }
        for open in ["final_analysis", "error", "joined", "of_a_later_version"] {
            assert_eq!(end(open), None, "{open}");
        }
        assert_eq!(
            [
                Exit::Usage,
                Exit::StillRunning,
                Exit::NotSolved,
                Exit::NotRecorded,
                Exit::BadConfiguration,
                Exit::Interrupted,
                Exit::OutputClosed
            ]
            .map(Exit::code),
            [2, 3, 4, 75, 78, 130, 141]
        );
    }
}
