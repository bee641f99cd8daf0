//! The values of a PV, as a plot keeps them.

use hodo_machine::Instant;
use hodo_pva_host::machines::{Array, Item, Scalar, Value};
use std::collections::VecDeque;
use std::time::Duration;

/// Parts of the time that is shown: of each part the least and the greatest value are kept.
const PARTS: u32 = 1000;

/// The values of a PV.
#[derive(Debug, Default)]
pub enum Series {
    /// None yet.
    #[default]
    Nothing,
    /// Numbers over time: of each part of time its number, and the least, the greatest and the last value.
    Scalar(VecDeque<(u64, f64, f64, f64)>),
    /// The latest array.
    Array(Array),
    /// The latest value has no number.
    Other,
}

/// The least and the greatest of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range(pub f64, pub f64);

impl Series {
    /// Takes a value in.
    pub fn add(&mut self, value: &Value, now: Instant, window: Duration) {
        let field = value.get("value.index").or_else(|| value.get("value"));
        if let Some(array) = field.and_then(Item::as_array).filter(|array| array.scalar() != Scalar::Text) {
            *self = Series::Array(array.clone());
        } else if let Some(number) = field.and_then(Item::as_f64) {
            self.add_number(number, part(now, window));
        } else {
            *self = Series::Other;
        }
    }

    fn add_number(&mut self, number: f64, part: u64) {
        if !matches!(self, Series::Scalar(_)) {
            *self = Series::Scalar(VecDeque::new());
        }
        let Series::Scalar(parts) = self else { return };
        match parts.back_mut().filter(|last| last.0 == part) {
            Some((_, least, greatest, last)) => {
                (*least, *greatest, *last) = (least.min(number), greatest.max(number), number);
            }
            None => parts.push_back((part, number, number, number)),
        }
        while parts.len() > PARTS as usize + 1 {
            parts.pop_front();
        }
    }

    /// Returns the last number.
    pub fn last(&self) -> Option<f64> {
        match self {
            Series::Scalar(parts) => parts.back().map(|(.., last)| *last),
            _ => None,
        }
    }

    /// Returns the number of the last element of an array.
    pub fn last_index(&self) -> Option<usize> {
        match self {
            Series::Array(array) => Some(array.len().saturating_sub(1)),
            _ => None,
        }
    }

    /// Returns what each of `columns` columns shows, from the oldest to now, or over the elements of an array. A number
    /// counts until the next one.
    pub fn columns(&self, columns: usize, now: Instant, window: Duration) -> Vec<Option<Range>> {
        let mut shown = vec![None; columns];
        let mut show = |column: usize, least: f64, greatest: f64| {
            if let Some(shown) = shown.get_mut(column)
                && least.is_finite()
                && greatest.is_finite()
            {
                let Range(from, to) = shown.unwrap_or(Range(least, greatest));
                *shown = Some(Range(from.min(least), to.max(greatest)));
            }
        };
        match self {
            Series::Array(array) => {
                let last = array.len().saturating_sub(1).max(1);
                each(array, |index, element| show(index * columns.saturating_sub(1) / last, element, element));
            }
            Series::Scalar(parts) => {
                let end = part(now, window);
                let begin = end.saturating_sub(u64::from(PARTS));
                let column =
                    |part: u64| (part.max(begin) - begin) as usize * columns.saturating_sub(1) / PARTS as usize;
                for (index, (at, least, greatest, last)) in parts.iter().enumerate() {
                    let until = parts.get(index + 1).map_or(end + 1, |next| next.0);
                    if *at >= begin {
                        show(column(*at), *least, *greatest);
                    }
                    if until > begin {
                        (column(*at)..=column(until - 1)).for_each(|column| show(column, *last, *last));
                    }
                }
            }
            Series::Nothing | Series::Other => {}
        }
        shown
    }
}

/// Calls a function with each element of an array of numbers, and its index.
fn each(array: &Array, mut show: impl FnMut(usize, f64)) {
    macro_rules! numbers {
        ($($scalar:ident: $of:ty as $to:expr),*) => {
            match array.scalar() {
                $(Scalar::$scalar => {
                    array.iter::<$of>().into_iter().flatten().map($to).enumerate().for_each(|(at, one)| show(at, one));
                })*
                Scalar::Bool => {
                    let bools = array.iter_bools().into_iter().flatten();
                    bools.enumerate().for_each(|(at, one)| show(at, f64::from(u8::from(one))));
                }
                Scalar::Text => {}
            }
        };
    }
    numbers!(
        I8: i8 as f64::from, I16: i16 as f64::from, I32: i32 as f64::from, I64: i64 as |one| one as f64,
        U8: u8 as f64::from, U16: u16 as f64::from, U32: u32 as f64::from, U64: u64 as |one| one as f64,
        F32: f32 as f64::from, F64: f64 as |one| one
    );
}

/// Returns the number of the part of time.
fn part(now: Instant, window: Duration) -> u64 {
    let one = (window / PARTS).as_nanos().max(1);
    (u128::from(now.as_nanos()) / one) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_pva_host::machines::normative::Normative;

    const WINDOW: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_number_counts_until_the_next_and_old_ones_go() {
        let mut value = Value::of(Normative::scalar(Scalar::F64).build());
        let mut series = Series::default();
        for (second, number) in [(0, 1.0), (100, 2.0), (105, 4.0), (105, -4.0), (106, f64::NAN)] {
            value.set("value", number).expect("it fits");
            series.add(&value, at(second), WINDOW);
        }
        let columns = series.columns(11, at(110), WINDOW);
        assert_eq!(columns[0..5], [Some(Range(2.0, 2.0)); 5]);
        assert_eq!(columns[5], Some(Range(-4.0, 4.0)));
        assert_eq!(columns[6..], [None; 5], "NaN is not drawn");
        for second in 0..10_000 {
            value.set("value", 1.0).expect("it fits");
            series.add(&value, at(second), WINDOW);
        }
        assert!(matches!(&series, Series::Scalar(parts) if parts.len() <= PARTS as usize + 1));
    }

    #[test]
    fn every_element_of_an_array_is_in_a_column() {
        let mut value = Value::of(Normative::scalar_array(Scalar::F64).build());
        value.set("value", Array::from(vec![0.0, 1.0, 2.0, 9.0])).expect("it fits");
        let mut series = Series::default();
        series.add(&value, at(0), WINDOW);
        assert_eq!(series.columns(2, at(0), WINDOW), [Some(Range(0.0, 2.0)), Some(Range(9.0, 9.0))]);
        assert_eq!(series.columns(0, at(0), WINDOW), []);
        let mut text = Value::of(Normative::scalar(Scalar::Text).build());
        text.set("value", "x").expect("it fits");
        series.add(&text, at(0), WINDOW);
        assert!(matches!(series, Series::Other));
    }
}
