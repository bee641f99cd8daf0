//! The far end of an IPbus link that names none: a device in software, or a hub with a device behind it.

use crate::boards::{PAYLOAD, TARGET, is_of_link, is_through_hub};
use hodo_io::LISTENING_ON;
use hodo_tester::{Error, FarEnd, PAGES_ON, Uri};

/// The option of a device that bounds its packets.
const BUFFER: &str = "buffer_bytes";

/// Returns the URI without the options that describe a device.
pub(crate) fn of_link(uri: &Uri) -> Uri {
    uri.with_options(is_of_link)
}

/// Returns the URI without the options that describe the link.
fn of_device(uri: &Uri) -> Uri {
    let mut device = uri.with_options(|name| !is_of_link(name));
    // A packet is not longer than a buffer.
    if let (Some(bytes), None) = (uri.option(PAYLOAD), uri.option(BUFFER)) {
        device.options.push((BUFFER.to_owned(), bytes.to_owned()));
    }
    device
}

/// Returns the far end to start: a hub where the link goes through one.
pub(crate) fn far_end(link: &Uri, stages: bool) -> FarEnd {
    if !is_through_hub(link) {
        return FarEnd::serve(of_device(link));
    }
    let mut words = vec!["hub", "--listen=127.0.0.1:0", "--metrics=127.0.0.1:0"];
    words.extend(stages.then_some("--stages"));
    FarEnd::daemon(&words, &[LISTENING_ON, PAGES_ON], behind_hub(link))
}

/// Returns the device to start behind a hub, if the link names none.
fn behind_hub(link: &Uri) -> Option<Uri> {
    let scheme = match link.scheme {
        "chtcp-2.0" => "ipbusudp-2.0",
        "chtcp-1.3" => "ipbusudp-1.3",
        _ => return None,
    };
    link.option(TARGET).is_none().then(|| Uri { scheme, ..link.clone() })
}

/// Returns the link to a far end that was started.
pub(crate) fn link_to(named: &Uri, said: &[String], behind: Option<&Uri>) -> Result<Uri, Error> {
    let listening = said.first().map_or("", String::as_str);
    if !is_through_hub(named) {
        return Ok(Uri { options: of_link(named).options, ..named.sibling(listening)? });
    }
    let mut through = Uri { authority: listening.to_owned(), ..of_link(named) };
    through.options.extend(behind.map(|device| (TARGET.to_owned(), device.authority.clone())));
    Ok(through)
}

/// Returns how many devices a URI names: several hosts, or targets of a hub, may stand there with commas between them.
pub(crate) fn count(uri: &Uri) -> u32 {
    [uri.authority.as_str(), uri.option(TARGET).unwrap_or("")]
        .map(|hosts| hosts.split(',').count() as u32)
        .iter()
        .product()
}

/// Returns what to do where nothing listens at an address.
pub(crate) fn remedy(uri: &Uri) -> String {
    if is_through_hub(uri) {
        return "is a hub there, and does it listen at that address (`hodo hub --listen`)?".to_owned();
    }
    format!("is the device on, and is that its address and port? `hodo serve {uri}` starts one in software")
}
