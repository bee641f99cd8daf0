use super::undisturbed;
use crate::{Clock, affinity};
use hodo_machine::Instant;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The pause before each exchange, in which the far processor falls idle.
const PAUSE: Duration = Duration::from_micros(500);
/// The duration of each half.
const SPAN: Duration = Duration::from_millis(80);
/// The time after which a far processor that another program has taken is given up.
const PATIENCE: Duration = Duration::from_millis(300);

/// The cost of waking an idle processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeUp {
    /// The time of an exchange with a thread that sleeps until a byte arrives.
    pub sleeping: Duration,
    /// The time of the same exchange with a thread that polls.
    pub polling: Duration,
}

impl WakeUp {
    /// Returns the time that the wake-up adds.
    #[must_use]
    pub fn cost(&self) -> Duration {
        self.sleeping.saturating_sub(self.polling)
    }
}

/// Measures the cost of waking an idle processor: one byte there and back over a Unix socket, with a thread on processor `near`
/// that polls and one on processor `far` that sleeps, and then polls. Takes a sixth of a second.
///
/// # Errors
/// Returns `InvalidInput` if a processor cannot be used, `TimedOut` if no exchange completed, and otherwise the operating system's
/// error.
pub fn wake_up(near: usize, far: usize) -> io::Result<WakeUp> {
    let half = |polls| exchange(near, far, polls, SPAN).map(Duration::from_nanos);
    Ok(WakeUp { sleeping: half(false)?, polling: half(true)? })
}

/// Returns the time of an undisturbed exchange in nanoseconds.
fn exchange(near: usize, far: usize, polls: bool, span: Duration) -> io::Result<u64> {
    let (here, there) = UnixStream::pair()?;
    here.set_nonblocking(true)?;
    there.set_nonblocking(polls)?;
    std::thread::scope(|scope| {
        let echo = scope.spawn(move || affinity::pin_thread(far).and_then(|()| echo(&there)));
        let times = affinity::keep(|| affinity::pin_thread(near).and_then(|()| exchanges(&here, span)));
        // The echo ends with its stream.
        drop(here);
        let echoed = echo.join().unwrap_or_else(|_| Err(ErrorKind::Other.into()));
        // A far side that fails takes the near one with it.
        echoed?;
        undisturbed(times?).ok_or_else(|| ErrorKind::TimedOut.into())
    })
}

/// Sends back every byte until the stream ends.
fn echo(mut stream: &UnixStream) -> io::Result<()> {
    let mut byte = [0];
    while receive(stream, &mut byte, || false)? {
        match stream.write_all(&byte) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            other => other?,
        }
    }
    Ok(())
}

fn exchanges(mut stream: &UnixStream, span: Duration) -> io::Result<Vec<u64>> {
    let clock = Clock::start();
    let end = clock.now() + span;
    let (mut times, mut byte) = (Vec::new(), [0]);
    loop {
        let begin = until(&clock, clock.now() + PAUSE);
        stream.write_all(&byte)?;
        // A far processor that somebody else has may take its time, but not for ever.
        if !receive(stream, &mut byte, || clock.now() > end + PATIENCE)? || begin > end {
            return Ok(times);
        }
        times.push(clock.now().nanos_since(begin));
    }
}

/// Polls until an instant has passed, and returns the time then.
fn until(clock: &Clock, due: Instant) -> Instant {
    loop {
        let now = clock.now();
        if now >= due {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// Receives a byte, and returns whether there was one before the stream ended or `is_over`.
fn receive(mut stream: &UnixStream, byte: &mut [u8; 1], is_over: impl Fn() -> bool) -> io::Result<bool> {
    loop {
        match stream.read(byte) {
            Ok(count) => return Ok(count > 0),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // The near side has left with a byte on its way.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
            Err(error) => return Err(error),
        }
        if is_over() {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_with_a_sleeper_is_measured() {
        let cpus = affinity::allowed_cpus().expect("Linux");
        let [near, .., far] = cpus[..] else { return };
        for polls in [false, true] {
            match exchange(near, far, polls, Duration::from_millis(5)) {
                Ok(ns) => assert!(ns > 0),
                // Another test has the processor.
                Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
            }
        }
        assert_eq!(affinity::allowed_cpus().expect("Linux"), cpus, "this thread is where it was");
        assert_eq!(exchange(near, 4096, false, SPAN).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
