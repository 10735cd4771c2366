//! Dead letters: alerts that were given up. Workers publish them; people list, drop and retry them.

pub(crate) mod publish;
pub(crate) mod stored;
