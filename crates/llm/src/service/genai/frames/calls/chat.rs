//! Calls in pieces: chat completions.
//!
//! A piece has an index, an id, a piece of the name and a piece of the arguments, and servers leave out or repeat each
//! of them, change the id with each piece, or give each call the index 0.

use serde_json::Value;

use super::arguments::{Arguments, addition};
use super::{Called, LastCalls};
use crate::service::provider::fields::owned;
use tarsy_core::tool_names::SEPARATOR;

/// A call that may continue.
#[derive(Debug, Default)]
struct Open {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Arguments,
    /// The whole name came again after whole arguments: arguments that follow are those of another call of the tool.
    is_named_again: bool,
    /// Whether it may be the end of the call before it: the same name with another id after whole arguments.
    is_doubtful: bool,
}

#[derive(Debug)]
struct Piece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// The role of a piece for the call that it may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// More arguments of the call.
    More,
    /// The next part of the call's name, and perhaps arguments.
    MoreName,
    /// Data that the call has already.
    Repetition,
    /// The beginning of another call.
    Next,
    /// A piece that belongs to no call.
    Stray,
}

#[derive(Debug, Default)]
pub(in crate::service::genai::frames) struct Pieces {
    open: Vec<Open>,
    is_malformed: bool,
}

impl Pieces {
    pub(super) fn add(&mut self, event: &Value) {
        // The field before `tool_calls`, with one call.
        if let Some(function) = event
            .pointer("/choices/0/delta/function_call")
            .filter(|call| call.is_object())
        {
            self.add_piece(Piece {
                index: Some(0),
                id: String::new(),
                name: owned(function, "name"),
                arguments: addition(function.get("arguments")),
            });
        }
        let pieces = event
            .pointer("/choices/0/delta/tool_calls")
            .and_then(Value::as_array);
        for piece in pieces.into_iter().flatten() {
            let function = piece.get("function").unwrap_or(&Value::Null);
            self.add_piece(Piece {
                index: piece.get("index").and_then(Value::as_u64),
                id: owned(piece, "id"),
                name: owned(function, "name"),
                arguments: addition(function.get("arguments")),
            });
        }
    }

    fn add_piece(&mut self, piece: Piece) {
        let Some(position) = self.position(&piece) else {
            return self.begin(piece);
        };
        let is_only = self.open.len() == 1;
        let Some(call) = self.open.get_mut(position) else {
            return;
        };
        let is_stray = !is_only && call.is_unknown_without_index(&piece);
        let role = if is_stray {
            Role::Stray
        } else {
            call.role(&piece)
        };
        match role {
            Role::More => call.add(piece),
            Role::MoreName => {
                call.name.push_str(&piece.name);
                call.add(Piece {
                    name: String::new(),
                    ..piece
                });
            }
            Role::Repetition => {
                call.is_named_again |= call.arguments.is_whole() && !piece.name.is_empty();
            }
            Role::Stray => self.is_malformed = true,
            Role::Next => {
                let is_doubtful = piece.name.is_empty() || piece.name == call.name;
                let name = if is_doubtful {
                    call.name.clone()
                } else {
                    piece.name
                };
                self.begin(Piece { name, ..piece });
                if let Some(next) = self.open.last_mut() {
                    next.is_doubtful = is_doubtful;
                }
            }
        }
    }

    /// The call that a piece may belong to: that of its index, and among several ones that of its id. Without any, the
    /// id alone decides.
    fn position(&self, piece: &Piece) -> Option<usize> {
        let has_index = |call: &Open| piece.index.is_none() || call.index == piece.index;
        let has_id = |call: &Open| !piece.id.is_empty() && call.id == piece.id;
        let calls = self.open.iter();
        let with_both = calls
            .clone()
            .rposition(|call| has_index(call) && has_id(call));
        if with_both.is_some() {
            return with_both;
        }
        // Without an index, an id and a name begin another call, unless the last one still misses one of them.
        let begins = piece.index.is_none() && !piece.id.is_empty() && !piece.name.is_empty();
        let with_index = calls.clone().enumerate().rfind(|(_, call)| has_index(call));
        match with_index {
            Some((_, call)) if begins && !call.id.is_empty() && !call.name.is_empty() => None,
            Some((position, _)) => Some(position),
            None if piece.name.is_empty() => calls.clone().rposition(has_id),
            None => None,
        }
    }

    fn begin(&mut self, piece: Piece) {
        let mut own = Arguments::default();
        own.push(&piece.arguments);
        // Without an index, a whole object may be a part of the arguments before it.
        let may_be_part = piece.index.is_none() && own.is_whole();
        self.is_malformed |= may_be_part
            && self
                .open
                .last()
                .is_some_and(|call| !call.arguments.is_blank() && !call.arguments.is_whole());
        let mut call = Open {
            index: piece.index,
            ..Open::default()
        };
        call.add(piece);
        self.open.push(call);
    }

    pub(super) fn into_last(self) -> LastCalls {
        let mut last = LastCalls {
            calls: Vec::new(),
            is_malformed: self.is_malformed,
        };
        let mut has_nameless = false;
        for call in self.open {
            if call.name.is_empty() {
                has_nameless = true;
                last.is_malformed |= !call.arguments.is_trivial();
            } else if !(call.is_doubtful && call.arguments.is_blank()) {
                last.calls.push(Called {
                    id: call.id,
                    name: call.name,
                    arguments: call.arguments.into_text(),
                });
            }
        }
        // Beside other calls, a call without a name is the padding of a server.
        last.is_malformed |= has_nameless && last.calls.is_empty();
        last
    }
}

impl Open {
    fn add(&mut self, piece: Piece) {
        let is_begun = !self.id.is_empty() && !self.name.is_empty();
        if !is_begun && !piece.id.is_empty() {
            self.id = piece.id;
        }
        if self.name.is_empty() {
            self.name = piece.name;
        }
        self.arguments.push(&piece.arguments);
    }

    /// Whether a piece without an index has the id of another call.
    fn is_unknown_without_index(&self, piece: &Piece) -> bool {
        piece.index.is_none() && piece.name.is_empty() && self.has_other_id(piece)
    }

    fn has_other_id(&self, piece: &Piece) -> bool {
        !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id
    }

    fn role(&self, piece: &Piece) -> Role {
        let is_after_whole = self.arguments.is_whole() && !piece.arguments.trim().is_empty();
        match (self.name.is_empty(), piece.name.is_empty()) {
            (true, _) if is_after_whole => Role::Stray,
            (true, _) => Role::More,
            (false, true) if is_after_whole => self.role_after_whole(piece),
            (false, true) => Role::More,
            (false, false) if piece.name == self.name => self.role_of_same_name(piece),
            (false, false) => self.role_of_new_name(piece),
        }
    }

    /// The role of a piece of arguments after whole ones.
    fn role_after_whole(&self, piece: &Piece) -> Role {
        let is_same_call = !piece.id.is_empty() && piece.id == self.id;
        if !piece.begins_value() {
            Role::Stray
        } else if is_same_call && self.arguments.is_same(&piece.arguments) {
            Role::Repetition
        } else if self.is_named_again || piece.name == self.name {
            Role::Next
        } else {
            Role::Stray
        }
    }

    fn role_of_same_name(&self, piece: &Piece) -> Role {
        let is_blank = piece.arguments.trim().is_empty();
        if !self.has_other_id(piece) {
            return if !self.arguments.is_whole() {
                Role::More
            } else if is_blank {
                Role::Repetition
            } else {
                self.role_after_whole(piece)
            };
        }
        if self.arguments.is_whole() {
            Role::Next
        } else if self.arguments.is_blank() {
            Role::More
        } else if is_blank || piece.begins_value() {
            // Two calls whose pieces alternate, or one.
            Role::Stray
        } else {
            Role::More
        }
    }

    fn role_of_new_name(&self, piece: &Piece) -> Role {
        if self.has_other_id(piece) || self.arguments.is_whole() {
            Role::Next
        } else if self.arguments.is_blank() && !(is_full(&self.name) && is_full(&piece.name)) {
            Role::MoreName
        } else {
            Role::Stray
        }
    }
}

/// Whether a name has both of its parts, the server and the tool.
fn is_full(name: &str) -> bool {
    name.split_once(SEPARATOR)
        .is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

impl Piece {
    fn begins_value(&self) -> bool {
        self.arguments.trim_start().starts_with('{')
    }
}
