use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses may be called.
///
/// Never: those of cloud metadata services, link-local, multicast, broadcast and unspecified ones, in whatever notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// All others.
    Any,
    /// All others that are neither loopback, nor private, nor reserved.
    Public,
}

/// An address and the number of its bits that count.
type Network = (IpAddr, u32);

/// Never called.
const NEVER: &[Network] = &[
    (v4(0, 0, 0, 0), 8),
    (v4(169, 254, 0, 0), 16),                              // link-local; most clouds' metadata
    (v4(100, 100, 100, 200), 32),                          // metadata of Alibaba
    (v4(168, 63, 129, 16), 32),                            // metadata of Azure
    (v4(192, 0, 0, 192), 32),                              // metadata of Oracle
    (v4(224, 0, 0, 0), 4),                                 // multicast
    (v4(255, 255, 255, 255), 32),                          // broadcast
    (v6([0; 8]), 128),                                     // unspecified
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0]), 10),               // link-local
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]), 128),      // metadata of AWS
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]), 128),       // metadata of Google
    (v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]), 128), // metadata of Oracle
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0]), 8),                // multicast
];

/// Beyond [`Reach::Public`]: what <https://www.iana.org/assignments/iana-ipv4-special-registry> and its IPv6 counterpart
/// list as not globally reachable.
const NOT_PUBLIC: &[Network] = &[
    (v4(10, 0, 0, 0), 8),
    (v4(100, 64, 0, 0), 10),
    (v4(127, 0, 0, 0), 8),
    (v4(172, 16, 0, 0), 12),
    (v4(192, 0, 0, 0), 24),
    (v4(192, 0, 2, 0), 24),
    (v4(192, 168, 0, 0), 16),
    (v4(198, 18, 0, 0), 15),
    (v4(198, 51, 100, 0), 24),
    (v4(203, 0, 113, 0), 24),
    (v4(240, 0, 0, 0), 4),
    (v6([0, 0, 0, 0, 0, 0, 0, 1]), 128),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0]), 48),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0]), 64),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 23),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]), 32),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0]), 7),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0]), 10),
];

/// IPv6 networks whose addresses lead to an IPv4 address inside of them, and how many bits follow it.
const CARRIERS: &[(Network, u32)] = &[
    ((v6([0, 0, 0, 0, 0, 0xffff, 0, 0]), 96), 0),    // IPv4-mapped
    ((v6([0, 0, 0, 0, 0xffff, 0, 0, 0]), 96), 0),    // IPv4-translated
    ((v6([0; 8]), 96), 0),                           // IPv4-compatible
    ((v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0]), 96), 0), // NAT64
    ((v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0]), 48), 0), // NAT64, local
    ((v6([0x2002, 0, 0, 0, 0, 0, 0, 0]), 16), 80),   // 6to4
];

impl Reach {
    /// Whether `address` may be called.
    pub fn allows(self, address: IpAddr) -> bool {
        let carried = CARRIERS.iter().filter(|(network, _)| contains(*network, address));
        let carried = carried.filter_map(|(_, behind)| inner(address, *behind));
        std::iter::once(address)
            .chain(carried)
            .all(|address| !is_in(NEVER, address) && (self == Reach::Any || !is_in(NOT_PUBLIC, address)))
    }
}

fn is_in(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| contains(*network, address))
}

fn contains((network, bits): Network, address: IpAddr) -> bool {
    let (network, address, width) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => (network.to_bits().into(), address.to_bits().into(), 32),
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    let behind = width - bits;
    network >> behind == address >> behind
}

/// The IPv4 address before the last `behind` bits.
fn inner(address: IpAddr, behind: u32) -> Option<IpAddr> {
    match address {
        // The loopback address carries nothing.
        IpAddr::V6(address) if !address.is_loopback() => {
            let bits = u32::try_from(address.to_bits() >> behind & u128::from(u32::MAX)).ok()?;
            Some(Ipv4Addr::from_bits(bits).into())
        }
        _ => None,
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn metadata_and_link_local_addresses_are_never_called() {
        for address in [
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "239.1.2.3",
            "255.255.255.255",
            "::",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::ffff:0:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "::ffff:0.0.0.0",
            "::ffff:100.100.100.200",
        ] {
            let parsed = address.parse().unwrap();
            assert!(!Reach::Any.allows(parsed), "{address}");
            assert!(!Reach::Public.allows(parsed), "{address}");
        }
    }

    #[test]
    fn loopback_and_private_addresses_are_within_any_reach_alone() {
        for address in [
            "127.0.0.1",
            "127.255.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "198.19.0.1",
            "::1",
            "fd00::1",
            "fc00::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
        ] {
            let parsed = address.parse().unwrap();
            assert!(Reach::Any.allows(parsed), "{address}");
            assert!(!Reach::Public.allows(parsed), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_within_reach() {
        for address in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808"] {
            assert!(Reach::Public.allows(address.parse().unwrap()), "{address}");
        }
    }

    proptest! {
        #[test]
        fn what_is_forbidden_is_forbidden_in_every_notation(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = address.octets().map(u16::from);
            let (high, low) = (a << 8 | b, c << 8 | d);
            for reach in [Reach::Any, Reach::Public] {
                for carrier in [v6([0, 0, 0, 0, 0, 0xffff, high, low]), v6([0x64, 0xff9b, 0, 0, 0, 0, high, low]),
                                v6([0x2002, high, low, 0, 0, 0, 0, 1])] {
                    prop_assert_eq!(reach.allows(carrier), reach.allows(address.into()), "{} {}", carrier, address);
                }
            }
        }
    }
}
