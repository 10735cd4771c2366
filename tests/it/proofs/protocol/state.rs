//! The state of the model: rows of the store, jobs, subjects, workers. Two workers, at most two alerts of one
//! fingerprint; an alert and the session that it opens have one id, as in the store.

/// Rows of `alerts`.
pub(super) const ALERTS: usize = 2;
/// Processes.
pub(super) const WORKERS: usize = 2;
/// Sequences of the stream of alerts.
pub(super) const SEQUENCES: usize = 5;
/// The last checkpoint is the end of the session.
pub(super) const CHECKPOINTS: u8 = 2;

/// An alert, its session, its timeline subject.
pub(super) type Id = u8;

/// A row of `timeline_events`; its number is its place in the list, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Event {
    Started,
    Resumed,
    Work(u8),
    AlertJoined(Id),
    Joined,
    Ended,
    /// A number that was taken from the counter, but that no row has.
    Missing,
}

/// The column `alerts.disposition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Disposition {
    /// The alert has no row.
    Unknown,
    Undecided,
    Opened,
    Joined(Id),
    Dead,
}

/// The reason why a running session has to end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stop {
    Cancel,
    Deadline,
}

/// The row in `alerts`, the row in `alert_sessions` if the alert opened one, and their events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) disposition: Disposition,
    /// Deliveries that began to prepare an undecided alert (`alerts.attempts`).
    pub(super) reads: u8,
    /// `alerts.stream_sequence`.
    pub(super) sequence: u8,
    /// The session is `running`.
    pub(super) open: bool,
    pub(super) epoch: u8,
    /// `lease_expires_at` has not passed.
    pub(super) leased: bool,
    /// `lease_owner` is null: the last owner released the session.
    pub(super) released: bool,
    /// Owners at the current checkpoint that have not released the session, including the current one.
    pub(super) attempts: u8,
    pub(super) checkpoint: u8,
    pub(super) stop: Option<Stop>,
    /// A dead letter has to be stored before the settlement.
    pub(super) owes: bool,
    pub(super) settled: bool,
    /// Each event with the epoch that wrote it.
    pub(super) events: Vec<(Event, u8)>,
    /// History, not a column: the alert joined a session that was being cancelled.
    pub(super) joined_too_late: bool,
}

impl Row {
    const NONE: Self = Self {
        disposition: Disposition::Unknown,
        reads: 0,
        sequence: 0,
        open: false,
        epoch: 0,
        leased: false,
        released: false,
        attempts: 0,
        checkpoint: 0,
        stop: None,
        owes: false,
        settled: false,
        events: Vec::new(),
        joined_too_late: false,
    };

    /// No further event follows.
    pub(super) fn over(&self) -> bool {
        match self.disposition {
            Disposition::Unknown | Disposition::Undecided => false,
            Disposition::Opened => !self.open,
            Disposition::Joined(_) | Disposition::Dead => true,
        }
    }

    pub(super) fn last_number(&self) -> u8 {
        u8::try_from(self.events.len()).expect("few events")
    }
}

/// A message of the stream of alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) alert: Id,
    /// The broker has delivered the job to a worker and waits for the answer.
    pub(super) delivered: bool,
}

/// The subject of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    /// Numbers and events as published.
    pub(super) messages: Vec<(u8, Event)>,
    /// The sequence of the last message ever stored. A purge does not reset it.
    stored: u8,
}

impl Subject {
    /// The number of the last event on the stream, 0 for none.
    pub(super) fn tail(&self) -> u8 {
        self.messages.last().map_or(0, |message| message.0)
    }

    /// The sequence that the next publish has to expect as the last one.
    pub(super) fn last_sequence(&self) -> u8 {
        if self.messages.is_empty() {
            0
        } else {
            self.stored
        }
    }

    /// Returns `false` for error 10071: the message expects another sequence.
    pub(super) fn publish(&mut self, message: Message) -> bool {
        let accepted = message.expected == self.last_sequence();
        if accepted {
            self.stored += 1;
            self.messages.push((message.number, message.event));
        }
        accepted
    }
}

/// An event in flight to its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Message {
    pub(super) subject: Id,
    pub(super) number: u8,
    pub(super) event: Event,
    pub(super) expected: u8,
}

/// A checkpoint in flight to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Checkpoint {
    pub(super) session: Id,
    pub(super) epoch: u8,
    pub(super) from: u8,
}

/// The step of a worker. `sequence` is the delivery that it will answer; the sweeper's work has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Step {
    Idle,
    /// The worker has received a message and not acted on it yet.
    Received {
        sequence: u8,
        alert: Id,
    },
    /// The delivery is counted, and the worker decodes the body.
    Preparing {
        sequence: u8,
        alert: Id,
    },
    /// The worker has read the open session of the fingerprint and acts on it next; only when a rule is switched off.
    Looked {
        sequence: u8,
        alert: Id,
        target: Option<Id>,
    },
    /// The worker owns the session, or believes that it does.
    Running {
        sequence: Option<u8>,
        session: Id,
        epoch: u8,
        checkpoint: u8,
        ending: bool,
    },
    /// The session is released; the worker returns the message next.
    Releasing {
        sequence: u8,
    },
    /// The worker publishes the remaining events and the dead letter.
    Settling {
        sequence: Option<u8>,
        alert: Id,
    },
    /// Everything is settled; the worker acknowledges the message next.
    Acknowledging {
        sequence: u8,
    },
}

impl Step {
    /// The delivery for which this worker sends heartbeats.
    pub(super) fn sequence(self) -> Option<u8> {
        match self {
            Self::Idle => None,
            Self::Received { sequence, .. }
            | Self::Preparing { sequence, .. }
            | Self::Looked { sequence, .. }
            | Self::Releasing { sequence }
            | Self::Acknowledging { sequence } => Some(sequence),
            Self::Running { sequence, .. } | Self::Settling { sequence, .. } => sequence,
        }
    }
}

/// One process, which does one thing at a time. It waits while its message is in flight; a message that arrives after
/// later ones is a late publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Worker {
    pub(super) step: Step,
    pub(super) sending: Option<Message>,
}

impl Worker {
    pub(super) const IDLE: Self = Self {
        step: Step::Idle,
        sending: None,
    };
}

/// The number of times that each fault may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    /// A worker is killed.
    pub(super) crashes: u8,
    /// A lease expires although its owner is alive.
    pub(super) stalls: u8,
    /// A worker receives SIGTERM.
    pub(super) releases: u8,
    /// A message is delivered again although a worker holds it.
    pub(super) redeliveries: u8,
    /// An acknowledgement never arrives.
    pub(super) lost_acks: u8,
    /// An acknowledgement arrives at any later time.
    pub(super) late_acks: u8,
    /// A publish arrives at any later time.
    pub(super) late_publishes: u8,
    /// A checkpoint arrives at any later time, and its worker sends it again.
    pub(super) late_commits: u8,
    /// The timeline stream loses all messages.
    pub(super) timeline_losses: u8,
    /// The stream of alerts is lost and created again: its sequences start again.
    pub(super) job_losses: u8,
    /// A person requests a cancel.
    pub(super) cancels: u8,
    /// A session's deadline passes.
    pub(super) deadlines: u8,
}

/// The whole state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) rows: [Row; ALERTS],
    pub(super) jobs: [Option<Job>; SEQUENCES],
    pub(super) next_sequence: u8,
    pub(super) subjects: [Subject; ALERTS],
    pub(super) dead_letters: [bool; ALERTS],
    pub(super) workers: [Worker; WORKERS],
    pub(super) late_publish: Option<Message>,
    pub(super) late_commit: Option<Checkpoint>,
    pub(super) late_ack: Option<u8>,
    pub(super) left: Faults,
}

impl State {
    /// Every alert is queued and nothing has happened.
    pub(super) fn new(alerts: u8, left: Faults) -> Self {
        let mut state = Self {
            rows: [Row::NONE; ALERTS],
            jobs: [None; SEQUENCES],
            next_sequence: 0,
            subjects: Default::default(),
            dead_letters: [false; ALERTS],
            workers: [Worker::IDLE; WORKERS],
            late_publish: None,
            late_commit: None,
            late_ack: None,
            left,
        };
        for alert in 0..alerts {
            state.queue(alert);
        }
        state
    }

    pub(super) fn row(&self, id: Id) -> &Row {
        &self.rows[usize::from(id)]
    }

    pub(super) fn row_mut(&mut self, id: Id) -> &mut Row {
        &mut self.rows[usize::from(id)]
    }

    pub(super) fn subject(&self, id: Id) -> &Subject {
        &self.subjects[usize::from(id)]
    }

    pub(super) fn job(&self, sequence: u8) -> Option<Job> {
        self.jobs[usize::from(sequence)]
    }

    /// Appends a job; returns its sequence.
    pub(super) fn queue(&mut self, alert: Id) -> u8 {
        let sequence = self.next_sequence;
        self.jobs[usize::from(sequence)] = Some(Job {
            alert,
            delivered: false,
        });
        self.next_sequence += 1;
        sequence
    }

    pub(super) fn mark_delivered(&mut self, sequence: u8) {
        if let Some(job) = &mut self.jobs[usize::from(sequence)] {
            job.delivered = true;
        }
    }

    /// Marks a job as queued again, after a NAK or a time-out. An answer names a sequence, not an alert.
    pub(super) fn mark_queued(&mut self, sequence: u8) {
        if let Some(job) = &mut self.jobs[usize::from(sequence)] {
            job.delivered = false;
        }
    }

    /// An acknowledgement deletes the job that has this sequence.
    pub(super) fn ack(&mut self, sequence: u8) {
        self.jobs[usize::from(sequence)] = None;
    }

    /// Whether the stream has all events of this alert.
    pub(super) fn published(&self, id: Id) -> bool {
        self.subject(id).tail() >= self.row(id).last_number()
    }

    /// The session of the fingerprint that is open beside this alert.
    pub(super) fn open_beside(&self, alert: Id) -> Option<Id> {
        (0..)
            .zip(&self.rows)
            .find(|(id, row)| *id != alert && row.open)
            .map(|(id, _)| id)
    }

    /// Whether a worker runs the session under its current epoch.
    pub(super) fn owner_lives(&self, id: Id) -> bool {
        self.workers.iter().any(|worker| {
            matches!(worker.step, Step::Running { session, epoch, .. } if session == id && epoch == self.row(id).epoch)
        })
    }

    pub(super) fn held(&self, sequence: u8) -> bool {
        self.workers
            .iter()
            .any(|worker| worker.step.sequence() == Some(sequence))
    }
}
