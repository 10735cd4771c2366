//! The rights of a request, which `access` decides and every handler gets.

use tarsy_core::approvals::Voter;

/// The rights of one request, an extension that every handler gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// The user's name for the timeline and the page; `None` without authentication.
    pub user: Option<String>,
    /// The groups that the proxy names.
    pub groups: Vec<String>,
    /// The address at the other end, which may be that of a proxy.
    pub address: Option<String>,
    /// Whether the user may ask questions; otherwise no form is rendered, and the route answers 404.
    pub may_ask: bool,
    /// Whether the user may cancel sessions; otherwise no form is rendered, and the route answers 404.
    pub may_cancel: bool,
    /// Whether the user may have alerts investigated again; otherwise no page links to the form, and the routes answer
    /// 403.
    pub may_rerun: bool,
    /// Whether the user may submit alerts; otherwise no page links to the form, and the routes answer 403.
    pub may_submit: bool,
    /// Whether the user may see the requests to models; otherwise no page links to them, and their routes answer 403.
    pub may_see_prompts: bool,
    /// Whether the user may see the system page; otherwise no page links to it, and its routes answer 403.
    pub may_see_system: bool,
    /// Whether the user may judge analyses; otherwise no form is rendered, and the route answers 404.
    pub may_judge: bool,
    /// Whether the user can log out here.
    pub has_login: bool,
    /// Whether the request has credentials, or needs none.
    pub(super) is_known: bool,
    /// The unit in which open streams are counted: the user, or the address at the other end.
    pub(super) counted_as: String,
}

impl Access {
    /// The user as a person who decides; `None` without authentication.
    pub(crate) fn person(&self) -> Option<Voter> {
        let name = self.user.clone()?;
        Some(Voter {
            name,
            groups: self.groups.clone(),
        })
    }
}
