//! The addresses that a destination or a mail server is never reached at: those of this machine's network itself, which
//! a cloud answers with credentials. Private ones are permitted, because operators run trackers inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url};
use tokio::net::lookup_host;

use tarsy_http::outgoing;

/// Metadata services that are not link-local: of Alibaba's cloud and of Oracle's.
const METADATA_V4: [Ipv4Addr; 2] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];
/// The metadata services of Amazon's cloud and of Google's, by IPv6.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// A client whose names resolve to permitted addresses only. A proxy of the environment resolves by itself.
///
/// # Errors
/// A text with the reason, when it cannot be built.
pub(super) fn client() -> Result<Client, String> {
    outgoing::builder()
        .dns_resolver(Arc::new(Guard))
        .build()
        .map_err(|error| format!("no HTTP client: {}", outgoing::cause(error)))
}

/// Refuses a URL whose host is such an address.
///
/// # Errors
/// A text with the reason.
pub(super) fn check(url: &Url) -> Result<(), String> {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    match literal.parse() {
        Ok(address) if is_refused(address) => Err(refusal(host)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The permitted addresses of a host at a port.
///
/// # Errors
/// A text with the reason, when there is none.
pub(super) async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let found = lookup_host((host, port))
        .await
        .map_err(|error| format!("{host} cannot be resolved: {error}"))?;
    let permitted: Vec<SocketAddr> = found.filter(|found| !is_refused(found.ip())).collect();
    if permitted.is_empty() {
        return Err(refusal(host));
    }
    Ok(permitted)
}

fn refusal(host: &str) -> String {
    format!("{host} is a link-local address or one of a metadata service, which is refused")
}

fn is_refused(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_refused_v4(v4),
        IpAddr::V6(v6) => {
            v6.is_unicast_link_local()
                || METADATA_V6.contains(&v6)
                || v6.is_unspecified()
                || embedded(v6).is_some_and(is_refused_v4)
        }
    }
}

fn is_refused_v4(address: Ipv4Addr) -> bool {
    address.is_link_local() || address.is_unspecified() || METADATA_V4.contains(&address)
}

/// The IPv4 address to which a gateway would send: IPv4-compatible, NAT64 and 6to4. `::1` has none.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, _, _, _, _, _] => {
            Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        _ => None,
    }
}

/// Resolves names, and leaves refused addresses out.
struct Guard;

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The port of the URL takes the place of this one.
            let permitted = addresses(name.as_str(), 0).await?;
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_and_metadata_addresses_are_refused_in_every_form() {
        for host in [
            "169.254.169.254",
            "2852039166",
            "0xa9.254.169.254",
            "[::ffff:169.254.169.254]",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "[fd20:ce::254]",
            "[::169.254.169.254]",
            "[64:ff9b::169.254.169.254]",
            "[2002:a9fe:a9fe::1]",
            "100.100.100.200",
            "[::ffff:100.100.100.200]",
            "192.0.0.192",
            "0.0.0.0",
        ] {
            let url = Url::parse(&format!("https://{host}/latest")).unwrap();
            assert!(check(&url).is_err(), "{host}");
        }
        for host in [
            "10.0.0.7",
            "192.168.1.1",
            "[fd00::1]",
            "127.0.0.1",
            "[::1]",
            "[64:ff9b::10.0.0.7]",
            "[2002:a00:7::1]",
            "jira.internal",
        ] {
            let url = Url::parse(&format!("https://{host}/")).unwrap();
            assert_eq!(check(&url), Ok(()), "{host}");
        }
    }

    #[tokio::test]
    async fn a_name_with_a_refused_address_alone_is_not_reached() {
        let addresses = Guard.resolve("localhost".parse().unwrap()).await.unwrap();
        assert!(
            addresses
                .into_iter()
                .all(|address| address.ip().is_loopback())
        );
        // The resolver of the system reads a literal as the name of itself.
        let refused = Guard.resolve("169.254.169.254".parse().unwrap()).await;
        let reason = refused
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(reason.contains("link-local"), "{reason}");
    }
}
