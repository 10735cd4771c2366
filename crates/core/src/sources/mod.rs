//! The sources of alerts: rules that recognise the bodies of each vendor, and pointers to the fields of an alert.
//!
//! A [`Source`] is a plain value. The configuration reads it from YAML, for built-in sources and for those of users
//! alike: `config/sections/sources/`. [`Sources`] recognises a body; [`Source::map`] reads the fields of an alert with
//! [`Expression`]s, which are pointers and no language. The intake makes an alert of them.

mod pointer;
mod view;
mod expression;
mod words;
mod capture;
mod document;
mod rule;
mod labels;
mod key;
mod time;
mod source;
mod trace;
mod map;
mod set;

pub use capture::{Capture, CaptureFault};
pub use expression::{Expression, ExpressionFault};
pub use key::{Key, KeyPart, canonical};
pub use labels::LabelSource;
pub use map::Mapped;
pub(crate) use pointer::escaped_key;
pub use pointer::{Base, Pointer, PointerFault};
pub use rule::{Condition, Rule, Sign, TestSign};
pub use set::{NamedSource, Reader, Sources};
pub use source::{LinkSource, RefSource, Source, Tag, TagRef, Words};
pub use time::parse as parse_time;
pub use trace::{Note, Origin, Repair, Traced};
pub use view::View;
pub(crate) use view::scalar;
pub use words::{
    WordList, WordTable, ended_of, is_severity_word, key_pieces, pieces, severity_of, status_of,
};
