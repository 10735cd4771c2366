//! The addresses that a host may have: a public name must not lead into the operators' own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The reason why an address is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("its host has a private address; runbooks.private_hosts lists hosts that may")]
    Private,
    #[error("its host has an address that no web server has")]
    NoHost,
}

/// Whether the addresses of a host may be private.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Public,
    Private,
}

/// The reason why this address is not used by a host of this reach; `None` when it is used. An address for the
/// machine's own link, where clouds serve credentials, is never used.
pub(super) fn refused(address: IpAddr, reach: Reach) -> Option<Refused> {
    let (is_no_host, is_private) = match canonical(address) {
        IpAddr::V4(address) => (is_no_host_v4(address), is_private_v4(address)),
        IpAddr::V6(address) => (is_no_host_v6(address), is_private_v6(address)),
    };
    if is_no_host {
        return Some(Refused::NoHost);
    }
    (is_private && reach == Reach::Public).then_some(Refused::Private)
}

/// The IPv4 address that an IPv6 address carries: mapped, by NAT64, or by 6to4.
fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(address) = address else {
        return address;
    };
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let [one, two] = high.to_be_bytes();
        let [three, four] = low.to_be_bytes();

        IpAddr::V4(Ipv4Addr::new(one, two, three, four))
    };
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => embedded(g, h),
        [0, 0, 0, 0, 0, 0] if g != 0 => embedded(g, h),
        [0x2002, high, low, ..] => embedded(high, low),
        _ => IpAddr::V6(address),
    }
}

fn is_no_host_v4(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    first == 0 || first >= 224 || address.is_link_local() || address.is_broadcast()
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_documentation()
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (b == 18 || b == 19))
        || (a == 192 && b == 0 && c == 0)
}

fn is_no_host_v6(address: Ipv6Addr) -> bool {
    address.is_unspecified() || address.is_multicast() || address.is_unicast_link_local()
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    address.is_loopback()
        || address.is_unique_local()
        || (a & 0xffc0) == 0xfec0
        || (a == 0x2001 && b == 0xdb8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_name_leads_to_no_private_address_however_it_is_written() {
        let judged = |address: &str, reach| refused(address.parse().unwrap(), reach);
        for address in [
            "93.184.216.34",
            "2606:2800:220:1::1",
            "100.128.0.1",
            "172.32.0.1",
            "64:ff9b::5db8:d822",
        ] {
            assert_eq!(judged(address, Reach::Public), None, "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.0.0.7",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "198.18.0.1",
            "::1",
            "fd00:ec2::254",
            "::ffff:10.0.0.7",
            "::10.0.0.7",
            "64:ff9b::10.0.0.7",
            "2002:a00:7::",
        ] {
            assert_eq!(
                judged(address, Reach::Public),
                Some(Refused::Private),
                "{address}"
            );
            assert_eq!(judged(address, Reach::Private), None, "{address}");
        }
        for address in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "::",
            "fe80::1",
        ] {
            assert_eq!(
                judged(address, Reach::Private),
                Some(Refused::NoHost),
                "{address}"
            );
        }
    }
}
