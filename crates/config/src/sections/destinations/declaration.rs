//! A destination: the requests by which a note about an investigation is added to what the alert is about. Plain
//! values; `tarsy-notifications` fills and sends them.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Number;

use super::text::Text;
use crate::secret::SecretSource;

/// The declaration of a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The address before every path, without `/` at its end; empty in a declaration that leaves it to the user.
    pub base: String,
    /// Parameters of the declaration; an empty one is left to the user.
    pub with: BTreeMap<String, String>,
    /// The references without which there is nothing to add a note to.
    pub needs: Vec<Need>,
    pub lookup: Option<Lookup>,
    pub find: Option<Find>,
    /// The request that adds a note.
    pub note: Call,
    /// The headers of every request.
    pub headers: Vec<NamedText>,
    /// The statuses of an answer to a note that was added.
    pub accepted: Vec<u16>,
    /// The pointer to what an answer has only if its request has failed, whatever its status is.
    pub failed: Option<String>,
    /// Notes that this process sends in a minute.
    pub per_minute: u32,
    /// The vendor recognises a repetition by the note itself.
    pub idempotent: bool,
    pub secret: Option<SecretSource>,
}

/// A reference with its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub name: String,
    pub form: RefForm,
}

/// A regular expression that a reference has to meet.
#[derive(Clone, Debug)]
pub struct RefForm {
    pub regex: Regex,
}

impl PartialEq for RefForm {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for RefForm {}

/// The request for references that the alert does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    pub call: Call,
    pub take: Vec<Take>,
    /// Texts that have to be in the answer, so that it is about the right thing.
    pub equals: Vec<Equal>,
}

/// A reference in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    pub name: String,
    /// A JSON pointer.
    pub pointer: String,
}

/// A text that an answer has to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equal {
    /// A JSON pointer.
    pub pointer: String,
    pub text: Text,
}

/// The request for the list of notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    pub call: Call,
    /// The pointer to the list.
    pub items: String,
    /// The pointer to the text in an item.
    pub text: String,
    /// The most items that a list without pages can have: with so many it may be longer.
    pub size: Option<u32>,
}

/// A request below the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub method: Method,
    /// The segments of the path; a last one without pieces is a `/` at the end.
    pub path: Vec<Text>,
    pub query: Vec<NamedText>,
    pub body: Body,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
}

tarsy_core::words!(pub Method, pub ALL);

/// A header, a field of a form, or a parameter of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedText {
    pub name: String,
    pub text: Text,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    None,
    Json(Node),
    Form(Vec<NamedText>),
}

/// A node of a JSON body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Text(Text),
    Number(Number),
    Bool(bool),
    Null,
    List(Vec<Self>),
    Map(Vec<Member>),
    Render(Render),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub node: Node,
}

/// A text about the investigation, made of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Render {
    pub part: Part,
    pub form: Form,
    /// The longest result, in characters; of ADF in characters of its JSON.
    pub max: usize,
}

/// The rendered part of an investigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Part {
    /// Title, facts, the whole analysis, and the link.
    Report,
    /// Title, facts, the cause, and the link.
    Cause,
    /// The analysis alone.
    Analysis,
}

tarsy_core::words!(pub Part, pub ALL);

/// The form of a rendered text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Form {
    Text,
    Markdown,
    Html,
    /// The Atlassian Document Format, a tree of nodes.
    Adf,
}

tarsy_core::words!(pub Form, pub ALL);

impl Body {
    /// Whether the body has a rendered text, which ends with the marker, or a text that `has` accepts.
    pub(super) fn any(&self, has: impl Fn(&Text) -> bool) -> bool {
        match self {
            Self::None => false,
            Self::Json(node) => node.any(&has),
            Self::Form(fields) => fields.iter().any(|field| has(&field.text)),
        }
    }
}

impl Node {
    fn any(&self, has: &impl Fn(&Text) -> bool) -> bool {
        match self {
            Self::Text(text) => has(text),
            Self::Number(_) | Self::Bool(_) | Self::Null => false,
            Self::List(items) => items.iter().any(|item| item.any(has)),
            Self::Map(members) => members.iter().any(|member| member.node.any(has)),
            Self::Render(_) => true,
        }
    }
}
