//! The context that all fields of one file share: the environment, and the faults found so far.

use std::cell::RefCell;
use std::fmt;

use super::fault::Fault;
use super::names::Names;
use super::template::{Resolved, Template, TemplateError};
use crate::Env;

/// The environment and the collected faults of one file.
pub struct Context<'e> {
    env: Env<'e>,
    faults: RefCell<Vec<Fault>>,
    resolved: RefCell<Resolved>,
    pub(crate) names: Names,
}

impl<'e> Context<'e> {
    pub fn new(env: Env<'e>) -> Self {
        Self {
            env,
            faults: RefCell::default(),
            resolved: RefCell::default(),
            names: Names::default(),
        }
    }

    /// The context of a file that defines these names.
    pub(crate) fn with_names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// A text with its variables replaced, whose values no fault shows.
    pub(super) fn resolve(&self, template: &Template) -> Result<String, TemplateError> {
        let text = template.resolve(self.env)?;
        self.resolved
            .borrow_mut()
            .add(template, self.env, |_, _| true);
        Ok(text)
    }

    /// The faults, sorted by line. None shows the value of a variable.
    pub fn into_faults(self) -> Vec<Fault> {
        let mut faults = self.faults.into_inner();
        let resolved = self.resolved.into_inner();
        for fault in &mut faults {
            fault.problem = resolved.unresolved(&fault.problem);
        }
        faults.sort_by_key(|fault| fault.line);
        faults
    }

    /// The number of faults so far.
    pub(super) fn faults(&self) -> usize {
        self.faults.borrow().len()
    }

    /// Sorts the faults after the first `from` ones.
    pub(super) fn sort_by_key<K: Ord>(&self, from: usize, key: impl FnMut(&Fault) -> K) {
        if let Some(faults) = self.faults.borrow_mut().get_mut(from..) {
            faults.sort_by_key(key);
        }
    }

    pub(super) fn fault(&self, key: String, line: usize, problem: String) {
        self.faults.borrow_mut().push(Fault { key, line, problem });
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}
