//! Authentication of web users: from the configuration and the secrets of the environment.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use tarsy_config::{Secret, Web, WebAuth, WebProxyHeaders, environment_fault, process_env};
use tarsy_http::listener::Token;
use tarsy_web::access::{Allow, Gate, Hosts, Mode, Proxy, ProxyHeaders};

const TOKEN: &str = "TARSY_WEB_TOKEN";
const PROXY_SECRET: &str = "TARSY_WEB_PROXY_SECRET";
const READ_INTERVAL: Duration = Duration::from_secs(2);

/// The rules of access, and the secret that is read again.
pub(super) struct Configured {
    pub(super) gate: Gate,
    /// The mode, for the log.
    pub(super) name: &'static str,
    pub(super) renewed: Option<Renewed>,
}

/// A secret of a file, which is accepted without a restart when it changes.
pub(super) struct Renewed {
    token: Token,
    file: Secret,
}

/// Reads the secrets.
///
/// # Errors
/// When a secret is missing or unusable, or `listen` can be reached from other machines while no user is known.
pub(super) fn gate(web: &Web, listen: SocketAddr) -> anyhow::Result<Configured> {
    let token = read(TOKEN)?;
    let auth = web.auth.unwrap_or(match token {
        Some(_) => WebAuth::Token,
        None => WebAuth::None,
    });
    let (name, mode, renewed) = match auth {
        WebAuth::None if !listen.ip().is_loopback() => {
            let problem = format!(
                "is not set, and {listen} can be reached from other machines: set it or {TOKEN}_FILE, set web.auth: proxy, \
                 or listen on 127.0.0.1"
            );
            return Err(environment_fault(TOKEN, problem).into());
        }
        WebAuth::None => ("none", Mode::Open, None),
        WebAuth::Token => {
            let (token, renewed) = token.ok_or_else(|| missing(TOKEN, "token"))?;
            ("token", Mode::Token(token), renewed)
        }
        WebAuth::Proxy => {
            let (secret, renewed) =
                read(PROXY_SECRET)?.ok_or_else(|| missing(PROXY_SECRET, "proxy"))?;
            let headers = web.proxy_headers.map(|family| match family {
                WebProxyHeaders::XForwarded => ProxyHeaders::XForwarded,
                WebProxyHeaders::XAuthRequest => ProxyHeaders::XAuthRequest,
            });
            ("proxy", Mode::Proxy(Proxy { secret, headers }), renewed)
        }
    };
    // Pages may lie below a path; a request names the host alone.
    let public_url = web.public_url.as_ref();
    let public_url = public_url.and_then(|public| url::Url::parse(&public.to_string()).ok());
    let allow = web.allow.clone();
    let gate = Gate {
        mode,
        hosts: Hosts {
            public_url: public_url.map(|public| public.origin().ascii_serialization()),
            further: web.hosts.clone(),
        },
        allow: Allow {
            ask: allow.ask,
            cancel: allow.cancel,
            rerun: allow.rerun,
            submit: allow.submit,
            judge: allow.judge,
            prompts: allow.prompts,
            system: allow.system,
        },
    };
    Ok(Configured {
        gate,
        name,
        renewed,
    })
}

fn missing(variable: &str, auth: &str) -> anyhow::Error {
    let problem = format!("is not set, and web.auth is {auth}: set it or {variable}_FILE");
    environment_fault(variable, problem).into()
}

/// The secret of a variable or of the file that `<variable>_FILE` names.
fn read(variable: &str) -> anyhow::Result<Option<(Token, Option<Renewed>)>> {
    let Some(secret) = Secret::find(variable, &process_env)? else {
        return Ok(None);
    };
    let text = secret
        .read()
        .map_err(|error| environment_fault(variable, error.to_string()))?;
    let problem =
        "is empty or has spaces or letters beyond ASCII; accepted: visible ASCII characters";
    let token = Token::new(text.trim_end())
        .ok_or_else(|| environment_fault(variable, problem.to_owned()))?;
    let file = Secret::file_of(&format!("{variable}_FILE"), &process_env);
    let renewed = file.map(|file| Renewed {
        token: token.clone(),
        file,
    });
    Ok(Some((token, renewed)))
}

/// Reads the file of the secret again and again. A new token ends all logins of the one before.
pub(super) async fn keep_up(renewed: Option<Renewed>) -> Infallible {
    let Some(Renewed { token, file }) = renewed else {
        return std::future::pending().await;
    };
    let mut last_fault = None;
    loop {
        tokio::time::sleep(READ_INTERVAL).await; // pacing of reads
        let fault = match file.read() {
            Ok(text) if token.renew(text.trim_end()) => None,
            Ok(_) => Some("the file has no token".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = &fault
            && last_fault.as_ref() != Some(fault)
        {
            tracing::error!(fault, "secret not reloaded: the previous one stays in use");
        }
        last_fault = fault;
    }
}
