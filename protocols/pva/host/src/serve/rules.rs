//! The rules of a PV: limits of what may be put, and of alarms.

use super::file::{AlarmTable, PvTable};
use super::types::number;
use crate::machines::data::SetError;
use crate::machines::normative::Alarm;
use crate::machines::{Item, Value};

/// The alarm status of what the record itself has found.
const RECORD: i32 = 3;
/// Fields that say what the value means, which puts leave alone.
pub const FIXED: [&str; 4] = ["display", "control", "valueAlarm", "value.choices"];
/// Fields that follow the value: what is put to them is left out, since clients put back all that they have read.
const FOLLOWING: [&str; 2] = ["alarm", "timeStamp"];

/// The rules of a PV.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    control: Option<[f64; 2]>,
    alarm: Option<AlarmTable>,
}

/// The limit that a value is beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Beyond {
    /// No limit.
    #[default]
    None,
    /// The lower warning limit.
    Low,
    /// The upper warning limit.
    High,
    /// The lower alarm limit.
    LowLow,
    /// The upper alarm limit.
    HighHigh,
}

impl Rules {
    /// Returns the rules of a table.
    #[must_use]
    pub fn of(table: &PvTable) -> Self {
        Rules { control: table.control, alarm: table.alarm }
    }

    /// Checks what is put: numbers within `control`, choices that exist, and no other content for fields that say what the value means.
    /// Leaves in `put` only what is new.
    ///
    /// # Errors
    /// A sentence for the client.
    pub fn check(&self, latest: &Value, put: &mut Value) -> Result<(), String> {
        let plan = put.plan().clone();
        let mut leaves = put.changed().clone();
        plan.expand(&mut leaves);
        let within = |leaf: usize, path: &str| plan.number(path).is_some_and(|at| (at..plan.end(at)).contains(&leaf));
        put.unmark();
        for leaf in leaves.iter() {
            match FIXED.into_iter().find(|fixed| within(leaf, fixed)) {
                Some(fixed) if !is_same(latest.at(leaf), put.at(leaf)) => {
                    return Err(format!("{fixed} cannot be put: put the value alone"));
                }
                Some(_) => {}
                None if FOLLOWING.into_iter().any(|path| within(leaf, path)) => {}
                None => put.mark(leaf),
            }
        }
        let has = |path| plan.number(path).is_some_and(|number| put.has_changed(number));
        if let (Some([low, high]), Some(to)) = (self.control, number(put).filter(|_| has("value")))
            && !(low..=high).contains(&to)
        {
            return Err(format!("{to} is not within the limits {low} to {high} of this PV"));
        }
        if let Some(index) = put.get("value.index").filter(|_| has("value.index")).and_then(Item::as_i64) {
            let choices =
                latest.get("value.choices").and_then(Item::as_array).map_or(0, |choices| choices.len() as i64);
            if !(0..choices).contains(&index) {
                return Err(format!("{index} is no choice of this PV, which has {choices}"));
            }
        }
        Ok(())
    }

    /// Sets the alarm of a value by the PV's limits, if it differs from `before`.
    ///
    /// # Errors
    /// [`SetError::NoField`] if the value has no alarm.
    pub fn judge(&self, value: &mut Value, before: Beyond) -> Result<(), SetError> {
        let (Some(limits), Some(number)) = (&self.alarm, number(value)) else { return Ok(()) };
        let beyond = limits.judge(number, before);
        if beyond == before {
            return Ok(());
        }
        let severity = beyond.severity();
        let status = if severity == 0 { 0 } else { RECORD };
        value.set_alarm(&Alarm { severity, status, message: beyond.message().to_owned() })
    }
}

/// Tells whether two fields hold the same.
pub fn is_same(one: Option<Item<'_>>, other: Option<Item<'_>>) -> bool {
    match (one, other) {
        (Some(Item::Float(one)), Some(Item::Float(other))) => one.to_bits() == other.to_bits(),
        (one, other) => one == other,
    }
}

impl Beyond {
    /// Returns the limit that a value is beyond, as its alarm says.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let all = [Beyond::Low, Beyond::High, Beyond::LowLow, Beyond::HighHigh];
        let message = value.get("alarm.message").and_then(Item::as_text);
        let found = message.and_then(|message| all.into_iter().find(|one| *message == *one.message()));
        found.unwrap_or_default()
    }

    const fn severity(self) -> i32 {
        match self {
            Beyond::None => 0,
            Beyond::Low | Beyond::High => 1,
            Beyond::LowLow | Beyond::HighHigh => 2,
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Beyond::None => "",
            Beyond::Low => "LOW",
            Beyond::High => "HIGH",
            Beyond::LowLow => "LOLO",
            Beyond::HighHigh => "HIHI",
        }
    }
}

impl AlarmTable {
    /// Returns the limit that a value is beyond. One that was beyond a limit is so until it is back by the hysteresis.
    fn judge(&self, value: f64, before: Beyond) -> Beyond {
        let slack = |limit: Beyond| if before == limit { self.hysteresis } else { 0.0 };
        let above = |limit: Option<f64>, at| limit.is_some_and(|limit| value >= limit - slack(at));
        let below = |limit: Option<f64>, at| limit.is_some_and(|limit| value <= limit + slack(at));
        if above(self.high, Beyond::HighHigh) {
            Beyond::HighHigh
        } else if below(self.low, Beyond::LowLow) {
            Beyond::LowLow
        } else if above(self.high_warning, Beyond::High) {
            Beyond::High
        } else if below(self.low_warning, Beyond::Low) {
            Beyond::Low
        } else {
            Beyond::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_ends_only_within_the_hysteresis() {
        let limits = AlarmTable {
            low: Some(-10.0),
            low_warning: Some(-5.0),
            high_warning: Some(5.0),
            high: Some(10.0),
            hysteresis: 1.0,
        };
        let mut beyond = Beyond::None;
        let values = [0.0, 5.0, 4.5, 3.9, 12.0, 9.5, 8.9, -5.0, -10.0, -9.5, -8.5, 0.0];
        let found = values.map(|value| {
            beyond = limits.judge(value, beyond);
            beyond.message()
        });
        assert_eq!(found, ["", "HIGH", "HIGH", "", "HIHI", "HIHI", "HIGH", "LOW", "LOLO", "LOLO", "LOW", ""]);
    }
}
