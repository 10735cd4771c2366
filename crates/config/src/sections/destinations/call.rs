//! Reads a request: its method with the path, its query, and its body.

use super::body;
use super::declaration::{Body, Call, Method, NamedText};
use super::text::{Place, Scope, Text};
use crate::read::reader::{Field, Map};

/// The methods that add a note.
const OF_NOTES: [Method; 3] = [Method::Post, Method::Put, Method::Patch];
/// The methods that read something.
const OF_READS: [Method; 2] = [Method::Get, Method::Post];
const PATH: &str = "a path that begins with /, without a query, .. and //";

/// The request of a lookup or of a list.
pub(super) fn read(map: &mut Map<'_>, scope: &Scope, place: Place) -> Option<Call> {
    let parts = Parts::read(map, scope, place, &OF_READS);
    if parts.target.is_none() && !Parts::has_target(map, &OF_READS) {
        map.missing("get", PATH);
    }
    parts.call(None)
}

/// The request that adds a note. Its keys stand beside those of the destination.
pub(super) fn read_note(map: &mut Map<'_>, scope: &Scope, base: Option<Call>) -> Option<Call> {
    let parts = Parts::read(map, scope, Place::Elsewhere, &OF_NOTES);
    if parts.target.is_none() && base.is_none() && !Parts::has_target(map, &OF_NOTES) {
        map.missing("post", PATH);
    }
    parts.call(base)
}

/// The parts that a file has.
struct Parts {
    target: Option<Target>,
    query: Option<Vec<NamedText>>,
    body: Option<Body>,
}

struct Target {
    method: Method,
    path: Vec<Text>,
}

impl Parts {
    fn read(map: &mut Map<'_>, scope: &Scope, place: Place, methods: &[Method]) -> Self {
        let mut target = None;
        for method in methods {
            let Some(field) = map.get(method.as_str()) else {
                continue;
            };
            if target.is_some() {
                field.fault("a second request; accepted: one".into());
            } else {
                target = path(&field, scope, place).map(|path| Target {
                    method: *method,
                    path,
                });
            }
        }
        let query = map
            .get("query")
            .map(|field| body::pairs(&field, scope, place));
        let json = map.get("json");
        let form = map.get("form");
        if let (Some(_), Some(form)) = (&json, &form) {
            form.fault("a second body; accepted: either json or form".into());
        }
        let body = match json {
            Some(json) => body::node(&json, scope, place).map(Body::Json),
            None => form.map(|form| Body::Form(body::pairs(&form, scope, place))),
        };
        Self {
            target,
            query,
            body,
        }
    }

    fn has_target(map: &Map<'_>, methods: &[Method]) -> bool {
        methods.iter().any(|method| map.has(method.as_str()))
    }

    fn call(self, base: Option<Call>) -> Option<Call> {
        let base = match (self.target, base) {
            (Some(Target { method, path }), base) => Call {
                method,
                path,
                query: base
                    .as_ref()
                    .map(|base| base.query.clone())
                    .unwrap_or_default(),
                body: base.map_or(Body::None, |base| base.body),
            },
            (None, base) => base?,
        };
        Some(Call {
            query: self.query.unwrap_or(base.query),
            body: self.body.unwrap_or(base.body),
            ..base
        })
    }
}

/// The segments of a path.
fn path(field: &Field<'_>, scope: &Scope, place: Place) -> Option<Vec<Text>> {
    let written = field.text()?;
    let Some(rest) = written.strip_prefix('/') else {
        field.expected(PATH);
        return None;
    };
    let segments: Vec<&str> = rest.split('/').collect();
    let last = segments.len().saturating_sub(1);
    let is_refused = segments.iter().enumerate().any(|(index, segment)| {
        segment.is_empty() && index != last || matches!(*segment, "." | "..")
    });
    if is_refused || written.contains(['?', '#', '\\']) {
        field.expected(PATH);
        return None;
    }
    segments
        .into_iter()
        .map(|segment| body::parsed(field, segment, scope, place))
        .collect()
}
