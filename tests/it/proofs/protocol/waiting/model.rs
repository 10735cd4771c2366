//! The states and actions of the model.

use super::QUIET_AHEAD;

/// The rules of waiting, each of which can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// `park.sql` compares the event number with that of the outcomes that were read.
    ParkComparesNumber,
    /// A counted vote takes an event number. `vote.sql`
    VoteTakesNumber,
    /// The vote that decides ends the lease of a parked session. `vote.sql`
    VoteWakes,
    /// The message is acknowledged after the park. `engine/run`
    AckAfterPark,
    /// A request that is closed starts no call, whatever the journal says. `checkpoint.sql`
    ClosedOnce,
    /// A claim of a parked session says that it waits, and its message is acknowledged. `claim.sql`
    ClaimSaysWaiting,
    /// An expiry compares the event number. `checkpoint.sql`
    ExpiryComparesNumber,
}

const SENT_TWICE: &str = "a call is sent once at most";
const LOST_DECISION: &str = "no recorded decision is overwritten by an expiry or a resolution";
const ASLEEP: &str = "no session waits that has a decision, or whose alert is resolved";
const FORGOTTEN: &str = "a session whose owner has died has a message";

/// A property, and whether a state breaks it.
type Property = (&'static str, fn(&State) -> bool);

/// The properties of every state.
pub(super) const BROKEN: [Property; 5] = [
    (SENT_TWICE, |state| state.calls > 1),
    ("no call is sent that people did not approve", |state| {
        state.calls > 0 && state.outcome != Some(Choice::Approve)
    }),
    (LOST_DECISION, |state| {
        state.closed == Some(Closed::Undecided) && state.outcome.is_some()
    }),
    (ASLEEP, |state| {
        state.is_parked() && (state.outcome.is_some() || state.resolved)
    }),
    (FORGOTTEN, |state| {
        let has_job = state.jobs.iter().any(Option::is_some);
        !state.has_ended && state.owner.is_some() && !state.owner_lives() && !has_job
    }),
];

impl Rule {
    pub(super) const ALL: [Self; 7] = [
        Self::ParkComparesNumber,
        Self::VoteTakesNumber,
        Self::VoteWakes,
        Self::AckAfterPark,
        Self::ClosedOnce,
        Self::ClaimSaysWaiting,
        Self::ExpiryComparesNumber,
    ];

    /// The property that breaks without it.
    pub(super) fn property(self) -> &'static str {
        match self {
            Self::ParkComparesNumber | Self::VoteTakesNumber | Self::VoteWakes => ASLEEP,
            Self::AckAfterPark => FORGOTTEN,
            Self::ClosedOnce => SENT_TWICE,
            Self::ClaimSaysWaiting => QUIET_AHEAD,
            Self::ExpiryComparesNumber => LOST_DECISION,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Choice {
    Approve,
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Closed {
    Approved,
    Denied,
    /// It has expired, or the resolution of the alert has withdrawn it.
    Undecided,
}

/// The step of a worker that has the session, or believes so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// It has received a message, and claims next.
    Received,
    /// It reads the outcomes next.
    Read,
    Park {
        seen: u8,
    },
    /// It ends without a decision.
    End {
        seen: u8,
    },
    Deny,
    Start,
    /// The start is committed, and the call is sent next.
    Send,
    /// The result, or that it is lost, is written next, and the session ends.
    Result,
    /// The message is acknowledged next.
    Acknowledge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Worker {
    phase: Phase,
    epoch: u8,
    /// Its message, one of the slots.
    job: Option<usize>,
}

/// A message of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Vote {
    Unsent,
    Stored,
    /// It is recorded; if it wakes the session, the alert is queued next.
    Recorded {
        wakes: bool,
    },
    Acknowledged,
}

/// The number of times that each fault may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    crashes: u8,
    stalls: u8,
    recorder_crashes: u8,
    /// A replay misses the start in the journal.
    gaps: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    epoch: u8,
    /// `lease_owner`.
    owner: Option<usize>,
    /// The lease ends in the future.
    leased: bool,
    event_seq: u8,
    /// The time of the request has passed.
    expired: bool,
    /// An update says that the alert is resolved.
    resolved: bool,
    outcome: Option<Choice>,
    closed: Option<Closed>,
    started: bool,
    pub(super) has_ended: bool,
    calls: u8,
    /// Messages of the session: each with the worker to which it is delivered.
    jobs: [Option<Option<usize>>; 2],
    workers: [Option<Worker>; 2],
    votes: [Vote; 2],
    left: Faults,
}

const CHOICES: [Choice; 2] = [Choice::Approve, Choice::Deny];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Deliver {
        worker: usize,
        job: usize,
    },
    /// The next statement or answer of the worker.
    Next(usize),
    /// A claim whose replay misses that the call was started.
    ClaimWithGap(usize),
    Redeliver(usize),
    /// The lease of a dead owner ends.
    LeaseEnds,
    Sweep,
    Record(usize),
    Requeue(usize),
    Send(usize),
    /// The time of the request passes.
    TimePasses,
    /// The alert is resolved; `open.sql`.
    Resolve,
    Crash(usize),
    /// A lease ends although its owner lives.
    Stall,
    RecorderDies(usize),
}

impl Action {
    pub(super) fn is_fault(self) -> bool {
        matches!(
            self,
            Self::Crash(_) | Self::Stall | Self::RecorderDies(_) | Self::ClaimWithGap(_)
        )
    }

    /// Whether it happens without a fault, a person, or more time than an expiry takes.
    pub(super) fn is_machine(self) -> bool {
        !self.is_fault() && !matches!(self, Self::Send(_) | Self::TimePasses | Self::Resolve)
    }
}

impl State {
    /// A worker has just asked.
    pub(super) fn new(left: Faults) -> Self {
        let worker = Worker {
            phase: Phase::Read,
            epoch: 1,
            job: Some(0),
        };
        Self {
            epoch: 1,
            owner: Some(0),
            leased: true,
            event_seq: 0,
            expired: false,
            resolved: false,
            outcome: None,
            closed: None,
            started: false,
            has_ended: false,
            calls: 0,
            jobs: [Some(Some(0)), None],
            workers: [Some(worker), None],
            votes: [Vote::Unsent; 2],
            left,
        }
    }

    fn is_parked(&self) -> bool {
        !self.has_ended && self.owner.is_none() && self.leased
    }

    /// The session waits or has ended, and nothing is held for it.
    pub(super) fn is_quiet(&self) -> bool {
        let is_idle = self.jobs == [None; 2] && self.workers == [None; 2];
        is_idle && (self.is_parked() || self.has_ended)
    }

    fn owner_lives(&self) -> bool {
        let runs = |worker: &Worker| worker.epoch == self.epoch && worker.phase != Phase::Received;
        self.workers.iter().flatten().any(runs)
    }

    fn queue(&mut self) {
        if let Some(free) = self.jobs.iter_mut().find(|job| job.is_none()) {
            *free = Some(None);
        }
    }

    /// Whether a write of this worker is that of the owner.
    fn fenced(&self, worker: Worker) -> bool {
        !self.has_ended && worker.epoch == self.epoch
    }
}

/// The model, with at most one of its rules switched off: then with fewer faults, and fewer states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    without: Option<Rule>,
    pub(super) faults: Faults,
}

impl Waiting {
    pub(super) fn with(without: Option<Rule>) -> Self {
        Self {
            without,
            faults: Faults {
                crashes: 1,
                stalls: u8::from(without.is_none()),
                recorder_crashes: u8::from(without.is_none()),
                gaps: u8::from(without.is_none() || without == Some(Rule::ClosedOnce)),
            },
        }
    }

    fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    pub(super) fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (worker, step) in state.workers.iter().enumerate() {
            match step {
                // Idle workers are interchangeable; one of them is enough.
                None if state.workers.iter().take(worker).any(Option::is_none) => {}
                None => {
                    let queued = (0..2).filter(|job| state.jobs[*job] == Some(None));
                    actions.extend(queued.map(|job| Action::Deliver { worker, job }));
                }
                Some(step) => {
                    actions.push(Action::Next(worker));
                    if state.left.crashes > 0 {
                        actions.push(Action::Crash(worker));
                    }
                    let may_miss = state.left.gaps > 0 && state.started && !state.has_ended;
                    if step.phase == Phase::Received && may_miss && !state.leased {
                        actions.push(Action::ClaimWithGap(worker));
                    }
                }
            }
        }
        for (job, to) in state.jobs.iter().enumerate() {
            if let Some(Some(worker)) = to
                && state.workers[*worker].is_none_or(|step| step.job != Some(job))
            {
                actions.push(Action::Redeliver(job));
            }
        }
        let open = !state.has_ended;
        if open && state.leased && state.owner.is_some() {
            if !state.owner_lives() {
                actions.push(Action::LeaseEnds);
            } else if state.left.stalls > 0 {
                actions.push(Action::Stall);
            }
        }
        if open && !state.leased && state.jobs == [None; 2] {
            actions.push(Action::Sweep);
        }
        if open && !state.expired {
            actions.push(Action::TimePasses);
        }
        if open && !state.resolved {
            actions.push(Action::Resolve);
        }
        for (vote, step) in state.votes.iter().enumerate() {
            match step {
                Vote::Unsent => actions.push(Action::Send(vote)),
                Vote::Stored => actions.push(Action::Record(vote)),
                Vote::Recorded { .. } => {
                    actions.push(Action::Requeue(vote));
                    if state.left.recorder_crashes > 0 {
                        actions.push(Action::RecorderDies(vote));
                    }
                }
                Vote::Acknowledged => {}
            }
        }
        actions
    }

    pub(super) fn after(&self, before: &State, action: Action) -> State {
        let mut state = *before;
        match action {
            Action::Deliver { worker, job } => {
                state.jobs[job] = Some(Some(worker));
                state.workers[worker] = Some(Worker {
                    phase: Phase::Received,
                    epoch: 0,
                    job: Some(job),
                });
            }
            Action::Next(worker) => self.next(&mut state, worker),
            Action::ClaimWithGap(worker) => {
                state.left.gaps -= 1;
                self.claim(&mut state, worker);
                if let Some(step) = &mut state.workers[worker] {
                    step.phase = Phase::Start;
                }
            }
            Action::Redeliver(job) => state.jobs[job] = Some(None),
            Action::LeaseEnds => state.leased = false,
            Action::Sweep => state.queue(),
            Action::Send(vote) => state.votes[vote] = Vote::Stored,
            Action::Record(vote) => self.record(&mut state, vote),
            Action::Requeue(vote) => {
                if state.votes[vote] == (Vote::Recorded { wakes: true }) {
                    state.queue();
                }
                state.votes[vote] = Vote::Acknowledged;
            }
            Action::TimePasses => {
                // The lease of a parked session ends with the request.
                state.leased &= !state.is_parked();
                state.expired = true;
            }
            Action::Resolve => {
                state.resolved = true;
                state.event_seq += 1;
                // A session that waits is woken, and the sweeper queues it.
                state.leased &= !state.is_parked();
            }
            Action::Crash(worker) => {
                state.left.crashes -= 1;
                state.workers[worker] = None;
            }
            Action::Stall => {
                state.left.stalls -= 1;
                state.leased = false;
            }
            Action::RecorderDies(vote) => {
                state.left.recorder_crashes -= 1;
                state.votes[vote] = Vote::Stored;
            }
        }
        state
    }

    /// `vote.sql`. A vote that was recorded before finds the session as it is.
    fn record(&self, state: &mut State, vote: usize) {
        let is_open =
            !state.has_ended && state.outcome.is_none() && state.closed.is_none() && !state.expired;
        let mut wakes = false;
        if is_open {
            state.outcome = Some(CHOICES[vote]);
            state.event_seq += u8::from(self.keeps(Rule::VoteTakesNumber));
            if state.is_parked() && self.keeps(Rule::VoteWakes) {
                state.leased = false;
                wakes = true;
            }
        } else if state.outcome == Some(CHOICES[vote]) {
            wakes = !state.has_ended && state.owner.is_none() && !state.leased;
        }
        state.votes[vote] = Vote::Recorded { wakes };
    }

    fn claim(&self, state: &mut State, worker: usize) {
        let Some(step) = state.workers[worker] else {
            return;
        };
        let phase = if state.has_ended || state.is_parked() && self.keeps(Rule::ClaimSaysWaiting) {
            Phase::Acknowledge
        } else if state.leased {
            // Busy: the message is returned.
            if let Some(job) = step.job {
                state.jobs[job] = Some(None);
            }
            state.workers[worker] = None;
            return;
        } else {
            state.epoch += 1;
            state.owner = Some(worker);
            state.leased = true;
            // A start without a result is lost.
            if state.started {
                Phase::Result
            } else {
                Phase::Read
            }
        };
        state.workers[worker] = Some(Worker {
            phase,
            epoch: state.epoch,
            ..step
        });
    }

    fn next(&self, state: &mut State, worker: usize) {
        let Some(step) = state.workers[worker] else {
            return;
        };
        let phase = match step.phase {
            Phase::Received => return self.claim(state, worker),
            Phase::Read => match (state.outcome, state.expired || state.resolved) {
                (Some(Choice::Approve), _) => Some(Phase::Start),
                (Some(Choice::Deny), _) => Some(Phase::Deny),
                (None, true) => Some(Phase::End {
                    seen: state.event_seq,
                }),
                (None, false) => {
                    if !self.keeps(Rule::AckAfterPark)
                        && let Some(job) = step.job
                    {
                        state.jobs[job] = None;
                    }
                    Some(Phase::Park {
                        seen: state.event_seq,
                    })
                }
            },
            Phase::Send => {
                state.calls += 1;
                Some(Phase::Result)
            }
            Phase::Acknowledge => {
                if let Some(job) = step.job {
                    state.jobs[job] = None;
                }
                None
            }
            // A write of an owner that was superseded is refused, and its message is not answered.
            _ if !state.fenced(step) => None,
            Phase::Park { seen } => Some(self.park(state, seen)),
            Phase::End { seen } => {
                let is_current = state.event_seq == seen || !self.keeps(Rule::ExpiryComparesNumber);
                Some(close(state, Closed::Undecided, is_current))
            }
            Phase::Deny => Some(close(state, Closed::Denied, true)),
            Phase::Start => Some(self.start(state)),
            Phase::Result => {
                state.has_ended = true;
                Some(Phase::Acknowledge)
            }
        };
        state.workers[worker] = phase.map(|phase| Worker { phase, ..step });
    }

    /// `park.sql`.
    fn park(&self, state: &mut State, seen: u8) -> Phase {
        let is_current = state.event_seq == seen || !self.keeps(Rule::ParkComparesNumber);
        if !is_current || state.expired {
            return Phase::Read;
        }
        state.epoch += 1;
        state.event_seq += 1;
        (state.owner, state.leased) = (None, true);
        Phase::Acknowledge
    }

    /// The checkpoint that closes the request as approved and says that the call starts.
    fn start(&self, state: &mut State) -> Phase {
        let is_closed = state.closed.is_some() && self.keeps(Rule::ClosedOnce);
        if is_closed || state.outcome != Some(Choice::Approve) {
            // Its call is lost.
            return Phase::Result;
        }
        state.closed = Some(Closed::Approved);
        state.started = true;
        state.event_seq += 1;
        Phase::Send
    }
}

/// The checkpoint that closes the request without a call; the session ends.
fn close(state: &mut State, closed: Closed, is_current: bool) -> Phase {
    if !is_current || state.closed.is_some() {
        return Phase::Read;
    }
    state.closed = Some(closed);
    state.event_seq += 1;
    state.has_ended = true;
    Phase::Acknowledge
}
