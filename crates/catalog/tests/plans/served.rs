use hodo_catalog::{Error, Protocol, ServeSettings, Uri, serve};
use hodo_machine::Wait;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

/// A far end in a thread of its own, at a free port or at a socket in a directory of its own.
pub struct Served {
    pub uri: Uri,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    /// Removed last, with the socket in it.
    _place: Option<Place>,
}

pub fn serve_settings() -> ServeSettings {
    ServeSettings {
        threads: 1,
        cpus: Vec::new(),
        wait: Wait::Block,
        congestion: None,
        path: hodo_io::PathOptions::default(),
        socket_buffer: None,
        payload: None,
        size_max: 4 << 20,
        peers_max: 100,
    }
}

impl Served {
    pub fn start(protocol: &dyn Protocol, settings: &ServeSettings) -> Served {
        let (uri, place) = free(protocol);
        let mut served = Served::at(&uri, settings);
        served._place = place;
        served
    }

    /// Starts the server that a URI names.
    pub fn at(uri: &Uri, settings: &ServeSettings) -> Served {
        let server = serve(uri, settings).unwrap_or_else(|error| panic!("{uri}: {error}"));
        let (uri, stop) = (server.uri().clone(), Arc::new(AtomicBool::new(false)));
        let seen = stop.clone();
        let thread = std::thread::spawn(move || server.run(&seen));
        Served { uri, stop, thread: Some(thread), _place: None }
    }

    /// Stops the server, and returns how it ended.
    pub fn end(&mut self) -> Result<(), Error> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is ended once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A test that fails already says why.
            let _ = thread.join();
        }
    }
}

/// Returns an address of this protocol that nobody uses.
pub fn free(protocol: &dyn Protocol) -> (Uri, Option<Place>) {
    if protocol.name() != "unix" {
        return (super::uri(&format!("{}://127.0.0.1:0", protocol.name())), None);
    }
    let place = Place::new();
    (super::uri(&format!("unix://{}", place.0.join("socket").display())), Some(place))
}

/// A directory that goes with its owner.
pub struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hodo-conformance-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
