//! The operations that a client of the broker may perform, each with the NATS subjects that it needs.

/// An operation that a client of the broker may perform. A right to publish on `$JS.API.…` is a right to call
/// JetStream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::VariantArray)]
pub enum Ability {
    QueueAlerts,
    /// Queue alerts on the subjects that only the web server uses.
    QueueWebAlerts,
    AskQuestions,
    /// Ask questions on the subject that only the receiver of Slack uses.
    AskInSlack,
    RequestCancels,
    ReadCancels,
    /// Send what people decide on pages.
    DecideOnPages,
    /// Send what people decide in Slack.
    DecideInSlack,
    /// Send what one person decides at the command line.
    DecideAsPerson,
    /// Send what anyone decides at the command line. No role has it.
    DecideAsAnyone,
    RecordDecisions,
    ClaimAlerts,
    ReadQueuedAlerts,
    PublishTimelines,
    ReadTimelines,
    ReadLastEvents,
    PublishStatus,
    ReadStatus,
    PublishSystem,
    ReadSystem,
    PublishDeadLetters,
    ReadDeadLetters,
    RemoveDeadLetters,
    InspectStreams,
    ChangeStreams,
    DestroyStreams,
}

impl Ability {
    /// The ability in words, after "may".
    pub fn describe(self) -> &'static str {
        match self {
            Self::QueueAlerts => "queue alerts",
            Self::QueueWebAlerts => "queue alerts of the web server",
            Self::AskQuestions => "ask questions",
            Self::AskInSlack => "ask questions of threads in Slack",
            Self::RequestCancels => "cancel investigations",
            Self::ReadCancels => "read cancel requests",
            Self::DecideOnPages => "decide as people on pages",
            Self::DecideInSlack => "decide as people in Slack",
            Self::DecideAsPerson => "decide as one person at the command line",
            Self::DecideAsAnyone => "decide as anyone at the command line",
            Self::RecordDecisions => "receive what people decide",
            Self::ClaimAlerts => "claim and acknowledge alerts",
            Self::ReadQueuedAlerts => "read queued alerts, which are not masked",
            Self::PublishTimelines => "publish events and deltas of timelines",
            Self::ReadTimelines => "read timelines",
            Self::ReadLastEvents => "read single events of timelines",
            Self::PublishStatus => "publish the status of a worker",
            Self::ReadStatus => "read the status of workers",
            Self::PublishSystem => "publish the configuration of a worker, without secrets",
            Self::ReadSystem => "read the configuration of workers, without secrets",
            Self::PublishDeadLetters => "publish dead letters",
            Self::ReadDeadLetters => "read dead letters, which are not masked",
            Self::RemoveDeadLetters => "remove dead letters",
            Self::InspectStreams => "read the configuration of streams and consumers",
            Self::ChangeStreams => "create and change streams and consumers",
            Self::DestroyStreams => "delete or purge streams",
        }
    }

    /// The patterns of subjects on which it publishes.
    pub fn publish(self) -> &'static [&'static str] {
        match self {
            Self::QueueAlerts => &["tarsy.alerts.>"],
            Self::QueueWebAlerts => &[
                "tarsy.alerts.critical.web",
                "tarsy.alerts.high.web",
                "tarsy.alerts.normal.web",
                "tarsy.alerts.low.web",
            ],
            Self::AskQuestions => &["tarsy.questions.>"],
            Self::AskInSlack => &["tarsy.questions.high.slack"],
            Self::RequestCancels => &["tarsy.control.*"],
            Self::ReadCancels => &["$JS.API.STREAM.MSG.GET.TARSY_CONTROL"],
            Self::DecideOnPages => &["tarsy.decisions.web.*", "tarsy.verdicts.web.*"],
            Self::DecideInSlack => &["tarsy.decisions.slack.*", "tarsy.verdicts.slack.*"],
            Self::DecideAsPerson => &["tarsy.decisions.cli.ana.*", "tarsy.verdicts.cli.ana.*"],
            Self::DecideAsAnyone => &["tarsy.decisions.cli.*.*"],
            Self::RecordDecisions => &[
                "$JS.API.CONSUMER.INFO.TARSY_PEOPLE.*",
                "$JS.API.CONSUMER.MSG.NEXT.TARSY_PEOPLE.*",
                "$JS.ACK.TARSY_PEOPLE.>",
            ],
            Self::ClaimAlerts => &[
                "$JS.API.CONSUMER.INFO.TARSY_ALERTS.*",
                "$JS.API.CONSUMER.MSG.NEXT.TARSY_ALERTS.*",
                "$JS.ACK.TARSY_ALERTS.>",
            ],
            Self::ReadQueuedAlerts => &["$JS.API.STREAM.MSG.GET.TARSY_ALERTS"],
            Self::PublishTimelines => &["tarsy.timeline.*", "tarsy.live.*"],
            Self::ReadTimelines => &[
                "$JS.API.CONSUMER.CREATE.TARSY_TIMELINE.*.tarsy.timeline.*",
                "$JS.API.CONSUMER.MSG.NEXT.TARSY_TIMELINE.*",
            ],
            Self::ReadLastEvents => &["$JS.API.STREAM.MSG.GET.TARSY_TIMELINE"],
            Self::PublishStatus => &["tarsy.workers.*"],
            Self::PublishSystem => &["tarsy.systems.*"],
            Self::ReadStatus | Self::ReadSystem => &[],
            Self::PublishDeadLetters => &["tarsy.dead.*.*"],
            Self::ReadDeadLetters => &[
                "$JS.API.CONSUMER.CREATE.TARSY_DEAD_LETTERS.*.tarsy.dead.>",
                "$JS.API.CONSUMER.MSG.NEXT.TARSY_DEAD_LETTERS.*",
                "$JS.API.STREAM.MSG.GET.TARSY_DEAD_LETTERS",
            ],
            Self::RemoveDeadLetters => &["$JS.API.STREAM.MSG.DELETE.TARSY_DEAD_LETTERS"],
            Self::InspectStreams => &[
                "$JS.API.STREAM.INFO.TARSY_ALERTS",
                "$JS.API.STREAM.INFO.TARSY_TIMELINE",
                "$JS.API.STREAM.INFO.TARSY_DEAD_LETTERS",
                "$JS.API.STREAM.INFO.TARSY_CONTROL",
                "$JS.API.STREAM.INFO.TARSY_PEOPLE",
                "$JS.API.CONSUMER.INFO.TARSY_ALERTS.*",
                "$JS.API.CONSUMER.INFO.TARSY_PEOPLE.*",
            ],
            Self::ChangeStreams => &[
                "$JS.API.STREAM.CREATE.TARSY_ALERTS",
                "$JS.API.STREAM.CREATE.TARSY_TIMELINE",
                "$JS.API.STREAM.CREATE.TARSY_DEAD_LETTERS",
                "$JS.API.STREAM.CREATE.TARSY_CONTROL",
                "$JS.API.STREAM.CREATE.TARSY_PEOPLE",
                "$JS.API.STREAM.UPDATE.TARSY_ALERTS",
                "$JS.API.STREAM.UPDATE.TARSY_TIMELINE",
                "$JS.API.STREAM.UPDATE.TARSY_DEAD_LETTERS",
                "$JS.API.STREAM.UPDATE.TARSY_CONTROL",
                "$JS.API.STREAM.UPDATE.TARSY_PEOPLE",
                "$JS.API.CONSUMER.CREATE.TARSY_ALERTS.>",
                "$JS.API.CONSUMER.DURABLE.CREATE.TARSY_ALERTS.*",
                "$JS.API.CONSUMER.CREATE.TARSY_PEOPLE.>",
                "$JS.API.CONSUMER.DURABLE.CREATE.TARSY_PEOPLE.*",
            ],
            Self::DestroyStreams => &[
                "$JS.API.STREAM.DELETE.TARSY_ALERTS",
                "$JS.API.STREAM.PURGE.TARSY_ALERTS",
            ],
        }
    }

    /// The patterns of subjects to which it subscribes.
    pub fn subscribe(self) -> &'static [&'static str] {
        match self {
            Self::ReadCancels => &["tarsy.control.*"],
            Self::ReadTimelines => &["tarsy.live.*"],
            Self::ReadStatus => &["tarsy.workers.*"],
            Self::ReadSystem => &["tarsy.systems.*"],
            Self::QueueAlerts
            | Self::QueueWebAlerts
            | Self::AskQuestions
            | Self::AskInSlack
            | Self::RequestCancels
            | Self::DecideOnPages
            | Self::DecideInSlack
            | Self::DecideAsPerson
            | Self::DecideAsAnyone
            | Self::RecordDecisions
            | Self::ClaimAlerts
            | Self::ReadQueuedAlerts
            | Self::PublishTimelines
            | Self::ReadLastEvents
            | Self::PublishStatus
            | Self::PublishSystem
            | Self::PublishDeadLetters
            | Self::ReadDeadLetters
            | Self::RemoveDeadLetters
            | Self::InspectStreams
            | Self::ChangeStreams
            | Self::DestroyStreams => &[],
        }
    }
}
