use crate::args::HubStop;
use crate::{Error, Outcome, terminal};
use hodo_daemon::PidFile;
use hodo_io::process;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two looks at whether it is gone.
const LOOK: Duration = Duration::from_millis(20);

/// Asks a hub to end, and waits for it. Where none runs there is nothing to do.
pub fn run(stop: &HubStop) -> Result<Outcome, Error> {
    let file = stop.pid_file.display();
    let holder = || {
        PidFile::holder(&stop.pid_file)
            .map_err(|error| Error::Failed(format!("{file}: {error}; ask as the user who runs the hub")))
    };
    let Some(pid) = holder()? else {
        terminal::print(&format!("no hub is running: nobody holds {file}\n"))?;
        return Ok(Outcome::Done);
    };
    process::terminate(pid).map_err(|error| {
        Error::Failed(format!("process {pid} cannot be told to end: {error}; ask as the user who runs the hub"))
    })?;
    let since = Instant::now();
    while holder()? == Some(pid) {
        if since.elapsed() > stop.within {
            return Err(Error::Failed(format!(
                "process {pid} was told to end and has not; its log says why, `kill -KILL {pid}` ends it at once"
            )));
        }
        sleep(LOOK);
    }
    terminal::print(&format!("process {pid} has ended\n"))?;
    Ok(Outcome::Done)
}
