//! The table of what providers say, in order of precedence. The first row that fits decides.
//!
//! A word is a code or a type, and stands here as its small letters and digits. A phrase is a part of a text in small
//! letters without quotation marks; `*` stands for anything between two parts of it.

use std::ops::RangeInclusive;

use super::Verdict;
use super::phrases::{BLOCKED, BUSY, MONEY, OVERFLOW, PAY, RATE_LIMITED, UNAVAILABLE};
use crate::llm::service::provider::error::ErrorCode;

/// A row of the table.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) verdict: Verdict,
    /// The statuses with which it counts. A failure without a status fits every row.
    pub(super) statuses: RangeInclusive<u16>,
    pub(super) words: &'static [&'static str],
    pub(super) phrases: &'static [&'static str],
}

const EVERY: RangeInclusive<u16> = 400..=599;
const REQUEST: RangeInclusive<u16> = 400..=428;

pub(super) const RULES: [Rule; 17] = [
    Rule {
        verdict: Verdict::lasting(ErrorCode::ThoughtSignature),
        statuses: REQUEST,
        words: &["invalidencryptedcontent"],
        phrases: &[
            "invalid signature in thinking",
            "signature in thinking",
            "encrypted content",
            "expected thinking",
            "thought signature",
            "thought_signature",
        ],
    },
    // The model wrote a call that its server could not read. Another attempt writes another one.
    Rule {
        verdict: Verdict::transient(ErrorCode::MalformedToolCall),
        statuses: EVERY,
        words: &["toolusefailed", "toolcallvalidationfailed", "malformedfunctioncall", "malformedtoolcall"],
        phrases: &[
            "failed to call a function",
            "tool call validation failed",
            "tool_use_failed",
            "error parsing tool call",
            "failed to parse tool call",
            "failed to parse the tool call",
            "malformed_function_call",
            "model*generated*invalid tool call",
            "model produced invalid*tool",
            "tool use block that is not valid",
        ],
    },
    // The limit of the answer is not that of the conversation.
    Rule {
        verdict: Verdict::lasting(ErrorCode::InvalidRequest),
        statuses: REQUEST,
        words: &[],
        phrases: &[
            "maximum allowed number of output tokens",
            "at most*completion tokens",
            "at most*output tokens",
            "max_tokens must be",
            "unsupported parameter: max_tokens",
            "max_tokens is not supported",
        ],
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::ContextWindowExceeded),
        statuses: EVERY,
        words: &[
            "contextlengthexceeded",
            "contextexceeded",
            "contextwindowexceeded",
            "contextwindowexceedederror",
            "contextlimitexceeded",
            "contextoverflow",
            "exceedcontextsizeerror",
            "modelmaxprompttokensexceeded",
            "modelcontextwindowexceeded",
            "maxprompttokensexceeded",
            "promptistoolong",
            "prompttoolong",
            "requesttoolarge",
            "stringabovemaxlength",
            "inputtoolong",
            "1261",
        ],
        phrases: OVERFLOW,
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::Blocked),
        statuses: REQUEST,
        words: &[
            "contentfilter",
            "contentfiltered",
            "contentpolicyviolation",
            "contentpolicyviolationerror",
            "contentmoderation",
            "responsibleaipolicyviolation",
            "datainspectionfailed",
            "moderationblocked",
            "moderationflagged",
            "promptblocked",
            "guardrailintervened",
            "promptinjectiondetected",
            "safetyviolation",
            "1301",
        ],
        phrases: BLOCKED,
    },
    // A request with these tokens fits into no minute: to wait does not help, to be shorter does.
    Rule {
        verdict: Verdict::lasting(ErrorCode::ContextWindowExceeded),
        statuses: 400..=429,
        words: &[],
        phrases: &["request too large for", "tokens must be reduced in order to run", "reduce your message size"],
    },
    Rule {
        verdict: Verdict::transient(ErrorCode::RateLimited),
        statuses: EVERY,
        words: RATE_LIMITED,
        phrases: &[
            "rate limit exceeded",
            "rate limit reached",
            "rate limit of",
            "rate limits exceeded",
            "rate limited",
            "rate-limited",
            "rate limit error",
            "rate_limit_error",
            "rate_limit_exceeded",
            "ratelimiterror",
            "ratelimit exceeded",
            "exceeded*rate limit",
            "exceed*rate limit",
            "hit*rate limit",
            "reached*rate limit",
            "too many requests",
            "too many concurrent requests",
            "too many tokens, please wait",
            "concurrency limit",
            "throttl",
            "resource_exhausted",
            "resource has been exhausted",
            "quota exceeded for*per minute",
            "requests per minute",
            "tokens per minute",
            "slow down",
        ],
    },
    Rule { verdict: Verdict::transient(ErrorCode::Unavailable), statuses: EVERY, words: UNAVAILABLE, phrases: &[] },
    // A client that asks too often is asked to try again, too.
    Rule { verdict: Verdict::transient(ErrorCode::Unavailable), statuses: REQUEST, words: &[], phrases: BUSY },
    Rule { verdict: Verdict::transient(ErrorCode::Unavailable), statuses: 430..=599, words: &[], phrases: BUSY },
    // Generic words that some gateways also give to a request that is wrong.
    Rule {
        verdict: Verdict::transient(ErrorCode::Unavailable),
        statuses: 500..=599,
        words: &["apierror", "servererror", "internalerror", "internalservererror", "upstreamerror", "internal"],
        phrases: &[],
    },
    // A quota of money is not there again after a short wait.
    Rule { verdict: Verdict::lasting(ErrorCode::Credentials), statuses: REQUEST, words: MONEY, phrases: PAY },
    Rule { verdict: Verdict::lasting(ErrorCode::RateLimited), statuses: 429..=429, words: MONEY, phrases: PAY },
    Rule {
        verdict: Verdict::lasting(ErrorCode::ContextWindowExceeded),
        statuses: EVERY,
        words: &[],
        phrases: &["too many tokens", "too many input tokens", "token limit exceeded", "exceeded*token limit"],
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::ModelNotFound),
        statuses: REQUEST,
        words: &[
            "modelnotfound",
            "modelnotfounderror",
            "notfounderror",
            "modelnotexist",
            "unknownmodel",
            "deploymentnotfound",
            "invalidmodel",
            "modelnotavailable",
            "resourcenotfoundexception",
        ],
        phrases: &[
            "model not found",
            "model*does not exist",
            "no such model",
            "unknown model",
            "not a valid model",
            "invalid model name",
            "invalid model id",
            "no endpoints found",
            "model identifier is invalid",
            "deployment for this resource does not exist",
            "is not found for api version",
            "model*has been decommissioned",
            "model*is not supported for generatecontent",
        ],
    },
    Rule {
        verdict: Verdict::lasting(ErrorCode::Credentials),
        statuses: REQUEST,
        words: &[
            "authenticationerror",
            "permissionerror",
            "invalidapikey",
            "apikeyinvalid",
            "apikeyexpired",
            "apikeyserviceblocked",
            "incorrectapikey",
            "unauthorized",
            "unauthenticated",
            "unauthorizederror",
            "permissiondenied",
            "accessdenied",
            "accessdeniedexception",
            "unrecognizedclientexception",
            "expiredtokenexception",
            "invalidauthenticationerror",
            "modelaccessdenied",
            "forbidden",
        ],
        phrases: &[
            "incorrect api key",
            "invalid api key",
            "invalid x-api-key",
            "api key not valid",
            "api key not found",
            "api key expired",
            "api key is invalid",
            "api_key_invalid",
            "no api key",
            "invalid authentication",
            "authentication fails",
            "invalid bearer token",
            "security token*is invalid",
            "user location is not supported",
            "billing to be enabled",
            "enable billing",
        ],
    },
    // Only of an event: a response has a status for it.
    Rule {
        verdict: Verdict::lasting(ErrorCode::InvalidRequest),
        statuses: 400..=400,
        words: &[
            "invalidrequesterror",
            "invalidprompt",
            "invalidrequest",
            "badrequest",
            "badrequesterror",
            "invalidargument",
            "validationexception",
            "unsupportedparameter",
        ],
        phrases: &[],
    },
];
