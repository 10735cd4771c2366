//! The model: the possible actions of a state, and the effect of each.

use stateright::{Model, Property};

use super::properties;
use super::rules::{Bounds, Rule};
use super::state::{Checkpoint, Faults, Id, Message, SEQUENCES, State, Step, Stop, WORKERS};
use super::statements::Written;

/// The protocol, with at most one of its rules switched off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Protocol {
    pub(super) without: Option<Rule>,
    pub(super) bounds: Bounds,
    /// States that differ only in the order of the workers are one state. Traces are easier to read without this.
    pub(super) symmetric_workers: bool,
}

/// One atomic action. `worker` is an index into the list of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// The broker delivers a queued job to a worker; a worker that runs the session adopts it.
    Deliver {
        worker: usize,
        sequence: u8,
    },
    /// The next statement or answer of the worker's step.
    Next(usize),
    /// The worker ends a session that was cancelled, is past its deadline or was given up.
    End(usize),
    /// A publisher of this worker reads the last event of a subject and the next row of the table.
    Look {
        worker: usize,
        subject: Id,
    },
    /// The message with that row arrives at the subject.
    Publish(usize),
    /// The sweeper settles an ended alert or session.
    Settle {
        worker: usize,
        alert: Id,
    },
    /// The sweeper takes a session that is past its deadline.
    TakeOverdue {
        worker: usize,
        session: Id,
    },
    /// A worker that was started in the place of the dead owner continues with the session before its lease expires.
    Inherit {
        worker: usize,
        session: Id,
    },
    /// The command that cancels a session ends it.
    EndCancelled(Id),
    /// The sweeper queues an alert again.
    Requeue(Id),
    /// The body kills the worker that decodes it.
    Poisoned(usize),
    /// The lease of a dead owner expires.
    Expire(Id),
    /// The broker has waited `ack_wait` for the answer of a job.
    Redeliver(u8),
    LatePublishArrives,
    LateCommitArrives,
    LateAckArrives,
    /// This action and the following ones are faults, bounded by [`Faults`].
    Crash(usize),
    /// The sweeper queues an alert again and dies before it records this in the store.
    RequeueUnnoted(Id),
    Stall(Id),
    Release(usize),
    RedeliverHeld(u8),
    LoseAck(usize),
    DelayAck(usize),
    DelayPublish(usize),
    DelayCommit(usize),
    LoseTimeline,
    LoseJobs,
    Cancel(Id),
    PassDeadline(Id),
}

impl Action {
    /// Whether the action is a fault: a good end has to be reachable without further faults.
    pub(super) fn is_fault(self) -> bool {
        match self {
            Self::Deliver { .. }
            | Self::Next(_)
            | Self::End(_)
            | Self::Look { .. }
            | Self::Publish(_)
            | Self::Settle { .. }
            | Self::TakeOverdue { .. }
            | Self::Inherit { .. }
            | Self::Requeue(_)
            | Self::Poisoned(_)
            | Self::Expire(_)
            | Self::Redeliver(_)
            | Self::LatePublishArrives
            | Self::LateCommitArrives
            | Self::LateAckArrives => false,
            // The command may have died, so no good end relies on it.
            Self::EndCancelled(_)
            | Self::Crash(_)
            | Self::RequeueUnnoted(_)
            | Self::Stall(_)
            | Self::Release(_)
            | Self::RedeliverHeld(_)
            | Self::LoseAck(_)
            | Self::DelayAck(_)
            | Self::DelayPublish(_)
            | Self::DelayCommit(_)
            | Self::LoseTimeline
            | Self::LoseJobs
            | Self::Cancel(_)
            | Self::PassDeadline(_) => true,
        }
    }
}

impl Protocol {
    pub(super) fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// Alerts of this run.
    pub(super) fn alerts(&self) -> std::ops::Range<Id> {
        0..self.bounds.alerts
    }

    fn of_broker(&self, state: &State, actions: &mut Vec<Action>) {
        let left = state.left;
        for sequence in (0_u8..).take(SEQUENCES) {
            let Some(job) = state.job(sequence) else {
                continue;
            };
            // An owner whose lease has expired sends no heartbeats either.
            let owner_stalls = state.row(job.alert).open && !state.row(job.alert).leased;
            if job.delivered && (!state.held(sequence) || owner_stalls) {
                actions.push(Action::Redeliver(sequence));
            } else if job.delivered && left.redeliveries > 0 {
                actions.push(Action::RedeliverHeld(sequence));
            }
        }
        let late = [
            (state.late_publish.is_some(), Action::LatePublishArrives),
            (state.late_commit.is_some(), Action::LateCommitArrives),
            (state.late_ack.is_some(), Action::LateAckArrives),
            (
                left.timeline_losses > 0 && state.subjects.iter().any(|s| s.tail() > 0),
                Action::LoseTimeline,
            ),
            (
                left.job_losses > 0 && state.jobs.iter().any(Option::is_some),
                Action::LoseJobs,
            ),
        ];
        actions.extend(
            late.into_iter()
                .filter(|(possible, _)| *possible)
                .map(|(_, action)| action),
        );
    }

    fn of_store(&self, state: &State, actions: &mut Vec<Action>) {
        for id in self.alerts() {
            let row = state.row(id);
            if self.lost_its_job(state, id) {
                actions.push(Action::Requeue(id));
                if state.left.crashes > 0 {
                    actions.push(Action::RequeueUnnoted(id));
                }
            }
            if row.open && row.leased {
                if !state.owner_lives(id) {
                    actions.push(Action::Expire(id));
                } else if state.left.stalls > 0 {
                    actions.push(Action::Stall(id));
                }
            }
            if row.open && row.stop == Some(Stop::Cancel) {
                actions.push(Action::EndCancelled(id));
            }
            if row.open && row.stop.is_none() {
                if state.left.cancels > 0 {
                    actions.push(Action::Cancel(id));
                }
                if state.left.deadlines > 0 {
                    actions.push(Action::PassDeadline(id));
                }
            }
        }
    }

    fn apply(&self, state: &mut State, action: Action) {
        match action {
            Action::Deliver { worker, sequence } => self.deliver(state, worker, sequence),
            Action::Next(worker) => self.next(state, worker),
            Action::End(worker) => self.end(state, worker),
            Action::Release(worker) => {
                state.left.releases -= 1;
                self.release_session(state, worker);
            }
            Action::Look { worker, subject } => {
                state.workers[worker].sending = self.row_to_publish(state, worker, subject)
            }
            Action::Publish(worker) => self.publish(state, worker),
            Action::Settle { worker, alert } => {
                state.workers[worker].step = Step::Settling {
                    sequence: None,
                    alert,
                };
            }
            Action::TakeOverdue { worker, session } => self.take(state, worker, None, session),
            Action::Inherit { worker, session } => {
                // The statement names the dead owner: its lease counts as expired.
                state.row_mut(session).leased = false;
                self.take(state, worker, None, session);
            }
            Action::EndCancelled(session) => Self::end_cancelled(state.row_mut(session)),
            Action::Requeue(alert) => state.row_mut(alert).sequence = state.queue(alert),
            Action::Expire(session) => state.row_mut(session).leased = false,
            Action::Redeliver(sequence) => state.mark_queued(sequence),
            Action::Poisoned(worker) => state.workers[worker].step = Step::Idle,
            Action::LatePublishArrives => {
                if let Some(message) = state.late_publish.take() {
                    state.subjects[usize::from(message.subject)].publish(message);
                }
            }
            Action::LateCommitArrives => {
                if let Some(late) = state.late_commit.take() {
                    let _: Written = self.checkpoint(state.row_mut(late.session), late);
                }
            }
            Action::LateAckArrives => {
                if let Some(sequence) = state.late_ack.take() {
                    state.ack(sequence);
                }
            }
            Action::Crash(_)
            | Action::RequeueUnnoted(_)
            | Action::Stall(_)
            | Action::RedeliverHeld(_)
            | Action::LoseAck(_)
            | Action::DelayAck(_)
            | Action::DelayPublish(_)
            | Action::DelayCommit(_)
            | Action::LoseTimeline
            | Action::LoseJobs
            | Action::Cancel(_)
            | Action::PassDeadline(_) => inject_fault(state, action),
        }
    }
}

fn inject_fault(state: &mut State, action: Action) {
    let left = &mut state.left;
    match action {
        Action::Crash(worker) => {
            left.crashes -= 1;
            state.workers[worker] = super::state::Worker::IDLE;
        }
        Action::RequeueUnnoted(alert) => {
            left.crashes -= 1;
            state.queue(alert);
        }
        Action::Stall(session) => {
            left.stalls -= 1;
            state.row_mut(session).leased = false;
        }
        Action::RedeliverHeld(sequence) => {
            left.redeliveries -= 1;
            state.mark_queued(sequence);
        }
        Action::LoseAck(worker) => {
            left.lost_acks -= 1;
            state.workers[worker].step = Step::Idle;
        }
        Action::DelayAck(worker) => {
            left.late_acks -= 1;
            state.late_ack = state.workers[worker].step.sequence();
            state.workers[worker].step = Step::Idle;
        }
        Action::DelayPublish(worker) => {
            left.late_publishes -= 1;
            state.late_publish = state.workers[worker].sending.take();
        }
        Action::DelayCommit(worker) => {
            left.late_commits -= 1;
            if let Step::Running {
                session,
                epoch,
                checkpoint,
                ..
            } = state.workers[worker].step
            {
                state.late_commit = Some(Checkpoint {
                    session,
                    epoch,
                    from: checkpoint,
                });
            }
        }
        Action::LoseTimeline => {
            left.timeline_losses -= 1;
            state
                .subjects
                .iter_mut()
                .for_each(|subject| subject.messages.clear());
        }
        Action::LoseJobs => {
            left.job_losses -= 1;
            state.jobs = [None; SEQUENCES];
            state.next_sequence = 0;
        }
        Action::Cancel(session) => {
            left.cancels -= 1;
            state.row_mut(session).stop = Some(Stop::Cancel);
        }
        Action::PassDeadline(session) => {
            left.deadlines -= 1;
            state.row_mut(session).stop = Some(Stop::Deadline);
        }
        _ => {}
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.bounds.alerts, self.bounds.faults)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for worker in 0..WORKERS {
            self.of_worker(state, worker, actions);
        }
        self.of_store(state, actions);
        self.of_broker(state, actions);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        self.apply(&mut state, action);
        if self.symmetric_workers {
            state.workers.sort_unstable();
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::always()
    }
}

impl Faults {
    /// The faults that have happened since the start.
    pub(super) fn since(self, start: Self) -> Self {
        Self {
            crashes: start.crashes - self.crashes,
            stalls: start.stalls - self.stalls,
            releases: start.releases - self.releases,
            redeliveries: start.redeliveries - self.redeliveries,
            lost_acks: start.lost_acks - self.lost_acks,
            late_acks: start.late_acks - self.late_acks,
            late_publishes: start.late_publishes - self.late_publishes,
            late_commits: start.late_commits - self.late_commits,
            timeline_losses: start.timeline_losses - self.timeline_losses,
            job_losses: start.job_losses - self.job_losses,
            cancels: start.cancels - self.cancels,
            deadlines: start.deadlines - self.deadlines,
        }
    }
}

impl Message {
    /// The row with this number, as it is published after `last`.
    pub(super) fn of(state: &State, subject: Id, number: u8) -> Option<Self> {
        let (event, _) = *state
            .row(subject)
            .events
            .get(usize::from(number.checked_sub(1)?))?;
        let expected = state.subject(subject).last_sequence();
        (event != super::state::Event::Missing).then_some(Self {
            subject,
            number,
            event,
            expected,
        })
    }
}
