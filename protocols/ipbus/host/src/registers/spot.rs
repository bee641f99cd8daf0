use std::str::FromStr;

/// A register, as people name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// At an address.
    Address(u32),
    /// Some bits at an address.
    Bits(u32, u32),
    /// By its path in the address table.
    Node(String),
}

impl FromStr for Spot {
    type Err = String;

    /// Parses an address, bits of one, or the path of a node: the address table knows whether there is such a node.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it is empty; write the path of a node, or an address as 0x1000".to_owned());
        }
        if let Some((address, mask)) = text.split_once('/')
            && let (Ok(address), Ok(mask)) = (hodo_units::word(address), hodo_units::word(mask))
        {
            let spot = (mask != 0).then_some(Spot::Bits(address, mask));
            return spot.ok_or_else(|| format!("`{text}` has a mask without bits; write it as 0x1000/0xF0"));
        }
        Ok(hodo_units::word(text).map_or_else(|_| Spot::Node(text.to_owned()), Spot::Address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_is_an_address_or_a_name() {
        let spot = |text: &str| text.parse::<Spot>().unwrap();
        assert_eq!(spot("0x1000"), Spot::Address(0x1000));
        assert_eq!(spot("16"), Spot::Address(16));
        assert_eq!(spot("0x1000/0xF0"), Spot::Bits(0x1000, 0xF0));
        for name in ["daq.status", "2nd.link", "0x10g0", "a/b", "0x1/", "/1", "0x100000000"] {
            assert_eq!(spot(name), Spot::Node(name.to_owned()), "{name}");
        }
        assert!("0x10/0".parse::<Spot>().unwrap_err().contains("0x10/0"));
        assert!("".parse::<Spot>().is_err());
    }
}
