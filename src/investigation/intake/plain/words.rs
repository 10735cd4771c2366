//! Words of keys, in lower case without separators: `servicestate` is `SERVICE_STATE`, and `state` in `service`.

/// Of the alert's type, before its title.
pub(super) const NAMES: [&str; 18] = [
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
    "rule",
    "check",
    "sensorname",
    "sensor",
    "servicedesc",
];
/// The check of systems that watch services of hosts. Beside a host it is the name.
pub(super) const SERVICES: [&str; 4] = ["servicename", "servicedescription", "servicedisplayname", "service"];
pub(super) const HOSTS: [&str; 9] =
    ["host", "hostname", "hostdisplayname", "node", "nodename", "device", "devicename", "server", "servername"];
/// Titles that can be types.
pub(super) const SHORT_TITLES: [&str; 5] = ["title", "name", "summary", "subject", "headline"];
pub(super) const TITLES: [&str; 11] =
    ["title", "name", "summary", "subject", "headline", "event", "reason", "description", "message", "text", "msg"];
pub(super) const STATUSES: [&str; 20] = [
    "notificationtype",
    "status",
    "state",
    "alertstatus",
    "alertstate",
    "currentstatus",
    "currentstate",
    "newstatus",
    "newstate",
    "servicestate",
    "hoststate",
    "statename",
    "checkstatename",
    "alerttypefriendlyname",
    "eventtype",
    "eventname",
    "action",
    "type",
    "event",
    "notificationevent",
];
pub(super) const SEVERITIES: [&str; 6] = ["severity", "priority", "level", "urgency", "criticality", "alertseverity"];
pub(super) const RUNBOOKS: [&str; 2] = ["runbookurl", "runbook"];
/// Words of a severity that are the end of an alert.
pub(super) const ENDS: [&str; 5] = ["clear", "cleared", "ok", "resolved", "recovered"];
/// Words of a state that say how bad it is.
pub(super) const CRITICAL: [&str; 5] = ["critical", "crit", "fatal", "disaster", "emergency"];
/// Pieces of a word such as `resolved_item` or `incident-closed`.
pub(super) const PIECES: [&str; 8] =
    ["resolved", "resolve", "recovered", "recovery", "closed", "cleared", "acknowledged", "acknowledgement"];
