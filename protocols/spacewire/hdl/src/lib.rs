//! A SpaceWire link end for simulators of hardware: a C interface, one call a clock step.
//!
//! `include/hodo_spacewire.h` describes it to its callers; `example` drives it from VHDL. An end has a number and no address, so that
//! a wrong one is harmless: `unsafe` are only the names, and the two buffers that a caller lends.
#![allow(unsafe_code, reason = "a C interface: unmangled names, and buffers of the caller")]
mod ends;
mod numbers;
#[cfg(test)]
mod tests;

use ends::{close, open, with};
use hodo_spacewire::Picos;
use hodo_spacewire::bits::{BitEnd, Clock, Line};
use hodo_spacewire::end::{CREDIT_OF_FCT, Settings};
use numbers::{COUNTS, NONE, edition, fault, nchar, number_of_error, number_of_nchar, number_of_state};

/// The value of success.
const DONE: i32 = 1;

/// Opens an end. Returns its number, or -1 if an argument is out of range or too many ends are open.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_open(step_ps: i32, divider: i32, edition_number: i32, buffer: i32) -> i32 {
    let new = || {
        let step = Picos(u64::from(positive(step_ps)?));
        let divider = positive(divider)?;
        let buffer = u16::try_from(buffer).ok().filter(|buffer| *buffer >= CREDIT_OF_FCT)?;
        let settings = Settings { edition: edition(edition_number)?, buffer, ..Settings::default() };
        open(BitEnd::new(settings, Clock { step, divider }))
    };
    new().unwrap_or(NONE)
}

/// Closes an end.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_close(end: i32) -> i32 {
    close(end)
}

/// Takes the levels that arrive in a clock step and returns those that leave: data in bit 0, strobe in bit 1.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_step(end: i32, data: i32, strobe: i32) -> i32 {
    let arrived = Line { data: data != 0, strobe: strobe != 0 };
    let levels = with(end, |end| {
        let line = end.step(arrived);
        i32::from(line.data) | i32::from(line.strobe) << 1
    });
    levels.max(0)
}

/// Queues an N-char. Returns 0 if there is no room.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_push(end: i32, number: i32) -> i32 {
    with(end, |end| nchar(number).map_or(NONE, |nchar| i32::from(end.push(nchar))))
}

/// Queues a packet and its EOP. Returns 0 if there is no room, and -1 without a packet.
///
/// # Safety
/// `packet` is null or points to `size` bytes that nothing changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hodo_spw_push_packet(end: i32, packet: *const u8, size: usize) -> i32 {
    with(end, |end| {
        if size == 0 {
            return i32::from(end.push_packet(&[]));
        }
        if packet.is_null() || isize::try_from(size).is_err() {
            return NONE;
        }
        // SAFETY: not null, no longer than an object can be, and the caller promises `size` bytes.
        i32::from(end.push_packet(unsafe { std::slice::from_raw_parts(packet, size) }))
    })
}

/// Returns how many N-chars wait to be sent.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_to_send(end: i32) -> i32 {
    with(end, |end| i32::try_from(end.to_send()).unwrap_or(i32::MAX))
}

/// Returns the next N-char that was received, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_pop(end: i32) -> i32 {
    with(end, |end| end.pop().map_or(NONE, number_of_nchar))
}

/// Sends a time-code at the next boundary.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_send_time_code(end: i32, code: i32) -> i32 {
    with(end, |end| {
        let Ok(code) = u8::try_from(code) else { return NONE };
        end.send_time_code(code);
        DONE
    })
}

/// Returns the next time-code that was received, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_pop_time_code(end: i32) -> i32 {
    with(end, |end| end.pop_time_code().map_or(NONE, i32::from))
}

/// Returns the state.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_state(end: i32) -> i32 {
    with(end, |end| number_of_state(end.end().state()))
}

/// Returns the N-chars that may be sent now.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_credit(end: i32) -> i32 {
    with(end, |end| i32::from(end.end().credit()))
}

/// Returns the cause of the next failure that was not asked for yet, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_pop_failure(end: i32) -> i32 {
    with(end, |end| end.pop_failure().map_or(NONE, |failure| number_of_error(failure.error)))
}

/// Enables or disables the link.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_configure(end: i32, disabled: i32, link_start: i32, auto_start: i32) -> i32 {
    with(end, |end| {
        end.configure(|settings| {
            settings.disabled = disabled != 0;
            settings.link_start = link_start != 0;
            settings.auto_start = auto_start != 0;
        });
        DONE
    })
}

/// Changes the steps for each bit in Run.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_set_divider(end: i32, divider: i32) -> i32 {
    with(end, |end| {
        let Some(divider) = positive(divider) else { return NONE };
        end.set_divider(divider);
        DONE
    })
}

/// Makes a mistake at the next boundary in Run.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_inject(end: i32, number: i32) -> i32 {
    with(end, |end| {
        let Some(fault) = fault(number) else { return NONE };
        end.inject(fault);
        DONE
    })
}

/// Sends a byte without an end whenever there is nothing else; a negative one stops that.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_babble(end: i32, byte: i32) -> i32 {
    with(end, |end| {
        if byte > 255 {
            return NONE;
        }
        end.babble(u8::try_from(byte).ok());
        DONE
    })
}

/// Returns a count, or `i32::MAX` if it is larger.
#[unsafe(no_mangle)]
pub extern "C" fn hodo_spw_count(end: i32, which: i32) -> i32 {
    with(end, |end| {
        let count = usize::try_from(which).ok().and_then(|which| COUNTS.get(which));
        count.map_or(NONE, |count| i32::try_from(count(end)).unwrap_or(i32::MAX))
    })
}

/// Writes the first `n` counts. Returns how many it wrote.
///
/// # Safety
/// `counts` is null or points to room for `n` counts that nothing else uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hodo_spw_counts(end: i32, counts: *mut u64, n: i32) -> i32 {
    with(end, |end| {
        let n = usize::try_from(n).unwrap_or(0).min(COUNTS.len());
        if counts.is_null() {
            return NONE;
        }
        for (at, count) in COUNTS.iter().take(n).enumerate() {
            // SAFETY: not null, `at` is below `n`, and the caller promises room for `n` counts. They need no alignment.
            unsafe { counts.add(at).write_unaligned(count(end)) };
        }
        n as i32
    })
}

fn positive(value: i32) -> Option<u32> {
    u32::try_from(value).ok().filter(|value| *value > 0)
}
