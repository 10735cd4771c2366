//! The table of known provider errors, in order of precedence. The first row that matches decides.
//!
//! A word is a code or a type, written as its small letters and digits. A phrase is a part of a text in small
//! letters without quotation marks; `*` represents anything between two parts of it.

use std::ops::RangeInclusive;

use super::Verdict;
use crate::service::provider::error::ErrorCode;

/// A row of the table.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) verdict: Verdict,
    /// The statuses with which it counts. A failure without a status fits every row.
    pub(super) statuses: RangeInclusive<u16>,
    /// Codes and types, separated by spaces.
    pub(super) words: &'static str,
    /// Parts of texts, one in each line.
    pub(super) phrases: &'static str,
}

const EVERY: RangeInclusive<u16> = 400..=599;
const REQUEST: RangeInclusive<u16> = 400..=428;

const BUSY: &str = include_str!("phrases/busy.txt");
const UNPAID: &str = include_str!("phrases/unpaid.txt");
const RATE_LIMITED: &str = "\
    ratelimiterror ratelimit ratelimited ratelimitexceeded ratelimitreached \
    ratelimitreachederror toomanyrequests toomanyrequestserror requestlimitexceeded \
    resourceexhausted limitrequests limitburstrate throttling throttlingratequota \
    throttlingallocationquota throttlingburstrate throttlingexception throttled slowdown \
    concurrencylimitexceeded 1302 1305";
const UNAVAILABLE: &str = "\
    overloaded overloadederror engineoverloaded engineoverloadederror modeloverloaded \
    serveroverloaded requesttimeout requesttimeouterror timeout timeouterror gatewaytimeout \
    upstreamtimeout modeltimeoutexception apitimeouterror apiconnectionerror connectionerror \
    connectionreset badgateway serviceunavailable serviceunavailableerror \
    serviceunavailableexception unavailable temporarilyunavailable modelnotready \
    modelnotreadyexception modelloading internalserverexception modelstreamerrorexception \
    streamreaderror deadlineexceeded aborted servererrortryagain";
const MONEY: &str = "\
    insufficientquota insufficientbalance insufficientcredits insufficientfunds \
    billinghardlimitreached billingerror billingnotactive paymentrequired arrearage \
    exceededcurrentquotaerror 1113";

pub(super) const RULES: [Rule; 18] = [
    Rule {
        verdict: Verdict::lasting(ErrorCode::ThoughtSignature),
        statuses: REQUEST,
        words: "invalidencryptedcontent",
        phrases: include_str!("phrases/thought_signature.txt"),
    },
    // The model wrote a call that its server could not read. Another attempt writes another one.
    Rule {
        verdict: Verdict::transient(ErrorCode::MalformedToolCall),
        statuses: EVERY,
        words: "toolusefailed toolcallvalidationfailed malformedfunctioncall malformedtoolcall \
                outputparsefailed",
        phrases: include_str!("phrases/malformed_tool_call.txt"),
    },
    // The server subtracted the conversation from its window.
    Rule {
        verdict: Verdict::lasting(ErrorCode::ContextWindowExceeded),
        statuses: EVERY,
        words: "",
        phrases: include_str!("phrases/no_room.txt"),
    },
    // The limit of the answer is not that of the conversation.
    Rule {
        verdict: Verdict::lasting(ErrorCode::InvalidRequest),
        statuses: REQUEST,
        words: "",
        phrases: include_str!("phrases/output_limit.txt"),
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::ContextWindowExceeded),
        statuses: EVERY,
        words: "contextlengthexceeded contextexceeded contextwindowexceeded \
                contextwindowexceedederror contextlimitexceeded contextoverflow \
                exceedcontextsizeerror modelmaxprompttokensexceeded modelcontextwindowexceeded \
                maxprompttokensexceeded promptistoolong prompttoolong requesttoolarge \
                stringabovemaxlength inputtoolong 1261",
        phrases: include_str!("phrases/overflow.txt"),
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::Blocked),
        statuses: REQUEST,
        words: "contentfilter contentfiltered contentpolicyviolation contentpolicyviolationerror \
                contentmoderation responsibleaipolicyviolation datainspectionfailed \
                moderationblocked moderationflagged promptblocked guardrailintervened \
                promptinjectiondetected safetyviolation 1301",
        phrases: include_str!("phrases/blocked.txt"),
    },
    // A request with these tokens fits into no minute: to wait does not help, to be shorter does.
    Rule {
        verdict: Verdict::lasting(ErrorCode::ContextWindowExceeded),
        statuses: 400..=429,
        words: "",
        phrases: include_str!("phrases/too_large.txt"),
    },
    Rule {
        verdict: Verdict::transient(ErrorCode::RateLimited),
        statuses: EVERY,
        words: RATE_LIMITED,
        phrases: include_str!("phrases/rate_limited.txt"),
    },
    Rule {
        verdict: Verdict::transient(ErrorCode::Unavailable),
        statuses: EVERY,
        words: UNAVAILABLE,
        phrases: "",
    },
    // A client that asks too often is asked to try again, too.
    Rule {
        verdict: Verdict::transient(ErrorCode::Unavailable),
        statuses: REQUEST,
        words: "",
        phrases: BUSY,
    },
    Rule {
        verdict: Verdict::transient(ErrorCode::Unavailable),
        statuses: 430..=599,
        words: "",
        phrases: BUSY,
    },
    // Generic words that some gateways also give to a request that is wrong.
    Rule {
        verdict: Verdict::transient(ErrorCode::Unavailable),
        statuses: 500..=599,
        words: "apierror servererror internalerror internalservererror upstreamerror internal",
        phrases: "",
    },
    // A quota of money is not there again after a short wait.
    Rule {
        verdict: Verdict::lasting(ErrorCode::Credentials),
        statuses: REQUEST,
        words: MONEY,
        phrases: UNPAID,
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::RateLimited),
        statuses: 429..=429,
        words: MONEY,
        phrases: UNPAID,
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::ContextWindowExceeded),
        statuses: EVERY,
        words: "",
        phrases: include_str!("phrases/too_many_tokens.txt"),
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::ModelNotFound),
        statuses: REQUEST,
        words: "modelnotfound modelnotfounderror notfounderror modelnotexist unknownmodel \
                deploymentnotfound invalidmodel modelnotavailable resourcenotfoundexception",
        phrases: include_str!("phrases/model_not_found.txt"),
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::Credentials),
        statuses: REQUEST,
        words: "authenticationerror permissionerror invalidapikey apikeyinvalid apikeyexpired \
                apikeyserviceblocked incorrectapikey unauthorized unauthenticated \
                unauthorizederror permissiondenied accessdenied accessdeniedexception \
                unrecognizedclientexception expiredtokenexception invalidauthenticationerror \
                modelaccessdenied forbidden",
        phrases: include_str!("phrases/credentials.txt"),
    },
    // Only of an event: a response has a status for it.
    Rule {
        verdict: Verdict::lasting(ErrorCode::InvalidRequest),
        statuses: 400..=400,
        words: "invalidrequesterror invalidprompt invalidrequest badrequest badrequesterror \
                invalidargument validationexception unsupportedparameter",
        phrases: "",
    },
];
