use std::net::SocketAddr;
use std::str::FromStr;

/// The TCP port of a server, unless another one is configured.
pub const DEFAULT_PORT: u16 = 5075;

/// A channel's name, and perhaps its server: `NAME`, `pva://HOST/NAME`, `pva://HOST:PORT/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the channel.
    pub name: String,
    /// Host, and perhaps port, of its server. Without one it is searched for.
    pub server: Option<String>,
}

/// Bytes of a channel's name at most, as other implementations have it.
const NAME_MAX: usize = 500;

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (server, name) = match text.strip_prefix("pva://") {
            Some(rest) => {
                let (server, name) =
                    rest.split_once('/').ok_or("a URI is pva://HOST:PORT/NAME, or pva:///NAME for a search")?;
                ((!server.is_empty()).then(|| server.to_owned()), name)
            }
            None if text.starts_with("ca://") => {
                return Err(
                    "a name of Channel Access, which is another protocol; without ca:// it is one of pvAccess".into()
                );
            }
            None => (None, text),
        };
        if name.is_empty() {
            return Err("the name of the channel is empty".into());
        }
        if name.len() > NAME_MAX {
            return Err(format!("a channel's name has {NAME_MAX} bytes at most"));
        }
        if name.contains(char::is_control) {
            return Err("a channel's name has no control characters".into());
        }
        Ok(Place { name: name.into(), server })
    }
}

impl Place {
    /// Returns the address of the server, if one is named.
    ///
    /// # Errors
    /// A text for people if the server's name has no address.
    pub fn resolved(&self) -> Result<Option<SocketAddr>, String> {
        let resolve = |server: &String| {
            hodo_io::resolve(server, DEFAULT_PORT).map_err(|why| format!("server {server} has no address: {why}"))
        };
        self.server.as_ref().map(resolve).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_a_server() {
        let place = |text: &str| text.parse::<Place>().map(|place| (place.server, place.name));
        let some = |server: &str, name: &str| Ok((Some(server.to_owned()), name.to_owned()));
        assert_eq!(place("A:B.C"), Ok((None, "A:B.C".into())));
        assert_eq!(place("pva://ioc/A/B"), some("ioc", "A/B"));
        assert_eq!(place("pva://[::1]:5075/A"), some("[::1]:5075", "A"));
        assert_eq!(place("pva:///A"), Ok((None, "A".into())));
        for wrong in ["", "ca://A", "pva://ioc", "pva://ioc/", "a\nb", &"x".repeat(501)] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn servers_have_a_default_port() {
        let resolved = |text: &str| text.parse::<Place>().unwrap().resolved();
        assert_eq!(resolved("A"), Ok(None));
        assert_eq!(resolved("pva://127.0.0.1/A"), Ok(Some(([127, 0, 0, 1], 5075).into())));
        assert_eq!(resolved("pva://127.0.0.1:9/A"), Ok(Some(([127, 0, 0, 1], 9).into())));
        assert!(resolved("pva://127.0.0.1:x/A").unwrap_err().starts_with("server 127.0.0.1:x has no address"));
    }
}
