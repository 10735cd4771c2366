//! Messages as they are written: headers, both forms, and values that try to be more than values.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::message::Email;
use crate::destination::tests::message;
use tarsy_config::{Config, EmailRoute, RouteKind};
use tarsy_core::alert::refs::Refs;
use tarsy_core::notification::template::Template;
use tarsy_core::notification::{MAY_REPEAT, Notification};

const ROUTE: &str = "notifications:\n  mail:\n    kind: email\n    smtp: {host: localhost, tls: none}\n    \
                     from: 'Wächter, the <tarsy@example.com>'\n    to: [ops@example.com, 'On call <oc@example.com>']\n";
const HOSTILE: [&str; 12] = [
    "a\r\nBcc: evil@example.com\r\n\r\nbody",
    "\r\n.\r\nMAIL FROM:<evil@example.com>\r\n",
    "\n\n--boundary\nContent-Type: text/html\n\n<script>alert(1)</script>",
    "=?utf-8?q?=0D=0ABcc:_evil@example.com?=",
    "\"quoted\" <evil@example.com>, other@example.com;",
    "<script>alert(1)</script><img src=x onerror=y>",
    "\u{202e}\u{0}\u{2028}\u{2029}\u{feff}\u{85}\u{b}",
    "[x](javascript:alert(1)) ![y](https://evil.example/p.png)",
    "Subject: other\rTo: evil@example.com\r",
    "ÄÖÜ 漢字 🔥 \u{0301}",
    "a=3D=\r\n=",
    "&lt;b&gt; </body></html>",
];

/// The headers, unfolded, and the body.
struct Parsed {
    headers: BTreeMap<String, String>,
    body: String,
}

fn route() -> EmailRoute {
    let config = Config::parse("f", ROUTE, &|_| None).unwrap();
    let RouteKind::Email(email) = &config.notifications["mail"].kind else {
        panic!("{config:?}")
    };
    (**email).clone()
}

fn parsed(email: &Email) -> Parsed {
    let text = String::from_utf8(email.bytes.clone()).unwrap();
    assert!(text.is_ascii(), "every server takes it: {text}");
    assert_eq!(
        text.matches('\n').count(),
        text.matches("\r\n").count(),
        "{text:?}"
    );
    assert!(text.lines().all(|line| line.len() <= 998), "{text}");
    let parts = text.split_once("\r\n\r\n").unwrap();
    let unfolded = parts.0.replace("\r\n ", " ");
    let mut headers = BTreeMap::new();
    for line in unfolded.lines() {
        let header = line
            .split_once(": ")
            .unwrap_or_else(|| panic!("no header: {line}"));
        let before = headers.insert(header.0.to_owned(), header.1.to_owned());
        assert_eq!(before, None, "{line}");
    }
    Parsed {
        headers,
        body: parts.1.to_owned(),
    }
}

fn written(message: &Notification, first: Option<&str>) -> Parsed {
    parsed(&Email::new(&route(), message, first).unwrap())
}

/// The kinds of parts in their order.
fn kinds(parsed: &Parsed) -> Vec<String> {
    let boundary = parsed.headers["Content-Type"].split('"').nth(1).unwrap();
    let between = format!("--{boundary}");
    let parts: Vec<&str> = parsed.body.split(&between).collect();
    assert!(
        parts[0].trim().is_empty() && parts[parts.len() - 1] == "--\r\n",
        "{parts:?}"
    );
    let heads = parts[1..parts.len() - 1]
        .iter()
        .map(|part| part.split("\r\n\r\n").next());
    let lines = heads.flat_map(|head| head.unwrap().lines());
    lines
        .filter_map(|line| line.strip_prefix("Content-Type: "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_message_has_the_headers_of_its_notification() {
    let message = message(Refs::default());
    let email = Email::new(&route(), &message, None).unwrap();
    assert_eq!(email.id, format!("<{}@example.com>", message.key.id()));
    let parsed = parsed(&email);
    assert_eq!(
        kinds(&parsed),
        ["text/plain; charset=utf-8", "text/html; charset=utf-8"]
    );
    let Parsed { headers, body } = parsed;
    let names: Vec<&str> = headers.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "Auto-Submitted",
            "Content-Type",
            "Date",
            "From",
            "MIME-Version",
            "Message-ID",
            "Subject",
            "To"
        ]
    );
    assert_eq!(headers["Auto-Submitted"], "auto-generated");
    assert_eq!(headers["Message-ID"], email.id);
    assert_eq!(headers["Subject"], "[tarsy] CheckoutErrors web-0");
    assert_eq!(
        headers["To"],
        "ops@example.com, \"On call\" <oc@example.com>"
    );
    assert!(
        headers["From"].ends_with(" <tarsy@example.com>"),
        "{}",
        headers["From"]
    );
    assert!(headers["Content-Type"].starts_with("multipart/alternative;"));
    assert!(body.contains("the heap limit of checkout leaves"), "{body}");
    assert!(!body.contains(&message.key.marker()), "{body}");
}

#[test]
fn a_second_message_replies_to_the_first_one_of_its_session() {
    let message = message(Refs::default());
    let first = "<0195a2b3-0000-7000-8000-000000000001@example.com>";
    let reply = written(&message, Some(first)).headers;
    assert_eq!(reply["Subject"], "Re: [tarsy] CheckoutErrors web-0");
    assert_eq!(
        (&*reply["In-Reply-To"], &*reply["References"]),
        (first, first)
    );
    for other in [
        "1700.1",
        "C0123/1700.1",
        "<x@example.com>",
        "<0195a2b3-0000-7000-8000-000000000001@a\r\nBcc: b@c>",
    ] {
        let headers = written(&message, Some(other)).headers;
        assert!(!headers.contains_key("References"), "{other}: {headers:?}");
        assert_eq!(headers["Subject"], "[tarsy] CheckoutErrors web-0");
    }
}

#[test]
fn a_repetition_has_the_same_id_and_says_so() {
    let once = message(Refs::default());
    let again = Notification {
        may_repeat: true,
        ..once.clone()
    };
    let ids = [&once, &again].map(|message| written(message, None).headers["Message-ID"].clone());
    assert_eq!(ids[0], ids[1]);
    let remarks = [&once, &again].map(|message| {
        let body = written(message, None).body.replace("=\r\n", "");
        body.matches(MAY_REPEAT).count()
    });
    assert_eq!(remarks, [0, 2], "in both forms");
}

#[test]
fn the_words_of_a_template_take_the_place_of_the_report() {
    let template = Template::parse("{title} & <b>\n{link} now").ok();
    let message = Notification {
        template,
        ..message(Refs::default())
    };
    let body = written(&message, None)
        .body
        .replace("=\r\n", "")
        .replace("=3D", "=");
    let url = message.url.unwrap();
    assert!(
        body.contains(&format!("CheckoutErrors web-0 & <b>\r\n{url} now")),
        "{body}"
    );
    let html = format!(
        "<p>CheckoutErrors web-0 &amp; &lt;b&gt;<br><a href=\"{url}\">{url}</a> now<br></p>"
    );
    assert!(body.contains(&html), "{body}");
}

/// A message with the value in every place that something outside of tarsy fills.
fn filled(value: &str) -> Notification {
    let mut message = message(Refs::default());
    message.summary.title = value.to_owned();
    message.summary.chain = Some(value.to_owned());
    message.summary.analysis = Some(format!("Cause: {value}\n\n{value}\n\n- {value}\n"));
    message
}

fn assert_same_structure(value: &str) {
    let harmless = written(&filled("harmless"), None);
    let hostile = written(&filled(value), None);
    assert_eq!(kinds(&hostile), kinds(&harmless), "{}", hostile.body);
    let headers = hostile.headers;
    assert!(headers.keys().eq(harmless.headers.keys()), "{headers:?}");
    for name in ["From", "To", "Message-ID", "Auto-Submitted", "MIME-Version"] {
        assert_eq!(headers[name], harmless.headers[name]);
    }
}

#[test]
fn no_value_changes_the_headers_or_the_parts_of_a_message() {
    HOSTILE
        .iter()
        .for_each(|value| assert_same_structure(value));
    // The beginning of an encoded word in a title is encoded itself.
    let title = written(&filled("=?utf-8?q?evil?="), None).headers["Subject"].clone();
    assert!(!title.contains("?q?evil?"), "{title}");
}

#[test]
fn a_long_message_is_bounded() {
    for text in [
        "x".repeat(1_000_000),
        "🔥\n\n".repeat(200_000),
        "<&>".repeat(300_000),
    ] {
        let message = filled(&text);
        let email = Email::new(&route(), &message, None).unwrap();
        assert!(email.bytes.len() < 512 * 1024, "{}", email.bytes.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_random_value_changes_the_structure(value in "\\PC{0,300}|[\\x00-\\x7f]{0,300}") {
        assert_same_structure(&value);
    }
}
