//! Several devices of one process.

use crate::plans;

use hodo_catalog::{ServeSettings, serve};
use hodo_ipbus_host::{Access, Session, SessionSettings};
use hodo_machine::Wait;
use plans::served::serve_settings;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Stops a server when it goes, so that a test that fails ends instead of waiting for its server.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks that each board has words, numbers and timers of its own, and that each replies to requests sent to all at
/// once.
#[test]
fn each_board_is_by_itself() {
    for (wait, faults) in [(Wait::Block, ""), (Wait::Block, "&delay=1ms&jitter=1ms&loss=0.05"), (Wait::Spin, "")] {
        let uri = plans::uri(&format!("ipbusudp-2.0://127.0.0.1:0?boards=5{faults}"));
        let server = serve(&uri, &ServeSettings { wait, ..serve_settings() }).expect("free ports");
        let uris: Vec<String> = server.uris().iter().map(ToString::to_string).collect();
        assert_eq!(uris.len(), 5);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| server.run(&stop).expect("they run"));
            let _stopping = Stopping(&stop);
            let settings = SessionSettings { timeout: Duration::from_secs(20), ..SessionSettings::default() };
            let open = |uri: &String| Session::open(&uri.parse().expect("a URI"), &settings).expect("a session");
            let mut sessions: Vec<Session> = uris.iter().map(open).collect();
            for _ in 0..20 {
                for (number, session) in (1..).zip(&mut sessions) {
                    session.queue(Access::rmw_sum(0x10, number)).expect("it is possible");
                    session.send().expect("it is sent");
                }
                sessions.iter_mut().for_each(|session| session.dispatch().expect("it is answered"));
            }
            for (number, session) in (1..).zip(&mut sessions) {
                assert_eq!(session.call(Access::read(0x10)), Ok(20 * number), "{wait} {faults}");
            }
        });
    }
}

#[test]
fn what_cannot_be_is_told() {
    let refused = |uri: &str| serve(&plans::uri(uri), &serve_settings()).err().expect("it is refused").to_string();
    let few = refused("ipbusudp-2.0://127.0.0.1:65530?boards=10");
    assert!(few.contains("boards=10") && few.contains("65530"), "{few}");
    let streams = refused("ipbustcp-2.0://127.0.0.1:0?boards=2");
    assert!(streams.contains("over TCP"), "{streams}");
}
