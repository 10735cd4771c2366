//! Words of keys, in lower case without separators: `servicestate` is `SERVICE_STATE`, and `state` in `service`.

use crate::sources::WordList;

/// Keys of the alert's type, before those of its title.
pub(super) const NAMES: WordList = WordList::new(
    "alertname alert alarmname alarm rulename alertrulename monitorname monitorfriendlyname checkname policyname \
     conditionname triggername componentname monitor rule check sensorname sensor servicedesc",
);
/// The check of systems that watch services of hosts. Beside a host it is the name.
pub(super) const SERVICES: WordList =
    WordList::new("servicename servicedescription servicedisplayname service");
pub(super) const HOSTS: WordList = WordList::new(
    "host hostname hostdisplayname node nodename device devicename server servername",
);
/// Titles that can be types.
pub(super) const SHORT_TITLES: WordList = WordList::new("title name summary subject headline");
pub(super) const TITLES: WordList =
    WordList::new("title name summary subject headline event reason description message text msg");
pub(super) const RUNBOOKS: WordList = WordList::new("runbookurl runbook");
