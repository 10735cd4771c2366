//! Text with references `${VAR}` and `${VAR:-default}`, which are resolved only where the value is used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Env;

/// A text with references to environment variables. It is shown, compared and stored unresolved. `$${` represents `${`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Template(String);

/// The reason why a template cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A variable without a default is not set.
    #[error("variable {0} is not set (write ${{{0}:-…}} to allow that)")]
    Missing(String),
    /// A `${` has no name or no end.
    #[error(
        "\"${{\" without a name and \"}}\"; accepted: ${{NAME}}, ${{NAME:-default}}, $${{ for a plain one"
    )]
    Malformed,
}

impl Template {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The unresolved text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of the referenced variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let parts: Vec<&str> = self.0.split("${").collect();
        let references = parts.windows(2).filter_map(|pair| match pair {
            [before, after] if !before.ends_with('$') => {
                after.split_once('}').map(|(reference, _)| reference)
            }
            _ => None,
        });
        let names = references.map(|reference| {
            reference
                .split_once(":-")
                .map_or(reference, |(name, _)| name)
        });
        names.collect::<Vec<_>>().into_iter()
    }

    /// Replaces each reference with the value of its variable. References in a value are not resolved.
    ///
    /// # Errors
    /// When a variable is missing or a reference is malformed.
    pub fn resolve(&self, env: Env<'_>) -> Result<String, TemplateError> {
        let mut out = String::with_capacity(self.0.len());
        let mut rest = self.0.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                out.push_str(before);
                out.push_str("${");
                rest = after;
                continue;
            }
            out.push_str(before);
            let (reference, after) = after.split_once('}').ok_or(TemplateError::Malformed)?;
            let (name, default) = match reference.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (reference, None),
            };
            if !is_variable_name(name) {
                return Err(TemplateError::Malformed);
            }
            let value = env(name).filter(|value| !(value.is_empty() && default.is_some()));
            match (value, default) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(default)) => out.push_str(default),
                (None, None) => return Err(TemplateError::Missing(name.to_owned())),
            }
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// The values of variables, which no message shows: texts that contain one get its reference back.
#[derive(Clone, Default)]
pub struct Resolved(BTreeMap<String, String>);

impl std::fmt::Debug for Resolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.values()).finish()
    }
}

impl Resolved {
    /// A shorter value is part of many texts.
    const MIN_BYTES: usize = 4;

    /// Keeps the values of the variables of a template for which `is_kept` holds, a function of name and value.
    pub fn add(&mut self, template: &Template, env: Env<'_>, is_kept: impl Fn(&str, &str) -> bool) {
        for name in template.variables() {
            if let Some(value) =
                env(name).filter(|value| value.len() >= Self::MIN_BYTES && is_kept(name, value))
            {
                self.0
                    .insert(value.escape_debug().to_string(), name.to_owned());
                self.0.insert(value, name.to_owned());
            }
        }
    }

    /// The text with references in place of the values.
    pub fn unresolved(&self, text: &str) -> String {
        let mut longest_first: Vec<_> = self.0.iter().collect();
        longest_first.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        longest_first
            .into_iter()
            .fold(text.to_owned(), |text, (value, name)| {
                text.replace(value.as_str(), &format!("${{{name}}}"))
            })
    }
}

pub(super) fn is_variable_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().next().is_some_and(|c| !c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        let value = match name {
            "TOKEN" => "a\"b-s3cret",
            "PART" => "s3cret",
            "SHORT" => "abc",
            "A" => "${B}",
            "EMPTY" => "",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn the_variables_of_a_template_are_known_without_their_values() {
        let names = |text: &str| {
            Template::new(text)
                .variables()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(names("a ${A} $${B} ${C:-d} ${E"), ["A", "C"]);
        assert_eq!(names("plain"), Vec::<String>::new());
    }

    #[test]
    fn a_text_with_the_value_of_a_variable_gets_its_reference_back() {
        let mut resolved = Resolved::default();
        resolved.add(
            &Template::new("${TOKEN} ${PART} ${SHORT} ${NONE:-x}"),
            &env,
            |_, _| true,
        );
        let text = "a\"b-s3cret, \"a\\\"b-s3cret\", s3cret, abc";
        assert_eq!(
            resolved.unresolved(text),
            "${TOKEN}, \"${TOKEN}\", ${PART}, abc"
        );
        assert!(!format!("{resolved:?}").contains("s3cret"));
    }

    #[test]
    fn references_are_resolved_once_and_other_text_is_unchanged() {
        let cases = [
            ("plain $x {y}", Ok("plain $x {y}")),
            ("<${A}>", Ok("<${B}>")),
            ("${NONE:-d:-e}/${EMPTY:-f}/${EMPTY}", Ok("d:-e/f/")),
            ("$${A}", Ok("${A}")),
            ("${NONE}", Err(TemplateError::Missing("NONE".to_owned()))),
            ("${A", Err(TemplateError::Malformed)),
            ("${}", Err(TemplateError::Malformed)),
            ("${1A}", Err(TemplateError::Malformed)),
        ];
        for (text, expected) in cases {
            assert_eq!(
                Template::new(text).resolve(&env),
                expected.map(str::to_owned),
                "{text}"
            );
        }
    }
}
