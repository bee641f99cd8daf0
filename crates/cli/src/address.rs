//! Addresses on the command line: where a daemon listens, and the daemon that a program goes to.

use hodo_io::listen_address;
use std::net::SocketAddr;

/// Parses where to listen: an address of this host and a port, or with a port alone all of its addresses.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    if text.parse::<u16>().is_ok() {
        return Err(format!(
            "`{text}` is a port alone; write 127.0.0.1:{text}, or :{text} for every address of this host"
        ));
    }
    without_scheme(text)?;
    listen_address(text).map_err(|why| format!("{why}; every address of this host is written as :PORT"))
}

/// Parses the address of a host, and a port.
#[cfg(any(feature = "farm", feature = "spacewire"))]
pub fn far_end(text: &str) -> Result<SocketAddr, String> {
    without_scheme(text)?;
    hodo_io::host_and_port(text).map_err(|why| why.to_string())
}

/// Checks that an address is not written as a URI.
pub fn without_scheme(text: &str) -> Result<(), String> {
    match text.split_once("://") {
        Some((_, place)) => Err(format!("an address is written without a scheme: {}", place.trim_end_matches('/'))),
        None => Ok(()),
    }
}

/// Returns a sentence about what listens on loopback: the option that lets other hosts reach it.
#[cfg(any(feature = "ipbus", feature = "farm", feature = "pva", feature = "roce", feature = "spacewire"))]
pub fn only_here(at: &impl std::fmt::Display, listen: &str) -> Option<String> {
    let at = at.to_string();
    let port = hodo_io::port_of_loopback(at.split(' ').next()?)?;
    let listen = listen.replace("PORT", port);
    Some(format!("only this host reaches it; {listen} admits everybody who can reach this host"))
}
