//! Words of keys, in lower case without separators. A word with the name of the object around it matches both
//! spellings: `monitorname` for `monitor_name` and for `name` in `monitor`.

use crate::sources::WordList;

pub(super) const TYPES: WordList = WordList::new(
    "alertname alertrulename rulename alertrule monitorname checkname policyname conditionname triggername \
     detectorname probename testname jobname servicename serviceoutputname servicedesc servicedescription alarm \
     alarmname rule check monitor",
);
/// Types that are also titles.
pub(super) const NAMES: WordList = WordList::new("name title subject alert");
pub(super) const TITLES: WordList = WordList::new(
    "title alerttitle headline summary subject incidentname problemtitle name message description text msg reason \
     output",
);
pub(super) const SEVERITIES: WordList = WordList::new(
    "severity alertseverity priority level urgency criticality impact importance prio loglevel",
);
pub(super) const STATUSES: WordList = WordList::new(
    "status state alertstatus alertstate currentstate currentstatus newstate newstatus statename transition \
     alerttypefriendlyname notificationtype eventtype eventname event action type kind webhookeventtype alerttype \
     what result",
);
/// Flags that are true at the end.
pub(super) const ENDED: WordList =
    WordList::new("resolved isresolved recovered isrecovered closed isclosed");
/// Flags that are true while there is a problem.
pub(super) const PRESENT: WordList =
    WordList::new("firing isfiring isdown down isopen triggered alerting inalarm");
/// A key that the sender has made for this purpose.
pub(super) const DEDUP: WordList = WordList::new(
    "dedupkey dedupekey deduplicationkey dedupid aggregationkey alertkey problemkey fingerprint",
);
/// Ids of conditions. An id of an incident, an alert or an event is another one at the next time.
pub(super) const CONDITIONS: WordList = WordList::new(
    "monitorid monitoruuid checkid checkuuid ruleid ruleuid alertruleid alertdefinitionid policyid conditionid \
     triggerid detectorid probeid testid jobid applicationid componentid serviceid",
);
/// The resource that has a problem, from the most specific.
pub(super) const RESOURCES: WordList = WordList::new(
    "host hostname hostdisplayname servername server instance node nodename machine device service servicename \
     servicedesc resource resourcename resourceid component componentname chart namespace pod container application \
     app project projectname environment queue topic database cluster region site target",
);
pub(super) const RUNBOOKS: WordList =
    WordList::new("runbookurl runbook playbookurl playbook runbooklink instructionsurl");
pub(super) const TIMES: WordList = WordList::new(
    "updatedat changedat occurredat happenedat eventtime timestamp time datetime alertdatetime eventtimestamp \
     statechangetime lastchange sentat date when ts triggeredat startedat startsat starttime createdat created",
);
pub(super) const LABELS: WordList = WordList::new(
    "labels tags attributes dimensions facets commonlabels customfields vars metadata extra",
);
/// Lists with an alert in each element.
pub(super) const LISTS: WordList = WordList::new(
    "alerts events incidents messages notifications records issues problems results items",
);
