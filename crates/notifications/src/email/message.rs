//! Writes an e-mail: headers by types that encode their values, and the report as text and as HTML.

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Message, MultiPart};
use lettre::{Address, message::Mailbox};
use uuid::Uuid;

use crate::destination::render::{Report, lines_in_html, rendered};
use tarsy_config::EmailRoute;
use tarsy_config::sections::destinations::{Form, Part, Render};
use tarsy_core::notification::{Notification, email};

/// The longest text, in characters. The link leads to all of it.
const MAX_TEXT: usize = 20_000;
/// The longest HTML, in characters.
const MAX_HTML: usize = 60_000;
/// Tells programs that answer by themselves, as for a holiday, that they should not: RFC 3834.
const AUTO_SUBMITTED: HeaderName = HeaderName::new_from_ascii_str("Auto-Submitted");

/// A message as it is sent.
#[derive(Debug)]
pub(super) struct Email {
    /// The `Message-ID`, which is the receipt as well.
    pub(super) id: String,
    pub(super) from: Address,
    pub(super) to: Vec<Address>,
    pub(super) bytes: Vec<u8>,
}

impl Email {
    /// The message of a route; `first` is the receipt of the session's first one.
    ///
    /// # Errors
    /// A text with the reason, when the message cannot be written.
    pub(super) fn new(
        route: &EmailRoute,
        message: &Notification,
        first: Option<&str>,
    ) -> Result<Self, String> {
        let id = format!("<{}@{}>", message.key.id(), route.from.email.domain());
        let subject = email::subject(message);
        let mut builder = Message::builder()
            .from(route.from.clone())
            .date_now()
            .message_id(Some(id.clone()))
            .raw_header(HeaderValue::new(
                AUTO_SUBMITTED,
                "auto-generated".to_owned(),
            ));
        for recipient in &route.to {
            builder = builder.to(recipient.clone());
        }
        builder = match first.filter(|first| is_id(first)) {
            Some(first) => builder
                .subject(format!("Re: {subject}"))
                .in_reply_to(first.to_owned())
                .references(first.to_owned()),
            None => builder.subject(subject),
        };
        let written = builder
            .multipart(content(message))
            .map_err(|error| format!("the message cannot be written: {error}"))?;
        Ok(Self {
            id,
            from: route.from.email.clone(),
            to: route.to.iter().map(address).collect(),
            bytes: written.formatted(),
        })
    }
}

fn address(mailbox: &Mailbox) -> Address {
    mailbox.email.clone()
}

/// Whether a receipt is one of this kind. A route may have been another one when the first message was sent.
fn is_id(receipt: &str) -> bool {
    let id = receipt
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
        .and_then(|id| id.split_once('@'));
    id.is_some_and(|(id, host)| {
        let is_host = host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
        Uuid::parse_str(id).is_ok() && is_host
    })
}

/// The report, or the words of the operator's template, as text and as HTML.
fn content(message: &Notification) -> MultiPart {
    let text;
    let body;
    match email::text(message) {
        Some(written) => {
            body = lines_in_html(&written, message.url.as_deref().unwrap_or_default());
            text = written;
        }
        None => {
            let report = Report::new(message).without_marker();
            text = part(&report, Form::Text);
            body = part(&report, Form::Html);
        }
    }
    let html = format!(
        "<!DOCTYPE html><html><head><meta charset=\"utf-8\"></head><body>{body}</body></html>"
    );
    MultiPart::alternative_plain_html(text, html)
}

fn part(report: &Report, form: Form) -> String {
    let max = match form {
        Form::Text | Form::Markdown => MAX_TEXT,
        Form::Html | Form::Adf => MAX_HTML,
    };
    let render = Render {
        part: Part::Report,
        form,
        max,
    };
    rendered(report, render)
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
