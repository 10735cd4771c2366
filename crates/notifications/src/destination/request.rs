//! A request of a declaration with the values of a note. The place of a value decides how it is written: nothing else
//! of a request depends on it.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::HIDDEN;
use super::render::{Report, rendered};
use super::values::{Fault, Values};
use tarsy_config::sections::destinations::{
    Body, Call, Destination, Method, Name, NamedText, Node, Piece, Text,
};

/// All characters but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A request that can be sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: reqwest::Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
}

/// The parts of which requests are made.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) destination: &'a Destination,
    pub(super) values: &'a Values<'a>,
    pub(super) report: &'a Report,
}

impl Request {
    /// # Errors
    /// When a reference is absent, or a value cannot stand in its place.
    pub(super) fn new(parts: &Parts<'_>, call: &Call) -> Result<Self, Fault> {
        let body = match &call.body {
            Body::None => None,
            Body::Json(node) => Some(Content {
                kind: "application/json",
                text: parts.json(node)?.to_string(),
            }),
            Body::Form(fields) => Some(Content {
                kind: "application/x-www-form-urlencoded",
                text: parts.form(fields)?,
            }),
        };
        let mut headers = parts.headers()?;
        if let Some(body) = &body {
            headers
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static(body.kind));
        }
        Ok(Self {
            method: match call.method {
                Method::Get => reqwest::Method::GET,
                Method::Post => reqwest::Method::POST,
                Method::Put => reqwest::Method::PUT,
                Method::Patch => reqwest::Method::PATCH,
            },
            url: parts.url(call)?,
            headers,
            body: body.map(|body| body.text),
        })
    }

    /// The request as a text of HTTP for people, with an indented body. A value of a header that the declaration has
    /// as it is may be a secret, and is not shown.
    pub(super) fn shown(&self, declared: &[NamedText]) -> String {
        let mut out = format!("{} {}\n", self.method, self.url);
        let mut headers: Vec<String> = self
            .headers
            .iter()
            .map(|(name, value)| {
                let value = if is_hidden(name, declared) {
                    HIDDEN.into()
                } else {
                    String::from_utf8_lossy(value.as_bytes())
                };
                format!("{name}: {value}\n")
            })
            .collect();
        headers.sort();
        headers.iter().for_each(|header| out.push_str(header));
        if let Some(body) = &self.body {
            let json = serde_json::from_str::<Value>(body).ok();
            let pretty = json.map(|json| format!("{json:#}"));
            // Writing to a text cannot fail.
            writeln!(out, "\n{}", pretty.as_deref().unwrap_or(body)).ok();
        }
        out
    }
}

/// Finds that the value of a header may be a secret of the declaration: it has a literal part and no `{secret}`. The
/// two headers that name a type have none.
fn is_hidden(name: &HeaderName, declared: &[NamedText]) -> bool {
    let is_type = matches!(name.as_str(), "accept" | "content-type");
    !is_type
        && declared
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case(name.as_str()))
            .any(|header| {
                let pieces = &header.text.0;
                pieces
                    .iter()
                    .any(|piece| matches!(piece, Piece::Literal(_)))
                    && !pieces.contains(&Piece::Value(Name::Secret))
            })
}

/// A body with its type.
struct Content {
    kind: &'static str,
    text: String,
}

impl Parts<'_> {
    fn url(&self, call: &Call) -> Result<Url, Fault> {
        let mut address = self.destination.base.clone();
        for segment in &call.path {
            address.push('/');
            address.push_str(&self.segment(segment)?);
        }
        let mut url = Url::parse(&address)
            .map_err(|error| Fault::Unfit(format!("its address is no URL: {error}")))?;
        for parameter in &call.query {
            let value = self.values.text(&parameter.text)?;
            url.query_pairs_mut().append_pair(&parameter.name, &value);
        }
        Ok(url)
    }

    /// One segment of a path: a value stays within it.
    fn segment(&self, text: &Text) -> Result<String, Fault> {
        let segment = self.values.text(text)?;
        let is_slash_at_end = text.0.is_empty();
        if !is_slash_at_end && matches!(segment.as_str(), "" | "." | "..") {
            return Err(Fault::Unfit(format!("{segment:?} as a part of its path")));
        }
        Ok(utf8_percent_encode(&segment, RESERVED).to_string())
    }

    /// The headers of every request; a value has visible ASCII characters and blanks only.
    fn headers(&self) -> Result<HeaderMap, Fault> {
        let mut headers = HeaderMap::new();
        for NamedText { name, text } in &self.destination.headers {
            let unfit =
                || Fault::Unfit(format!("the value of the header {name} is not plain ASCII"));
            let filled = self.values.text(text)?;
            if filled.is_empty() || !filled.chars().all(|c| matches!(c, ' '..='~')) {
                return Err(unfit());
            }
            let mut value = HeaderValue::try_from(filled).map_err(|_| unfit())?;
            value.set_sensitive(text.0.contains(&Piece::Value(Name::Secret)));
            let name = HeaderName::try_from(name.as_str()).map_err(|_| unfit())?;
            headers.insert(name, value);
        }
        Ok(headers)
    }

    fn json(&self, node: &Node) -> Result<Value, Fault> {
        Ok(match node {
            Node::Text(text) => Value::from(self.values.text(text)?),
            Node::Number(number) => Value::Number(number.clone()),
            Node::Bool(yes) => Value::Bool(*yes),
            Node::Null => Value::Null,
            Node::List(items) => items
                .iter()
                .map(|item| self.json(item))
                .collect::<Result<_, _>>()?,
            Node::Map(members) => Value::Object(
                members
                    .iter()
                    .map(|member| Ok((member.name.clone(), self.json(&member.node)?)))
                    .collect::<Result<Map<_, _>, Fault>>()?,
            ),
            Node::Render(render) => rendered(self.report, *render),
        })
    }

    fn form(&self, fields: &[NamedText]) -> Result<String, Fault> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        for field in fields {
            form.append_pair(&field.name, &self.values.text(&field.text)?);
        }
        Ok(form.finish())
    }
}
