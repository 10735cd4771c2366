//! The pages of one session: branches of sub-agents, its model calls, earlier sessions of its alert, and its search.

mod branches;
mod calls;
mod earlier;
mod search;
