//! The HTTP client of runbooks: it connects to permitted addresses only, follows a redirect only after a check, and
//! sends a token only to the host that it is for.
//!
//! A proxy of the environment is used. It resolves names itself, so its own rules decide then where a name may lead.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{AUTHORIZATION, LOCATION};
use reqwest::{Certificate, Client, Response, Url};
use url::Host;

use super::Hosts;
use super::address::{Reach, Refused, refused};
use super::location::{GITHUB_RAW, redirected};
use tarsy_core::runbook::RunbookHost;
use tarsy_http::outgoing;

const MAX_REDIRECTS: usize = 5;

/// The client, which also trusts the authorities of `ca_file`.
///
/// # Errors
/// A text with the reason, when the file cannot be read or has no authority.
pub(super) fn build(hosts: &Hosts, ca_file: Option<&Path>) -> Result<Client, String> {
    let authorities = ca_file.map(authorities).transpose()?.unwrap_or_default();
    let builder = || outgoing::builder().dns_resolver(CheckedResolver(hosts.clone()));
    let built = builder().tls_certs_merge(authorities.clone()).build();
    // Without the authorities of the system, pages without TLS and those of `ca_file` can still be fetched.
    let built = built.or_else(|_| builder().tls_certs_only(authorities).build());
    built.map_err(|error| format!("no HTTP client: {}", described(error)))
}

fn authorities(file: &Path) -> Result<Vec<Certificate>, String> {
    let fault = |reason: &str| format!("runbooks.ca_file cannot be used: {reason}");
    let pem = std::fs::read(file).map_err(|error| fault(&error.to_string()))?;
    let authorities = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if authorities.is_empty() {
        Err(fault("it has no certificate in PEM"))
    } else {
        Ok(authorities)
    }
}

/// Requests a page and follows its redirects.
pub(super) async fn get(client: &Client, hosts: &Hosts, start: Url) -> Result<Response, NoPage> {
    let mut url = start;
    for _ in 0..=MAX_REDIRECTS {
        check_address(&url, hosts)?;
        let request = client.get(url.clone());
        let request = match hosts.tokens.header(&url).await.map_err(NoPage::Failed)? {
            Some(token) => request.header(AUTHORIZATION, token),
            None => request,
        };
        let answer = request.send().await.map_err(no_page)?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let location = if status.is_redirection() {
            answer.headers().get(LOCATION)
        } else {
            None
        };
        let Some(location) = location else {
            return Err(NoPage::Failed(format!(
                "its server answered with HTTP {}",
                status.as_u16()
            )));
        };
        let location = location
            .to_str()
            .map_err(|_| NoPage::Refused("it redirects to an invalid URL".to_owned()))?;
        url = redirected(&hosts.listed, &url, location).map_err(NoPage::Refused)?;
    }
    Err(NoPage::Refused(format!(
        "it redirects more than {MAX_REDIRECTS} times"
    )))
}

/// Checks a host that is an address, which is not resolved.
fn check_address(url: &Url, hosts: &Hosts) -> Result<(), NoPage> {
    let (address, name) = match url.host() {
        Some(Host::Ipv4(address)) => (address.into(), address.to_string()),
        Some(Host::Ipv6(address)) => (address.into(), address.to_string()),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    refused(address, hosts.reach(&name)).map_or(Ok(()), |why| Err(NoPage::Refused(why.to_string())))
}

impl Hosts {
    fn reach(&self, name: &str) -> Reach {
        let names = |hosts: &[RunbookHost]| hosts.iter().any(|host| host.has_name(name));
        // Every requested host is listed, or the one of GitHub's files; any other name is that of a proxy.
        let is_requested = names(&self.listed) || name.eq_ignore_ascii_case(GITHUB_RAW);
        if names(&self.private) || !is_requested {
            Reach::Private
        } else {
            Reach::Public
        }
    }
}

/// Resolves a name to its permitted addresses.
#[derive(Debug)]
struct CheckedResolver(Hosts);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0.reach(name.as_str());
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let (permitted, others): (Vec<SocketAddr>, Vec<SocketAddr>) = found
                .into_iter()
                .partition(|address| refused(address.ip(), reach).is_none());
            let refusal = others
                .first()
                .and_then(|address| refused(address.ip(), reach));
            match refusal {
                Some(refusal) if permitted.is_empty() => Err(io::Error::other(refusal).into()),
                Some(_) | None => Ok(Box::new(permitted.into_iter()) as Addrs),
            }
        })
    }
}

/// A failed request and its innermost cause, without the URL.
pub(super) fn described(error: reqwest::Error) -> String {
    format!("it cannot be reached: {}", outgoing::cause(error))
}

fn no_page(error: reqwest::Error) -> NoPage {
    let mut causes = std::iter::successors(error.source(), |error| (*error).source());
    if causes.any(is_of_resolver) {
        NoPage::Refused(described(error))
    } else {
        NoPage::Failed(described(error))
    }
}

/// Whether the resolver found only addresses that it refuses.
fn is_of_resolver(error: &(dyn Error + 'static)) -> bool {
    let inner = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<Refused>())
}

/// The reason why a page is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoPage {
    /// The page could not be read this time.
    Failed(String),
    /// The page is at an address that tarsy does not request.
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_private_host_or_a_proxy_reaches_private_addresses() {
        let host = |text: &str| RunbookHost::parse(text).unwrap();
        let hosts = Hosts {
            listed: vec![
                host("*.example.com"),
                host("wiki.corp:8443"),
                host("10.0.0.7"),
            ],
            private: vec![host("wiki.corp:8443")],
            ..Hosts::default()
        };
        for (name, reach) in [
            ("a.example.com", Reach::Public),
            ("A.EXAMPLE.com", Reach::Public),
            ("raw.githubusercontent.com", Reach::Public),
            ("10.0.0.7", Reach::Public),
            ("wiki.corp", Reach::Private),
            ("proxy.corp", Reach::Private),
        ] {
            assert_eq!(hosts.reach(name), reach, "{name}");
        }
        let check = |url: &str| check_address(&Url::parse(url).unwrap(), &hosts);
        assert!(check("http://10.0.0.7/").is_err() && check("http://[::1]/").is_ok());
        assert_eq!(check("https://a.example.com/"), Ok(()));
    }
}
