//! Words of keys, in lower case without separators: `servicestate` is `SERVICE_STATE`, and `state` in `service`.

/// Keys of the alert's type, before those of its title.
pub(super) const NAMES: [&str; 19] = [
    "alertname",
    "alert",
    "alarmname",
    "alarm",
    "rulename",
    "alertrulename",
    "monitorname",
    "monitorfriendlyname",
    "checkname",
    "policyname",
    "conditionname",
    "triggername",
    "componentname",
    "monitor",
    "rule",
    "check",
    "sensorname",
    "sensor",
    "servicedesc",
];
/// The check of systems that watch services of hosts. Beside a host it is the name.
pub(super) const SERVICES: [&str; 4] = [
    "servicename",
    "servicedescription",
    "servicedisplayname",
    "service",
];
pub(super) const HOSTS: [&str; 9] = [
    "host",
    "hostname",
    "hostdisplayname",
    "node",
    "nodename",
    "device",
    "devicename",
    "server",
    "servername",
];
/// Titles that can be types.
pub(super) const SHORT_TITLES: [&str; 5] = ["title", "name", "summary", "subject", "headline"];
pub(super) const TITLES: [&str; 11] = [
    "title",
    "name",
    "summary",
    "subject",
    "headline",
    "event",
    "reason",
    "description",
    "message",
    "text",
    "msg",
];
pub(super) const RUNBOOKS: [&str; 2] = ["runbookurl", "runbook"];
