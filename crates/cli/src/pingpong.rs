//! `hodo pingpong`: the exchange of `ibv_rc_pingpong`, over the software adapter or a real one.

mod options;

use crate::output::Target;
use crate::{Error, Outcome, terminal};
use hodo_roce_host::exchange::ExchangeError;
use hodo_roce_host::perftest::{Atomic, Perftest, Row, Test};
use hodo_roce_host::pingpong::{PingPong, Took};
use hodo_roce_host::session::{Backend, Progress, Session, SessionError, listen};
use hodo_roce_host::{AddressOfQueuePair, MemoryKind, Reliability, VerbsSettings, WaitMode};
use hodo_tester::LISTENING_ON;
use options::BackendName;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

pub use options::PingPongOptions;

/// Bytes of an atomic operation.
const ATOMIC: u32 = 8;
/// The sizes of perftest's `-a`, as powers of two.
const ALL: std::ops::RangeInclusive<u32> = 1..=23;

/// Runs one end.
pub fn run(options: &PingPongOptions) -> Result<Outcome, Error> {
    let json = options.json.as_deref().map(|file| Target::prepare("--json", file)).transpose()?;
    let session = session(options)?;
    let is_quiet = json.as_ref().is_some_and(Target::is_stdout);
    let (mut ends, mut rows) = ([None; 2], Vec::new());
    let told = &mut |progress: Progress<'_>| {
        let text = match progress {
            Progress::Local(address) => line("local", address),
            Progress::Remote(address) => line("remote", address),
            Progress::Stranger(why @ ExchangeError::Further(_)) => return terminal::remark(&why.to_string()),
            Progress::Stranger(why) => return terminal::remark(&format!("{why}; still waiting for a client")),
            Progress::Row(row) => match (rows.is_empty(), row.line()) {
                (true, line) => Row::header(matches!(row, Row::Latency(_))).to_owned() + &line,
                (false, line) => line,
            },
        };
        match progress {
            Progress::Local(address) => ends[0] = Some(*address),
            Progress::Remote(address) => ends[1] = Some(*address),
            Progress::Row(row) => rows.push(*row),
            Progress::Stranger(_) => {}
        }
        if !is_quiet {
            // A reader that has gone away is noticed when the result is printed.
            let _ = terminal::print(&text);
        }
    };
    let took = match &options.host {
        Some(host) => session.client(host, options.port, told),
        None => listen(SocketAddr::new(options.listen, options.port))
            .map_err(SessionError::from)
            .and_then(|listener| serve(&session, &listener, told)),
    };
    let took = took.map_err(|error| match error {
        SessionError::Usage(why) => Error::Usage(why),
        other => Error::Failed(other.to_string()),
    })?;
    if let (Some(took), false) = (&took, is_quiet) {
        terminal::print(&result(took))?;
    }
    if let Some(json) = json {
        json.write_json(&document(options, &ends, took.as_ref(), &rows))?;
    }
    Ok(Outcome::Done)
}

/// Serves one client, after a remark that says where it may connect.
fn serve(
    session: &Session,
    listener: &TcpListener,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Option<Took>, SessionError> {
    if let Ok(at) = listener.local_addr() {
        terminal::remark(&format!("{LISTENING_ON}{at}"));
    }
    session.server(listener, told)
}

fn session(options: &PingPongOptions) -> Result<Session, Error> {
    let wait = match (options.events, options.spin) {
        (true, _) => WaitMode::Events,
        (false, Some(us)) => WaitMode::SpinThenBlock(Duration::from_micros(us)),
        (false, None) => WaitMode::Poll,
    };
    let patience = Duration::from_secs(options.timeout);
    Ok(Session {
        backend: backend(options)?,
        perftest: options.test.map(|test| perftest(options, test, wait)),
        parameters: PingPong {
            size: options.size,
            receive_depth: options.rx_depth,
            iterations: options.iters,
            wait,
            send_entries: options.send_entries,
            receive_entries: options.receive_entries,
            inline_bytes: options.inline,
            checks: options.chk,
            stamps: options.ts,
            patience,
        },
        reliability: Reliability {
            mtu: options.mtu,
            timeout: options.qp_timeout,
            service_level: options.sl,
            ..Reliability::default()
        },
        address: options.address,
        udp_port: options.udp_port,
        measures_timeout: options.measured_timeout,
        patience,
        connect_within: Duration::from_secs(options.connect_within),
    })
}

/// Returns the device that is asked for, by name or by an option that only adapters have.
fn backend(options: &PingPongOptions) -> Result<Backend, Error> {
    let prefetch = options.prefetch;
    let memory = match (options.odp, options.iodp, options.dm) {
        (_, true, _) => MemoryKind::Implicit { prefetch },
        (true, _, _) => MemoryKind::OnDemand { prefetch },
        (_, _, true) => MemoryKind::Device,
        _ if prefetch => {
            return Err(Error::Usage("--prefetch is for memory paged on demand: add --odp or --iodp".into()));
        }
        _ => MemoryKind::Pinned,
    };
    let of_adapters = options.ib_dev.is_some() || options.ib_port != 1 || memory != MemoryKind::Pinned;
    match options.backend {
        Some(BackendName::Soft | BackendName::Shm) if of_adapters => Err(Error::Usage(
            "--ib-dev, --ib-port, --odp, --iodp and --dm are for adapters: leave them out, or add --backend verbs"
                .into(),
        )),
        Some(BackendName::Soft) => Ok(Backend::Soft),
        Some(BackendName::Shm) => Ok(Backend::SharedMemory),
        None if !of_adapters => Ok(Backend::Soft),
        Some(BackendName::Verbs) | None => Ok(Backend::Verbs(VerbsSettings {
            device: options.ib_dev.clone(),
            port: options.ib_port,
            gid: options.gid_idx.and_then(|index| u8::try_from(index).ok()),
            memory,
            has_timestamps: options.ts,
            has_events: options.events || options.spin.is_some() || options.test.is_some(),
            ..VerbsSettings::default()
        })),
    }
}

fn perftest(options: &PingPongOptions, test: Test, wait: WaitMode) -> Perftest {
    let is_atomic = matches!(test, Test::AtomicLatency | Test::AtomicBandwidth);
    let sizes = match (options.all, options.sizes.as_slice()) {
        _ if is_atomic => vec![ATOMIC],
        (true, _) => ALL.map(|power| 1 << power).collect(),
        (false, []) => vec![options.size],
        (false, sizes) => sizes.to_vec(),
    };
    Perftest {
        test,
        atomic: if options.swap { Atomic::CompareSwap } else { Atomic::FetchAdd },
        sizes,
        iterations: options.iters,
        send_depth: options.tx_depth,
        receive_depth: options.rx_depth,
        inline_bytes: options.inline,
        checks: options.chk,
        wait,
        patience: Duration::from_secs(options.timeout),
    }
}

/// Writes an end as `ibv_rc_pingpong` does.
fn line(which: &str, end: &AddressOfQueuePair) -> String {
    let label = format!("{which} address:");
    format!("  {label:<16}LID 0x{:04x}, QPN 0x{:06x}, PSN 0x{:06x}, GID {}\n", end.lid, end.number, end.psn, end.gid)
}

/// Writes the result as `ibv_rc_pingpong` does.
fn result(took: &Took) -> String {
    let (seconds, us) = (took.span.as_secs_f64(), took.span.as_secs_f64() * 1e6);
    let mut text = format!(
        "{} bytes in {seconds:.2} seconds = {:.2} Mbit/sec\n{} iters in {seconds:.2} seconds = {:.2} usec/iter\n",
        took.bytes,
        took.bytes as f64 * 8.0 / us,
        took.iterations,
        us / took.iterations as f64
    );
    if let Some(gaps) = took.gaps.filter(|gaps| gaps.count > 0) {
        let mean = gaps.sum as f64 / gaps.count as f64;
        text += &format!(
            "Max receive completion clock cycles = {}\nMin receive completion clock cycles = {}\n\
             Average receive completion clock cycles = {mean:.6}\n",
            gaps.max, gaps.min
        );
    }
    text
}

fn document(
    options: &PingPongOptions,
    [local, remote]: &[Option<AddressOfQueuePair>; 2],
    took: Option<&Took>,
    rows: &[Row],
) -> serde_json::Value {
    let end = |end: &AddressOfQueuePair| json!({ "lid": end.lid, "qpn": end.number, "psn": end.psn, "gid": end.gid.to_string() });
    let mut document = json!({
        "test": options.test.map_or("rc_pingpong", Test::name),
        "side": if options.host.is_some() { "client" } else { "server" },
        "mtu": options.mtu,
        "rx_depth": options.rx_depth,
        "local": local.as_ref().map(end),
        "remote": remote.as_ref().map(end),
    });
    let mut add = |name: &str, value| document[name] = value;
    if let Some(took) = took {
        let us = took.span.as_secs_f64() * 1e6;
        add("size", json!(took.bytes.checked_div(2 * took.iterations).unwrap_or(options.size.into())));
        add("iterations", json!(took.iterations));
        add("bytes", json!(took.bytes));
        add("seconds", json!(took.span.as_secs_f64()));
        add("mbit_per_s", json!(took.bytes as f64 * 8.0 / us));
        add("us_per_iteration", json!(us / took.iterations as f64));
        let gaps = took.gaps.map(|gaps| json!({ "min": gaps.min, "max": gaps.max, "count": gaps.count }));
        add("receive_gap", json!(gaps));
    }
    if !rows.is_empty() {
        add("tx_depth", json!(options.tx_depth));
        add("rows", rows.iter().map(row).collect());
    }
    document
}

fn row(row: &Row) -> serde_json::Value {
    match row {
        Row::Latency(row) => json!({
            "size": row.size, "iterations": row.iterations, "min_us": row.min, "max_us": row.max, "typical_us": row.typical,
            "mean_us": row.mean, "deviation_us": row.deviation, "p99_us": row.p99, "p999_us": row.p999,
        }),
        Row::Bandwidth(row) => json!({
            "size": row.size, "iterations": row.iterations, "peak_mib_per_s": row.peak, "mib_per_s": row.average,
            "messages_per_s": row.rate * 1e6,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_roce_host::Gid;

    /// Compares with what `ibv_rc_pingpong` 44 prints.
    #[test]
    fn ends_and_results_look_as_stock_ones_do() {
        let end = AddressOfQueuePair { lid: 0, number: 0x11, psn: 0xF9_46CF, gid: Gid::of([10, 9, 0, 1].into()) };
        assert_eq!(
            line("local", &end),
            "  local address:  LID 0x0000, QPN 0x000011, PSN 0xf946cf, GID ::ffff:10.9.0.1\n"
        );
        assert_eq!(
            line("remote", &end),
            "  remote address: LID 0x0000, QPN 0x000011, PSN 0xf946cf, GID ::ffff:10.9.0.1\n"
        );
        let took = Took { iterations: 1000, bytes: 8_192_000, span: Duration::from_millis(10), gaps: None };
        let text = "8192000 bytes in 0.01 seconds = 6553.60 Mbit/sec\n1000 iters in 0.01 seconds = 10.00 usec/iter\n";
        assert_eq!(result(&took), text);
    }
}
