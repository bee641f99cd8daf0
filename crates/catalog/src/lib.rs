//! The list of protocols, each a cargo feature.

use hodo_tester::Catalog;
pub use hodo_tester::{
    Content, Error, Line, Opened, Protocol, ServeSettings, Server, Settings, Uri, limit, open, plain_loop, serve,
};

/// Every protocol that this build has.
pub const CATALOG: Catalog = Catalog::new(&[
    #[cfg(feature = "raw")]
    &hodo_raw_link::TCP,
    #[cfg(feature = "raw")]
    &hodo_raw_link::UDP,
    #[cfg(feature = "raw")]
    &hodo_raw_link::UNIX,
    #[cfg(feature = "ipbus")]
    &hodo_ipbus_link::IPBUS,
    #[cfg(feature = "farm")]
    &hodo_farm_link::FARM,
    #[cfg(feature = "pva")]
    &hodo_pva_link::PVA,
    #[cfg(feature = "roce")]
    &hodo_roce_link::ROCE,
    #[cfg(feature = "spacewire")]
    &hodo_spacewire_link::SPACEWIRE,
]);

/// Returns the protocols.
pub fn protocols() -> impl Iterator<Item = &'static dyn Protocol> {
    CATALOG.protocols()
}

/// Parses a link's name, or the bare name of a protocol.
///
/// # Errors
/// [`Error::Usage`] if no protocol has the scheme, or an option has no value.
pub fn uri(text: &str) -> Result<Uri, Error> {
    CATALOG.uri(text)
}

#[cfg(all(test, feature = "raw", feature = "ipbus"))]
mod tests {
    use super::uri;

    #[test]
    fn round_trips() {
        for text in ["tcp://127.0.0.1:4242", "udp://[::1]:7", "unix:///tmp/a.sock", "sim+udp://?delay=5us&loss=0.01"] {
            assert_eq!(uri(text).unwrap().to_string(), text);
        }
        assert!(uri("tcp").unwrap().wants_far_end());
        assert_eq!(uri("ipbus").unwrap().to_string(), "ipbusudp-2.0://");
        let bare = uri("ipbustcp-1.3?table=file:///a.xml").unwrap();
        assert!(bare.wants_far_end() && bare.options[0].1 == "file:///a.xml");
    }

    #[test]
    fn names_what_is_wrong() {
        let unknown = uri("ftp://x").unwrap_err().to_string();
        assert!(unknown.contains("`ftp`") && unknown.contains("tcp, udp, unix"), "{unknown}");
        assert!(uri("localhost:4242").unwrap_err().to_string().contains("write tcp://localhost:4242"));
        assert!(uri("sim+udp://?delay").unwrap_err().to_string().contains("delay=…"));
    }
}
