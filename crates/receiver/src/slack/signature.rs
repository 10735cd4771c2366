//! The signature of Slack: HMAC-SHA-256 over `v0:<timestamp>:<raw body>`, which ends after five minutes.
//! Source: <https://docs.slack.dev/authentication/verifying-requests-from-slack>.

use chrono::{DateTime, Utc};
use data_encoding::HEXLOWER;
use hyper::HeaderMap;

use crate::proof::HmacKeys;
use crate::response::Rejection;

const TIMESTAMP: &str = "x-slack-request-timestamp";
const SIGNATURE: &str = "x-slack-signature";
/// The version of the signature, before its digits and in what is signed.
const VERSION: &str = "v0";
/// The greatest difference between the time of a request and the clock of this machine, in seconds.
const MAX_SKEW_SECS: u64 = 300;

/// Checks that Slack has sent these bytes within the last minutes.
///
/// # Errors
/// When the time or the signature is missing, doubled or wrong. The reason names no secret.
pub(super) fn check(
    keys: &HmacKeys,
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<(), Rejection> {
    let unproven = |reason: &str| Rejection::Unproven(reason.to_owned());
    let time = single(headers, TIMESTAMP)
        .filter(|time| !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit()));
    let time = time.ok_or_else(|| unproven("the time of the request is missing"))?;
    let seconds: i64 = time
        .parse()
        .map_err(|_| unproven("the time of the request is none"))?;
    if now.timestamp().abs_diff(seconds) > MAX_SKEW_SECS {
        return Err(unproven(
            "the time of the request differs by more than 300 s from this clock",
        ));
    }
    let signature = single(headers, SIGNATURE)
        .and_then(|signature| signature.strip_prefix(VERSION)?.strip_prefix('='))
        .and_then(|hex| HEXLOWER.decode(hex.as_bytes()).ok())
        .ok_or_else(|| unproven("the signature of the request is missing"))?;
    let message = [VERSION.as_bytes(), b":", time.as_bytes(), b":", body].concat();
    if keys.any_verifies(&message, &signature) {
        Ok(())
    } else {
        Err(unproven("the signature does not belong to this request"))
    }
}

/// The value of a header that is there once.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use ring::hmac;

    use super::*;

    /// The example of Slack's page.
    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const TIME: i64 = 1_531_420_618;
    const BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow\
        &channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect\
        &text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN\
        &trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const EXPECTED: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    fn headers(time: &str, signature: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(TIMESTAMP, HeaderValue::from_str(time).unwrap());
        headers.insert(SIGNATURE, HeaderValue::from_str(signature).unwrap());
        headers
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn keys(secrets: &[&str]) -> HmacKeys {
        let secrets: Vec<String> = secrets.iter().map(|each| (*each).to_owned()).collect();
        HmacKeys::new(&secrets)
    }

    #[test]
    fn the_example_of_slack_is_accepted_for_five_minutes() {
        let signed = headers(&TIME.to_string(), EXPECTED);
        let keys = keys(&["another secret", SECRET]);
        for seconds in [TIME - 300, TIME, TIME + 300] {
            assert_eq!(check(&keys, &signed, BODY.as_bytes(), at(seconds)), Ok(()));
        }
        for seconds in [TIME - 301, TIME + 301] {
            let late = check(&keys, &signed, BODY.as_bytes(), at(seconds));
            assert!(matches!(late, Err(Rejection::Unproven(_))), "{late:?}");
        }
    }

    #[test]
    fn every_other_time_signature_body_and_secret_is_refused() {
        let time = TIME.to_string();
        let mut doubled = headers(&time, EXPECTED);
        doubled.append(SIGNATURE, HeaderValue::from_static("v0=00"));
        let mut late = headers(&time, EXPECTED);
        late.append(TIMESTAMP, HeaderValue::from_static("9"));
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let v1 = hmac::sign(&key, format!("v1:{time}:{BODY}").as_bytes());
        let v1 = HEXLOWER.encode(v1.as_ref());
        let good = keys(&[SECRET]);
        for (keys, headers, body) in [
            (&good, HeaderMap::new(), BODY),
            (&good, headers(&time, ""), BODY),
            (&good, headers(&time, "v0="), BODY),
            (
                &good,
                headers(&time, EXPECTED.trim_start_matches("v0=")),
                BODY,
            ),
            (&good, headers(&time, &EXPECTED.replace("v0", "v1")), BODY),
            (&good, headers(&time, &format!("v1={v1}")), BODY),
            (&good, headers(&time, &format!("v0={v1}")), BODY),
            (&good, headers(&time, &EXPECTED.to_uppercase()), BODY),
            (&good, headers(&time, &format!("{EXPECTED}00")), BODY),
            (&good, headers(&(TIME + 1).to_string(), EXPECTED), BODY),
            (&good, headers(&format!("+{time}"), EXPECTED), BODY),
            (&good, headers("", EXPECTED), BODY),
            (&good, headers("99999999999999999999", EXPECTED), BODY),
            (&good, doubled, BODY),
            (&good, late, BODY),
            (&good, headers(&time, EXPECTED), "token=other"),
            (&keys(&["another secret"]), headers(&time, EXPECTED), BODY),
            (&keys(&[]), headers(&time, EXPECTED), BODY),
        ] {
            let checked = check(keys, &headers, body.as_bytes(), at(TIME));
            assert!(
                matches!(checked, Err(Rejection::Unproven(_))),
                "{headers:?}: {checked:?}"
            );
        }
    }
}
