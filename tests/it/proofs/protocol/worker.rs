//! The steps of a worker, as in `engine/delivery/dispatch.rs`: one statement or message at a time.

use super::model::{Action, Protocol};
use super::rules::Rule;
use super::state::{
    Checkpoint, Disposition, Event, Id, Message, SEQUENCES, State, Step, Stop, Worker,
};
use super::statements::{Decided, Written};

impl Protocol {
    /// The possible actions of this worker.
    pub(super) fn of_worker(&self, state: &State, worker: usize, actions: &mut Vec<Action>) {
        let (left, Worker { step, sending }) = (state.left, state.workers[worker]);
        if step != Step::Idle && left.crashes > 0 {
            actions.push(Action::Crash(worker));
        }
        if sending.is_some() {
            actions.push(Action::Publish(worker));
            if left.late_publishes > 0 && state.late_publish.is_none() {
                actions.push(Action::DelayPublish(worker));
            }
            return;
        }
        match step {
            Step::Idle => self.of_idle(state, worker, actions),
            Step::Preparing { alert, .. } if self.bounds.poison == Some(alert) => {
                actions.push(Action::Poisoned(worker))
            }
            Step::Received { .. }
            | Step::Preparing { .. }
            | Step::Looked { .. }
            | Step::Releasing { .. } => {
                actions.push(Action::Next(worker));
            }
            Step::Running {
                session, ending, ..
            } => {
                if !ending {
                    self.of_writer(state, worker, actions);
                }
                if ending || state.row(session).stop.is_some() {
                    actions.push(Action::End(worker));
                }
                self.of_owner(state, worker, session, actions);
            }
            Step::Settling { alert, .. } => self.of_settler(state, worker, alert, actions),
            Step::Acknowledging { .. } => {
                actions.push(Action::Next(worker));
                if left.lost_acks > 0 {
                    actions.push(Action::LoseAck(worker));
                }
                if left.late_acks > 0 && state.late_ack.is_none() {
                    actions.push(Action::DelayAck(worker));
                }
            }
        }
    }

    fn of_idle(&self, state: &State, worker: usize, actions: &mut Vec<Action>) {
        let busy = state
            .workers
            .iter()
            .filter(|other| **other != Worker::IDLE)
            .count();
        // Idle workers are interchangeable; one of them is enough.
        let another = self.symmetric_workers && state.workers[..worker].contains(&Worker::IDLE);
        if busy >= self.bounds.workers || another {
            return;
        }
        for sequence in (0_u8..).take(SEQUENCES) {
            if state.job(sequence).is_some_and(|job| !job.delivered) {
                actions.push(Action::Deliver { worker, sequence });
            }
        }
        for alert in self.alerts() {
            let row = state.row(alert);
            if row.over() && !row.settled && self.keeps(Rule::SweepUnsettled) {
                actions.push(Action::Settle { worker, alert });
            }
            if row.open && !row.leased && row.stop == Some(Stop::Deadline) {
                actions.push(Action::TakeOverdue {
                    worker,
                    session: alert,
                });
            }
            let owner_is_dead = !state.owner_lives(alert) || !self.keeps(Rule::InheritFromDead);
            if row.open && row.leased && row.attempts <= 1 && owner_is_dead {
                actions.push(Action::Inherit {
                    worker,
                    session: alert,
                });
            }
        }
    }

    fn of_writer(&self, state: &State, worker: usize, actions: &mut Vec<Action>) {
        actions.push(Action::Next(worker));
        if state.left.late_commits > 0 && state.late_commit.is_none() {
            actions.push(Action::DelayCommit(worker));
        }
    }

    fn of_owner(&self, state: &State, worker: usize, session: Id, actions: &mut Vec<Action>) {
        if state.left.releases > 0 {
            actions.push(Action::Release(worker));
        }
        self.of_publisher(state, worker, session, actions);
        for sequence in (0_u8..).take(SEQUENCES) {
            if state
                .job(sequence)
                .is_some_and(|job| !job.delivered && job.alert == session)
            {
                actions.push(Action::Deliver { worker, sequence });
            }
        }
    }

    fn of_settler(&self, state: &State, worker: usize, alert: Id, actions: &mut Vec<Action>) {
        let row = state.row(alert);
        let published = state.published(alert) || !self.keeps(Rule::PublishBeforeSettled);
        if row.settled || self.owes_dead_letter(state, alert) || published {
            actions.push(Action::Next(worker));
        }
        if !row.settled {
            self.of_publisher(state, worker, alert, actions);
        }
        // An alert that joins a session notifies that session's publisher.
        if let Disposition::Joined(target) = row.disposition {
            self.of_publisher(state, worker, target, actions);
        }
    }

    fn of_publisher(&self, state: &State, worker: usize, subject: Id, actions: &mut Vec<Action>) {
        if self.row_to_publish(state, worker, subject).is_some() {
            actions.push(Action::Look { worker, subject });
        }
    }

    /// The row after the last event on the stream. Without the rule: the next row that this worker wrote itself and so
    /// has in memory.
    pub(super) fn row_to_publish(
        &self,
        state: &State,
        worker: usize,
        subject: Id,
    ) -> Option<Message> {
        let tail = state.subject(subject).tail();
        if self.keeps(Rule::PublishFromTable) {
            return Message::of(state, subject, tail + 1);
        }
        let wrote = |event: Event, by: u8| match state.workers[worker].step {
            Step::Running { epoch, .. } => by == epoch && !matches!(event, Event::AlertJoined(_)),
            Step::Settling { alert, .. } if alert == subject => {
                !matches!(event, Event::AlertJoined(_))
            }
            Step::Settling { alert, .. } => event == Event::AlertJoined(alert),
            _ => false,
        };
        let rows = (1_u8..).zip(&state.row(subject).events);
        let mine = rows
            .skip(usize::from(tail))
            .find(|(_, (event, by))| wrote(*event, *by));
        mine.and_then(|(number, _)| Message::of(state, subject, number))
    }

    pub(super) fn publish(&self, state: &mut State, worker: usize) {
        let Some(message) = state.workers[worker].sending.take() else {
            return;
        };
        let accepted = state.subjects[usize::from(message.subject)].publish(message);
        if !accepted && !self.keeps(Rule::RefusalIsNoVerdict) {
            state.workers[worker].step = Step::Idle;
        }
    }

    pub(super) fn deliver(&self, state: &mut State, worker: usize, sequence: u8) {
        let Some(job) = state.job(sequence) else {
            return;
        };
        state.mark_delivered(sequence);
        if let Step::Running {
            sequence: latest, ..
        } = &mut state.workers[worker].step
        {
            *latest = Some(sequence);
            state.row_mut(job.alert).sequence = sequence;
        } else {
            state.workers[worker].step = Step::Received {
                sequence,
                alert: job.alert,
            };
        }
    }

    pub(super) fn next(&self, state: &mut State, worker: usize) {
        let step = match state.workers[worker].step {
            Step::Idle => Step::Idle,
            Step::Received { sequence, alert } => {
                return self.receive_delivery(state, worker, sequence, alert);
            }
            Step::Preparing { sequence, alert } => self.look_or_open(state, sequence, alert),
            Step::Looked {
                sequence,
                alert,
                target,
            } => self.decide(state, sequence, alert, Some(target)),
            Step::Running {
                sequence,
                session,
                epoch,
                checkpoint,
                ..
            } => {
                let next = Checkpoint {
                    session,
                    epoch,
                    from: checkpoint,
                };
                let written = self.checkpoint(state.row_mut(session), next);
                after_write(state, written, sequence, session)
                    .unwrap_or_else(|| continue_session(state, sequence, session, epoch))
            }
            Step::Releasing { sequence } => nak(state, sequence),
            Step::Settling { sequence, alert } => self.settle(state, sequence, alert),
            Step::Acknowledging { sequence } => {
                state.ack(sequence);
                Step::Idle
            }
        };
        state.workers[worker].step = step;
    }

    /// Inserts the alert first, then acts on its row. A claim is a statement of its own in tarsy. The disposition that
    /// `receive` found of a decided alert does not change any more, so both can be one action here.
    fn receive_delivery(&self, state: &mut State, worker: usize, sequence: u8, alert: Id) {
        let row = state.row_mut(alert);
        self.receive(row, sequence);
        state.workers[worker].step = match row.disposition {
            Disposition::Unknown | Disposition::Undecided => Step::Preparing { sequence, alert },
            Disposition::Opened if row.open => {
                return self.take(state, worker, Some(sequence), alert);
            }
            Disposition::Opened | Disposition::Joined(_) | Disposition::Dead => {
                if self.keeps(Rule::SettleBeforeAck) {
                    Step::Settling {
                        sequence: Some(sequence),
                        alert,
                    }
                } else {
                    Step::Acknowledging { sequence }
                }
            }
        };
    }

    pub(super) fn take(&self, state: &mut State, worker: usize, sequence: Option<u8>, session: Id) {
        let claimed = self.claim(state.row_mut(session), sequence);
        state.workers[worker].step = match (claimed, sequence) {
            (Some((epoch, checkpoint, ending)), _) => Step::Running {
                sequence,
                session,
                epoch,
                checkpoint,
                ending,
            },
            (None, Some(sequence)) => nak(state, sequence),
            (None, None) => Step::Idle,
        };
    }

    fn look_or_open(&self, state: &mut State, sequence: u8, alert: Id) -> Step {
        let target = state.open_beside(alert);
        let at_once = self.keeps(if target.is_some() {
            Rule::JoinLocksTarget
        } else {
            Rule::OneOpenSession
        });
        if at_once {
            self.decide(state, sequence, alert, None)
        } else {
            Step::Looked {
                sequence,
                alert,
                target,
            }
        }
    }

    fn decide(&self, state: &mut State, sequence: u8, alert: Id, seen: Option<Option<Id>>) -> Step {
        match self.open(state, alert, seen) {
            Decided::Opened => continue_session(state, Some(sequence), alert, 1),
            Decided::Joined if self.keeps(Rule::JoinedIsDecided) => Step::Settling {
                sequence: Some(sequence),
                alert,
            },
            Decided::Joined => Step::Acknowledging { sequence },
            Decided::TargetCancelling => nak(state, sequence),
            Decided::Raced => Step::Received { sequence, alert },
        }
    }

    pub(super) fn end(&self, state: &mut State, worker: usize) {
        if let Step::Running {
            sequence,
            session,
            epoch,
            ..
        } = state.workers[worker].step
        {
            let written = self.end_now(state.row_mut(session), epoch);
            state.workers[worker].step =
                after_write(state, written, sequence, session).unwrap_or(Step::Idle);
        }
    }

    pub(super) fn release_session(&self, state: &mut State, worker: usize) {
        if let Step::Running {
            sequence,
            session,
            epoch,
            ..
        } = state.workers[worker].step
        {
            let written = self.release(state.row_mut(session), epoch);
            let returning = sequence.map_or(Step::Idle, |sequence| Step::Releasing { sequence });
            state.workers[worker].step =
                after_write(state, written, sequence, session).unwrap_or(returning);
        }
    }

    fn owes_dead_letter(&self, state: &State, alert: Id) -> bool {
        let stored = state.dead_letters[usize::from(alert)];
        state.row(alert).owes && !stored && self.keeps(Rule::DeadLetterBeforeSettled)
    }

    /// The dead letter, then `settled.sql`, then the answer. Waiting for the publisher is in [`Protocol::of_settler`].
    fn settle(&self, state: &mut State, sequence: Option<u8>, alert: Id) -> Step {
        if !state.row(alert).settled {
            if self.owes_dead_letter(state, alert) {
                state.dead_letters[usize::from(alert)] = true;
                return Step::Settling { sequence, alert };
            }
            state.row_mut(alert).settled = true;
        }
        sequence.map_or(Step::Idle, |sequence| Step::Acknowledging { sequence })
    }
}

/// `None` when the session continues, or was released.
fn after_write(state: &State, written: Written, sequence: Option<u8>, alert: Id) -> Option<Step> {
    match written {
        // The broker gets no answer.
        Written::LeaseLost => Some(Step::Idle),
        Written::Committed | Written::Refused if state.row(alert).open => None,
        Written::Committed | Written::Refused | Written::Ended => {
            Some(Step::Settling { sequence, alert })
        }
    }
}

/// Continues after the last committed checkpoint.
fn continue_session(state: &State, sequence: Option<u8>, session: Id, epoch: u8) -> Step {
    Step::Running {
        sequence,
        session,
        epoch,
        checkpoint: state.row(session).checkpoint,
        ending: false,
    }
}

fn nak(state: &mut State, sequence: u8) -> Step {
    state.mark_queued(sequence);
    Step::Idle
}
