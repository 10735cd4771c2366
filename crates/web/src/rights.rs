//! The rights of a request, which `access` decides and every handler gets.

/// The rights of one request, an extension that every handler gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The user's name for the timeline and the page; `None` without authentication.
    pub user: Option<String>,
    /// Without it no form is rendered, and the route answers 404.
    pub may_ask: bool,
    /// As `may_ask`.
    pub may_cancel: bool,
    /// Without it no page links to the form, and the routes answer 403.
    pub may_rerun: bool,
    /// As `may_rerun`.
    pub may_submit: bool,
    /// Without it no page links to the requests to models, and their routes answer 403.
    pub may_see_prompts: bool,
    /// Whether the user can log out here.
    pub has_login: bool,
    /// Whether the request has credentials, or needs none.
    pub(super) is_known: bool,
    /// The unit in which open streams are counted: the user, or the address at the other end.
    pub(super) counted_as: String,
}
