//! Names of keys. `KEYS` and `SOFT_KEYS` are whole keys in lower case without separators, the others are pieces.

use crate::sources::WordList;

/// An identity of the sender's choice, for this purpose only.
pub(super) const KEYS: WordList = WordList::new(
    "dedupkey dedupekey deduplicationkey dedupid incidentkey alertkey problemkey groupkey fingerprint deduplicationid",
);
/// The same of some senders, and the name of a host or a device of others.
pub(super) const SOFT_KEYS: WordList =
    WordList::new("alias aggregationkey entityid uniqueid eventkey externalid");
/// Words for objects that watch: their ids and names are those of the problem.
pub(super) const CONDITIONS: WordList = WordList::new(
    "alert alerts alarm rule check monitor policy condition trigger detector probe sensor test job slo search watch \
     datasource definition schedule workflow pipeline playbook query",
);
/// Whole keys of the same.
pub(super) const CONDITION_WORDS: WordList = WordList::new(
    "alertname alarmname rulename checkname monitorname monitorfriendlyname policyname conditionname triggername \
     servicedesc servicedescription servicedisplayname sensorname testname jobname searchname ruleuid checkcommand \
     metricname metric problemname alertrulename meldung störung",
);
/// The words for one occurrence of a problem, which has a new id each time.
pub(super) const INCIDENTS: WordList =
    WordList::new("incident alertgroup issue problem outage case ticket emergency fault");
/// Words for objects that have the problem.
pub(super) const RESOURCES: WordList = WordList::new(
    "host hostname hosts server servername node nodename device devicename machine vm computer instance service \
     servicename app application applicationname component resource resources target targets entity object container \
     pod namespace deployment workload queue topic database db schema table bucket disk volume mount mountpoint \
     filesystem partition interface ifname port endpoint domain address ip subsystem function source contributor \
     rechner gerät equipo servidor serveur \
     scope shard dimension link sysname fqdn certificate drive agent balancer cpu",
);
/// Words for places of the problem, which many objects share.
pub(super) const AREAS: WordList = WordList::new(
    "cluster region zone site datacenter env environment tenant project account org organization organisation team \
     standort group stage subscription workspace space customer rack company location",
);
/// Objects and lists with labels.
pub(super) const LABELS: WordList =
    WordList::new("labels tags dimensions facets facet groupby grouping scopes");
/// Objects that only surround others.
pub(super) const AROUND: WordList = WordList::new(
    "data payload body content detail details info information properties metadata meta attributes event message \
     notification context spec fields result params custom",
);
/// Ids of messages, of measurements and of people.
pub(super) const MESSAGES: WordList = WordList::new(
    "event message notification request delivery trace span session result run execution log transaction correlation \
     occurrence process update snapshot evaluation webhook batch build commit image",
);
/// Objects about people and the past, and measured values.
pub(super) const BESIDE: WordList = WordList::new(
    "user users author actor assignee assigned owner sender contact contacts recipient responders responder history \
     previous prev old last before prior annotations values links permalinks urls images violations matches samples \
     series thresholds timeline footer notes comments by reporting inputs evaluations",
);
/// Pieces of keys whose values change from message to message, wherever they stand.
pub(super) const VOLATILE: WordList = WordList::new(
    "status state severity nseverity duration uptime downtime elapsed perf color colour timestamp revision signature \
     percent silence urgency criticality run",
);
/// The same at the end of a key.
pub(super) const VOLATILE_ENDS: WordList = WordList::new(
    "priority level impact health phase outcome conclusion verdict milestone transition value values val current age \
     count counter counts occurrences occurrence total hits percentage ratio avg average latency load usage used free \
     score attempt attempts retries retry sequence seq clock epoch ts when since until time times date datetime took \
     timezone nonce token secret password icon image snapshot version sha commit build href permalink url uri webhook \
     locations code started ended resolved recovered cleared closed acknowledged acked triggered firing ok clear size \
     length remaining days measured observed actual reading emoji ack rank priorities",
);
/// Whole keys of what a message is.
pub(super) const KINDS: WordList = WordList::new(
    "eventtype eventaction notificationtype messagetype alerttype alertaction actiontype triggertype action \
     webhooktype webhookevent notificationevent triggerevent alerttypefriendlyname changetype eventcategory \
     updatetype statetype monitoringtool username channel mrkdwnin",
);
/// Ends of keys of free texts.
pub(super) const TEXTS: WordList = WordList::new(
    "message description text body details detail output msg cause notes note comment comments content fallback log \
     stacktrace error explanation info",
);
/// Ends of keys of titles.
pub(super) const TITLES: WordList = WordList::new("title summary subject headline caption");
/// Ends of keys with a name or an id.
pub(super) const NAME_ENDS: WordList = WordList::new("name displayname label slug friendlyname");
pub(super) const ID_ENDS: WordList = WordList::new("id uid uuid guid reference ref number arn urn");
