//! Credentials in URLs: user and password, tokens as user, webhook paths, data source names.

use crate::bytes::{all, back, begins, byte, is_opaque, is_word, part, rest, skip, skip_near};
use crate::spans::{MASKED, SecretSpan, Span};

/// Hosts whose path is a credential, and the part of the path before it.
const WEBHOOKS: [(&str, &str); 35] = [
    ("infura.io", "/v3/"),
    ("alchemy.com", "/v2/"),
    ("alchemyapi.io", "/v2/"),
    ("quiknode.pro", "/"),
    ("hooks.slack-gov.com", "/services/"),
    ("uptime.betterstack.com", "/heartbeat/"),
    ("betteruptime.com", "/heartbeat/"),
    ("healthchecks.io", "/ping/"),
    ("hooks.jira.com", "/"),
    ("qyapi.weixin.qq.com", "/send"),
    ("logs.logdna.com", "/"),
    ("hooks.slack.com", "/services/"),
    ("hooks.slack.com", "/workflows/"),
    ("hooks.slack.com", "/triggers/"),
    ("discord.com", "/webhooks/"),
    ("discordapp.com", "/webhooks/"),
    ("webhook.office.com", "/webhookb2/"),
    ("outlook.office.com", "/webhook/"),
    ("api.telegram.org", "/bot"),
    ("open.feishu.cn", "/hook/"),
    ("open.larksuite.com", "/hook/"),
    ("events.pagerduty.com", "/integration/"),
    ("events.eu.pagerduty.com", "/integration/"),
    ("alert.victorops.com", "/alert/"),
    ("hooks.zapier.com", "/catch/"),
    ("maker.ifttt.com", "/key/"),
    ("hc-ping.com", "/"),
    ("nosnch.in", "/"),
    ("webhook.site", "/"),
    ("make.com", "/"),
    ("integromat.com", "/"),
    ("pipedream.net", "/"),
    ("hooks.airtable.com", "/workflows/"),
    ("api.opsgenie.com", "/integrations/"),
    ("hooks.newrelic.com", "/"),
];
/// Parts of a path before a token, for any host.
const PATHS: [&str; 6] = [
    "/hooks/",
    "/hook/",
    "/webhook/",
    "/webhooks/",
    "/incoming/",
    "/triggers/",
];
/// The longest URL that is read, in bytes.
const MAX_BYTES: usize = 4_096;

/// Finds the credentials of all URLs.
pub(crate) fn find(text: &str, spans: &mut Vec<SecretSpan>) {
    let colons = text.match_indices(':').map(|(at, _)| at);
    let mut places = colons
        .filter(|at| byte(text, at + 1) == b'/' && byte(text, at + 2) == b'/')
        .peekable();
    while let Some(at) = places.next() {
        let limit = places
            .peek()
            .copied()
            .unwrap_or(text.len())
            .min(at + MAX_BYTES);
        let scheme = back(text, at.saturating_sub(40), at, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-')
        });
        let next = text
            .as_bytes()
            .get(at + 3..limit)
            .unwrap_or_default()
            .iter()
            .position(|b| !in_address(*b));
        let end = next.map_or(limit, |length| at + 3 + length);
        let address = Span::new(at + 3, end);
        user_info(text, part(text, scheme, at), address, spans);
        webhook(text, address, spans);
    }
    for (at, _) in text.match_indices('@') {
        driver(text, at, spans);
    }
    if !text.contains('@') {
        return;
    }
    for (at, _) in text.match_indices("thin:") {
        let start = at + "thin:".len();
        let end = skip_near(text, start, 256, |b| !b.is_ascii_whitespace() && b != b'"');
        if let Some((user, tail)) = part(text, start, end).split_once('/')
            && let Some((password, _)) = tail.rsplit_once('@')
            && !password.is_empty()
        {
            let from = start + user.len() + 1;
            spans.push(SecretSpan::new(from, from + password.len()));
        }
    }
}

fn in_address(b: u8) -> bool {
    !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
}

/// The password of `user:password@host`, with any characters, and a token as the user.
fn user_info(text: &str, scheme: &str, span: Span, spans: &mut Vec<SecretSpan>) {
    let start = span.start;
    let address = span.text(text);

    let authority_end = address.find(['/', '?', '#']).unwrap_or(address.len());
    let authority = part(address, 0, authority_end);
    let is_web = begins(scheme, "http") || begins(scheme, "ws");
    let may_be_in_authority = is_web || !rest(address, authority_end).contains('@');
    let in_authority = if may_be_in_authority {
        authority.rfind('@')
    } else {
        None
    };
    let user_end = match in_authority {
        Some(at) => Some(at),
        // A password with `/`, `?` or `#` that is not percent-encoded.
        None if is_web => web_user_info(address),
        None => any_user_info(address),
    };
    let Some(user_end) = user_end else {
        return;
    };
    let info = part(address, 0, user_end);
    match info.split_once(':') {
        Some((user, password))
            if !password.is_empty() && password != MASKED && !is_variable(password) =>
        {
            let from = start + user.len() + 1;
            spans.push(SecretSpan::new(from, from + password.len()));
            if is_opaque(user, 20) {
                spans.push(SecretSpan::new(start, start + user.len()));
            }
        }
        Some(_) => {}
        None if is_opaque(info, 16) => spans.push(SecretSpan::new(start, start + info.len())),
        None => {}
    }
}

/// The end of the user info in an HTTP or WebSocket URL whose authority has no `@`. A host name with a dot has none.
fn web_user_info(address: &str) -> Option<usize> {
    let is_host = part(address, 0, address.find(':')?).contains('.');
    if is_host {
        None
    } else {
        any_user_info(address)
    }
}

/// The end of the user info in any other URL whose authority has no `@`.
fn any_user_info(address: &str) -> Option<usize> {
    let at = address.rfind('@')?;
    let (_, password) = part(address, 0, at).split_once(':')?;
    let head = password.split(['/', '?', '#']).next().unwrap_or_default();
    let is_port = !head.is_empty() && all(head, |b| b.is_ascii_digit());
    (!is_port && !password.is_empty()).then_some(at)
}

fn is_variable(password: &str) -> bool {
    let inner = [("${", '}'), ("$(", ')')]
        .into_iter()
        .find_map(|(open, close)| password.strip_prefix(open)?.strip_suffix(close));
    let starred = all(password, |b| matches!(b, b'*' | b'x'));
    starred || inner.is_some_and(|name| !name.is_empty() && all(name, is_word))
}

/// A data source name: `user:password@tcp(host)` of Go, and `user:password@host:port`.
fn driver(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let after = rest(text, at + 1);
    let called = ["tcp(", "unix(", "tcp4(", "tcp6(", "(", "//"]
        .iter()
        .any(|start| after.starts_with(start));
    let host = skip_near(after, 0, 256, |b| is_word(b) && b != b'_');
    let port = host > 0 && byte(after, host) == b':' && byte(after, host + 1).is_ascii_digit();
    if !called && !port {
        return;
    }
    let first = back(text, at.saturating_sub(160), at, in_address);
    let info = part(text, first, at);
    if info.contains("://") || info.contains('@') && !called {
        return;
    }
    let Some((user, password)) = info.split_once(':') else {
        return;
    };
    let named = all(user, is_word) && !user.is_empty();
    if named && !password.is_empty() && !is_variable(password) {
        let start = first + user.len() + 1;
        spans.push(SecretSpan::new(start, start + password.len()));
    }
}

fn webhook(text: &str, address: Span, spans: &mut Vec<SecretSpan>) {
    let Span { start, end } = address;
    let host_end = skip(text, start, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')
    });
    if byte(text, host_end) != b'/' && byte(text, host_end) != b':' {
        return;
    }
    let host = part(text, start, host_end);
    let path = part(text, host_end, end);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let known = WEBHOOKS.iter().filter(|(known, _)| {
        host.strip_suffix(known)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    });
    let token = known
        .filter_map(|(_, before)| Some(path.find(before)? + before.len()))
        .min()
        .filter(|from| path.len() >= from + 8);
    let token = token.or_else(|| {
        let found = PATHS
            .iter()
            .filter_map(|before| Some(path.find(before)? + before.len()));
        found
            .filter(|from| {
                rest(path, *from)
                    .split('/')
                    .any(|piece| is_opaque(piece, 16) || is_id(piece))
            })
            .min()
    });
    if let Some(from) = token {
        let hidden = path
            .trim_end_matches([',', '.', ')', ']', '}', ';', ':'])
            .len();
        if hidden > from {
            spans.push(SecretSpan::new(host_end + from, host_end + hidden));
        }
    }
}

/// A random word of lower case and digits, as those of Mattermost.
fn is_id(piece: &str) -> bool {
    piece.len() >= 20
        && all(piece, |b| b.is_ascii_alphanumeric())
        && piece.bytes().any(|b| b.is_ascii_digit())
}
