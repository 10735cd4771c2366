//! Access control: checks the user and the rights of each request before its handler.
//!
//! In order: the name in `Host`, the user, and the page that a form comes from. A handler gets the user's rights as the
//! extension `Access`.

mod host;
mod form;
mod proxy;
mod cookie;
pub(super) mod login;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde_json::json as value;

pub use self::host::Hosts;
pub use self::proxy::{Proxy, ProxyHeaders};

use crate::json::{self, API};
use crate::rights::Access;
use crate::shell::response::error_page;
use tarsy_http::listener::Token;
use tarsy_http::listener::http::{self, ClientAddress};

/// The time limit for the body of a form and its answer.
const FORM_TIMEOUT: Duration = Duration::from_secs(20);
/// The same for a client that is not known yet.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(3);
/// The paths that everyone may read: they contain no data.
const WITHOUT_LOGIN: [&str; 2] = ["/login", "/assets/"];

/// The authentication of users, and their rights.
#[derive(Debug)]
pub struct Gate {
    pub mode: Mode,
    pub hosts: Hosts,
    pub allow: Allow,
}

/// The mode of authentication.
#[derive(Debug)]
pub enum Mode {
    /// Everyone who reaches the listener may read, and do nothing else. For a loopback address.
    Open,
    /// Authentication by a token, sent as a bearer token or by a login.
    Token(Token),
    /// Authentication by a proxy, which names the user.
    Proxy(Proxy),
}

/// The groups that may do more than read. `*` represents every user who is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    pub ask: Vec<String>,
    pub cancel: Vec<String>,
    pub rerun: Vec<String>,
    pub submit: Vec<String>,
    /// May judge analyses.
    pub judge: Vec<String>,
    /// May see the requests to models. `*` represents every reader, also where no user is known.
    pub prompts: Vec<String>,
    /// May see the configuration of workers, their tool servers and providers.
    pub system: Vec<String>,
}

/// A user who is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct User {
    name: Option<String>,
    groups: Vec<String>,
    credentials: Credentials,
}

/// The form in which a request carries credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Credentials {
    /// The browser or the network adds them to every request, also to one that another site causes.
    #[default]
    Ambient,
    /// The client itself adds them.
    Bearer,
}

/// The reason for refusing a request before its handler.
#[derive(Debug, PartialEq, Eq)]
enum Denied {
    Host,
    Unknown,
    Form(&'static str),
}

/// Answers a request that is not admitted, and passes on the others.
pub(super) async fn admit(
    State(gate): State<Arc<Gate>>,
    mut request: Request,
    next: Next,
) -> Response {
    match gate.check(&request) {
        Ok(access) => {
            proxy::strip(request.headers_mut());
            request.headers_mut().remove(AUTHORIZATION);
            let timeout = if access.is_known {
                http::authenticated(request.extensions());
                FORM_TIMEOUT
            } else {
                LOGIN_TIMEOUT
            };
            let reads = is_read(request.method());
            request.extensions_mut().insert(access);
            if reads {
                // A stream of events has no time limit.
                return next.run(request).await;
            }
            match tokio::time::timeout(timeout, next.run(request)).await {
                Ok(response) => response,
                Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
            }
        }
        Err(denied) => {
            if denied == Denied::Unknown && request.headers().contains_key(AUTHORIZATION) {
                tokio::time::sleep(login::WRONG_TOKEN_DELAY).await;
            }
            gate.deny(&denied, &request)
        }
    }
}

impl Gate {
    fn check(&self, request: &Request) -> Result<Access, Denied> {
        let headers = request.headers();
        if !self.hosts.admit(request) {
            return Err(Denied::Host);
        }
        let path = request.uri().path();
        let is_free = WITHOUT_LOGIN.iter().any(|free| path.starts_with(free));
        let known = self.user(headers);
        if known.is_none() && !is_free {
            return Err(Denied::Unknown);
        }
        if !is_read(request.method()) {
            let credentials = known.as_ref().map(|user| user.credentials);
            form::check(headers, &self.hosts, credentials.unwrap_or_default())
                .map_err(Denied::Form)?;
        }
        Ok(self.access(known, request))
    }

    /// `None` for a request without valid credentials, if the mode wants any.
    fn user(&self, headers: &HeaderMap) -> Option<User> {
        match &self.mode {
            Mode::Open => Some(User::default()),
            Mode::Token(token) => {
                let (is_valid, credentials) = if headers.contains_key(AUTHORIZATION) {
                    (token.matches(headers), Credentials::Bearer)
                } else {
                    (cookie::is_valid(headers, token), Credentials::Ambient)
                };
                is_valid.then(|| User {
                    name: Some("web".to_owned()),
                    groups: Vec::new(),
                    credentials,
                })
            }
            Mode::Proxy(proxy) => proxy::user(headers, proxy),
        }
    }

    fn access(&self, known: Option<User>, request: &Request) -> Access {
        let is_known = known.is_some();
        let user = known.unwrap_or_default();
        let is_in = |groups: &[String]| {
            groups
                .iter()
                .any(|group| group == "*" || user.groups.contains(group))
        };
        let may = |groups: &[String]| user.name.is_some() && is_in(groups);
        let address = request
            .extensions()
            .get::<ClientAddress>()
            .map(|ClientAddress(address)| address.to_string());
        let counted_as = match &self.mode {
            Mode::Proxy(_) => user.name.clone().or_else(|| address.clone()),
            // Everyone has the same name here, or none.
            Mode::Open | Mode::Token(_) => address.clone(),
        };
        Access {
            may_ask: may(&self.allow.ask),
            may_cancel: may(&self.allow.cancel),
            may_rerun: may(&self.allow.rerun),
            may_submit: may(&self.allow.submit),
            may_judge: may(&self.allow.judge),
            may_see_prompts: is_in(&self.allow.prompts),
            may_see_system: may(&self.allow.system),
            has_login: matches!(self.mode, Mode::Token(_)),
            counted_as: counted_as.unwrap_or_default(),
            user: user.name,
            groups: user.groups,
            address,
            is_known,
        }
    }

    fn deny(&self, denied: &Denied, request: &Request) -> Response {
        let path = request.uri().path();
        let for_program = path.starts_with(API);
        if *denied == Denied::Unknown && !for_program && matches!(self.mode, Mode::Token(_)) {
            return login::redirect(request);
        }
        let (status, reason) = match denied {
            Denied::Host => (
                StatusCode::MISDIRECTED_REQUEST,
                "the header Host names neither this machine nor web.public_url: set web.public_url or web.hosts in \
                 tarsy.yaml",
            ),
            Denied::Unknown if matches!(self.mode, Mode::Proxy(_)) => (
                StatusCode::UNAUTHORIZED,
                "the proxy in front of this server names no user",
            ),
            Denied::Unknown => (StatusCode::UNAUTHORIZED, "a bearer token is required"),
            Denied::Form(reason) => (StatusCode::FORBIDDEN, *reason),
        };
        let mut response = if for_program {
            json::response(status, &value!({"error": reason}))
        } else {
            error_page(status, reason)
        };
        if status == StatusCode::UNAUTHORIZED && matches!(self.mode, Mode::Token(_)) {
            let scheme = HeaderValue::from_static("Bearer realm=\"tarsy\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

fn is_read(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}
