//! Rates of TCP over loopback, with one setting changed at a time.

use super::super::TcpRates;
use hodo_io::SocketSettings;
use hodo_io::floor::{Exchange, Floor, Kind};
use hodo_io::host::HostFacts;
use hodo_machine::Wait;

/// The bytes of a message: large writes, as a program makes them that wants to be fast.
const SIZE: usize = 128 << 10;
/// Buffers that no loopback fills.
const LARGE: usize = 4 << 20;
/// Looks at each setting, in turns: the best counts.
const LOOKS: usize = 3;
/// The congestion control of comparison: the kernel's own default.
const COMPARED: &str = "cubic";

/// Returns the processors of the two sides: two of those that this process may use, else one of them and another.
pub(super) fn pair(allowed: &[usize], online: &[usize]) -> Option<(usize, usize)> {
    match allowed {
        [] => None,
        [one] => online.iter().find(|cpu| *cpu != one).map(|other| (*one, *other)),
        [first, .., last] => Some((*first, *last)),
    }
}

/// Measures the rates in turns, for about one and a half seconds.
pub(super) fn tcp_rates(host: &HostFacts, allowed: &[usize], pair: Option<(usize, usize)>) -> TcpRates {
    let Some(one) = allowed.first().copied() else { return TcpRates::default() };
    let (near, far) = pair.unwrap_or((one, one));
    let system = SocketSettings::default();
    let large = SocketSettings { socket_buffer: Some(LARGE), ..system.clone() };
    let is_other = host.congestion_control.as_deref().is_some_and(|name| name != COMPARED);
    let can_compare = is_other && hodo_io::check_congestion(COMPARED).is_ok();
    let compared = can_compare.then(|| SocketSettings { congestion: Some(COMPARED.to_owned()), ..system.clone() });
    let mut found = TcpRates::default();
    for _ in 0..LOOKS {
        better(&mut found.system, rate(&system, near, far));
        better(&mut found.large_buffers, rate(&large, near, far));
        if let Some(settings) = &compared {
            let mut other = found.other_control.take().map(|(_, rate)| rate);
            better(&mut other, rate(settings, near, far));
            found.other_control = other.map(|rate| (COMPARED.to_owned(), rate));
        }
        if allowed.len() == 1 && pair.is_some() {
            better(&mut found.one_processor, rate(&system, one, one));
        }
    }
    found
}

fn better(best: &mut Option<f64>, found: Option<f64>) {
    *best = [*best, found].into_iter().flatten().reduce(f64::max);
}

/// Returns the bits per second of a stream from one processor to another; `None` if it could not be measured.
fn rate(settings: &SocketSettings, near: usize, far: usize) -> Option<f64> {
    let floor = Floor {
        kind: Kind::Tcp,
        exchange: Exchange::OneWay { sockets: 1 },
        size: SIZE,
        wait: Wait::Block,
        cpus: vec![(Some(near), Some(far))],
        settings: settings.clone(),
        far_settings: settings.clone(),
    };
    floor.measure().ok().map(|found| found.messages_per_s * 8.0 * SIZE as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processors_are_chosen_where_there_are_two() {
        assert_eq!(pair(&[0, 1, 2], &[0, 1, 2]), Some((0, 2)));
        assert_eq!(pair(&[1], &[0, 1]), Some((1, 0)));
        assert_eq!((pair(&[0], &[0]), pair(&[], &[0])), (None, None));
    }
}
