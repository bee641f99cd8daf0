//! The table of open ends.
//!
//! A number holds a place in bits 0 to 15, counted from 1, and how often that place was used in bits 16 to 30: the number of a closed
//! end does not reach the one that takes its place.
use crate::numbers::NO_END;
use hodo_spacewire::bits::BitEnd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ends that may be open at a time.
const OPEN_MAX: usize = 4_096;
const USES: u32 = 0x7FFF;

struct Place {
    uses: u32,
    end: Option<Box<BitEnd>>,
}

static PLACES: Mutex<Vec<Place>> = Mutex::new(Vec::new());

/// Puts an end into the table and returns its number, or `None` if the table is full.
pub(crate) fn open(end: BitEnd) -> Option<i32> {
    let mut places = places();
    let at = match places.iter().position(|place| place.end.is_none()) {
        Some(at) => at,
        None if places.len() < OPEN_MAX => {
            places.push(Place { uses: 0, end: None });
            places.len() - 1
        }
        None => return None,
    };
    let place = &mut places[at];
    place.uses = (place.uses + 1) & USES;
    place.end = Some(Box::new(end));
    Some((place.uses << 16 | (at as u32 + 1)) as i32)
}

/// Calls `act` with an end, or returns -2 if none is open under this number.
pub(crate) fn with(number: i32, act: impl FnOnce(&mut BitEnd) -> i32) -> i32 {
    let mut places = places();
    find(&mut places, number).and_then(|place| place.end.as_deref_mut()).map_or(NO_END, act)
}

/// Closes an end: 1, or -2 if none is open under this number.
pub(crate) fn close(number: i32) -> i32 {
    let mut places = places();
    find(&mut places, number).and_then(|place| place.end.take()).map_or(NO_END, |_| 1)
}

fn find(places: &mut [Place], number: i32) -> Option<&mut Place> {
    let number = u32::try_from(number).ok()?;
    let at = (number & 0xFFFF).checked_sub(1)?;
    places.get_mut(at as usize).filter(|place| place.uses == number >> 16)
}

fn places() -> MutexGuard<'static, Vec<Place>> {
    // A panic leaves no half-made change that the next call could mind.
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}
