//! Dead letters: alerts that were given up, stored for people.

pub(crate) mod publish;
pub(crate) mod stored;
