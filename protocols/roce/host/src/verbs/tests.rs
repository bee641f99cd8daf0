use super::opening::open;
use super::{VerbsDevice, VerbsSettings};
use crate::DeviceError;
use hodo_io::Clock;

fn text(error: Result<VerbsDevice, DeviceError>) -> String {
    match error {
        Err(DeviceError::Missing(text)) => text,
        Err(other) => panic!("{other:?}"),
        Ok(device) => panic!("{} was opened", device.name()),
    }
}

#[test]
fn a_host_without_the_library_is_told_what_to_install() {
    let text = text(open("libno-such-verbs.so.1", &VerbsSettings::default(), Clock::start()));
    assert!(text.starts_with("no RDMA library (libno-such-verbs.so.1) on this host: install"), "{text}");
    assert!(text.contains("libibverbs1 ibverbs-providers"), "{text}");
}

#[test]
fn a_device_that_is_not_there_is_named_with_a_remedy() {
    let wish = VerbsSettings { device: Some("no-such-device".to_owned()), ..VerbsSettings::default() };
    let text = text(VerbsDevice::open(&wish, Clock::start()));
    let is_known = text.starts_with("IB device no-such-device not found: this host has")
        || text.starts_with("No IB devices found: the kernel has no RDMA support loaded");
    assert!(is_known, "{text}");
}
