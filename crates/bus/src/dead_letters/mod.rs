//! Dead letters: alerts that were given up. Workers publish them; people list, drop and retry them.

pub mod publish;
pub mod stored;
