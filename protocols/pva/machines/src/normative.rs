//! The types that the field agreed on, and the parts that most of them have.
//!
//! The layouts are those of the Normative Types specification as pvxs and p4p build them.

use crate::data::{Scalar, SetError, Type, Value};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A normative type that is being put together: the fields that it has to have, and then those that it may have.
#[derive(Debug, Clone)]
pub struct Normative {
    id: &'static str,
    of: Option<Scalar>,
    fields: Vec<(String, Type)>,
}

const TEXT: Type = Type::Scalar(Scalar::Text);
const I32: Type = Type::Scalar(Scalar::I32);
const F64: Type = Type::Scalar(Scalar::F64);
const TEXTS: Type = Type::array(Scalar::Text);

fn array(of: Scalar) -> Type {
    Type::array(of)
}

impl Normative {
    fn of<const N: usize>(id: &'static str, fields: [(&str, Type); N]) -> Self {
        Normative { id, of: None, fields: fields.map(|(name, of)| (name.to_string(), of)).into() }
    }

    fn with<const N: usize>(mut self, fields: [(&str, Type); N]) -> Self {
        self.fields.extend(fields.map(|(name, of)| (name.to_string(), of)));
        self
    }

    /// Begins an NTScalar: one number, bool or text.
    #[must_use]
    pub fn scalar(of: Scalar) -> Self {
        Normative { of: Some(of), ..Self::of("epics:nt/NTScalar:1.0", [("value", of.into())]) }
    }

    /// Begins an NTScalarArray: an array of them.
    #[must_use]
    pub fn scalar_array(of: Scalar) -> Self {
        Normative { of: Some(of), ..Self::of("epics:nt/NTScalarArray:1.0", [("value", array(of))]) }
    }

    /// Begins an NTEnum: one of several choices.
    #[must_use]
    pub fn enumeration() -> Self {
        Self::of("epics:nt/NTEnum:1.0", [("value", enum_t())])
    }

    /// Begins an NTMatrix: an array of doubles with its dimensions.
    #[must_use]
    pub fn matrix() -> Self {
        Self::of("epics:nt/NTMatrix:1.0", [("value", array(Scalar::F64)), ("dim", array(Scalar::I32))])
    }

    /// Begins an NTURI: a call, with named arguments.
    #[must_use]
    pub fn uri<N: AsRef<str>>(arguments: impl IntoIterator<Item = (N, Type)>) -> Self {
        let query = Type::structure("", arguments);
        Self::of("epics:nt/NTURI:1.0", [("scheme", TEXT), ("authority", TEXT), ("path", TEXT), ("query", query)])
    }

    /// Begins an NTNameValue: names, each with a value of this type.
    #[must_use]
    pub fn name_value(of: Scalar) -> Self {
        Self::of("epics:nt/NTNameValue:1.0", [("name", TEXTS), ("value", array(of))])
    }

    /// Begins an NTTable: columns of equal length, each with its type. The labels are part of the value.
    #[must_use]
    pub fn table<N: AsRef<str>>(columns: impl IntoIterator<Item = (N, Scalar)>) -> Self {
        let columns = columns.into_iter().map(|(name, of)| (name, array(of)));
        Self::of("epics:nt/NTTable:1.0", [("labels", TEXTS), ("value", Type::structure("", columns))])
    }

    /// Begins an NTAttribute: a name and a value of any type.
    #[must_use]
    pub fn attribute() -> Self {
        Self::of("epics:nt/NTAttribute:1.0", [("name", TEXT), ("value", Type::Any), ("tags", TEXTS)])
    }

    /// Begins an NTMultiChannel: the values of several channels, of any type, with the state of each and of all.
    #[must_use]
    pub fn multi_channel() -> Self {
        Self::of("epics:nt/NTMultiChannel:1.0", [("value", Type::AnyArray), ("channelName", TEXTS)])
            .descriptor()
            .alarm()
            .time_stamp()
            .with([("severity", array(Scalar::I32)), ("status", array(Scalar::I32)), ("message", TEXTS)])
            .with([("secondsPastEpoch", array(Scalar::I64)), ("nanoseconds", array(Scalar::I32))])
            .with([("userTag", array(Scalar::I32)), ("isConnected", array(Scalar::Bool))])
    }

    /// Begins an NTScalarMultiChannel: the values of several channels, all of one type, with the state of each and of all.
    #[must_use]
    pub fn scalar_multi_channel(of: Scalar) -> Self {
        let mut built = Self::multi_channel();
        built.id = "epics:nt/NTScalarMultiChannel:1.0";
        built.fields[0].1 = array(of);
        built
    }

    /// Begins an NTNDArray: an image of any number type and dimension, perhaps compressed.
    #[must_use]
    pub fn nd_array() -> Self {
        let codec = Type::structure("codec_t", [("name", TEXT), ("parameters", Type::Any)]);
        let sizes = [("size", I32), ("offset", I32), ("fullSize", I32), ("binning", I32)];
        let dimension = Type::structure("dimension_t", sizes.into_iter().chain([("reverse", Scalar::Bool.into())]));
        let attribute = Type::structure(
            "epics:nt/NTAttribute:1.0",
            [("name", TEXT), ("value", Type::Any), ("tags", TEXTS), ("descriptor", TEXT)].into_iter().chain([
                ("alarm", alarm_t()),
                ("timeStamp", time_t()),
                ("sourceType", I32),
                ("source", TEXT),
            ]),
        );
        let elements = |of: Type| of.into_array().expect("a structure has arrays of it");
        Self::of("epics:nt/NTNDArray:1.0", [("value", pixels()), ("codec", codec)])
            .with([("compressedSize", Scalar::I64.into()), ("uncompressedSize", Scalar::I64.into())])
            .with([("uniqueId", I32), ("dataTimeStamp", time_t())])
            .alarm()
            .time_stamp()
            .with([("dimension", elements(dimension)), ("attribute", elements(attribute))])
    }

    /// Begins an NTContinuum: sampled functions of one variable.
    #[must_use]
    pub fn continuum() -> Self {
        Self::of("epics:nt/NTContinuum:1.0", [("base", array(Scalar::F64)), ("value", array(Scalar::F64))])
            .with([("units", TEXTS)])
    }

    /// Begins an NTHistogram: ranges, and counts of this type.
    #[must_use]
    pub fn histogram(of: Scalar) -> Self {
        Self::of("epics:nt/NTHistogram:1.0", [("ranges", array(Scalar::F64)), ("value", array(of))])
    }

    /// Begins an NTAggregate: how many samples there were, and their mean.
    #[must_use]
    pub fn aggregate() -> Self {
        Self::of("epics:nt/NTAggregate:1.0", [("value", F64), ("N", Scalar::I64.into())])
            .with([("dispersion", F64), ("first", F64), ("firstTimeStamp", time_t()), ("last", F64)])
            .with([("lastTimeStamp", time_t()), ("max", F64), ("min", F64)])
    }

    /// Begins an NTUnion: a value of one of several types; of any, if none is named.
    #[must_use]
    pub fn union<N: AsRef<str>>(members: impl IntoIterator<Item = (N, Type)>) -> Self {
        let Type::Union(members) = Type::union("", members) else { unreachable!("it was just made") };
        let value = if members.fields().is_empty() { Type::Any } else { Type::Union(members) };
        Self::of("epics:nt/NTUnion:1.0", [("value", value)])
    }

    /// Adds the alarm.
    #[must_use]
    pub fn alarm(self) -> Self {
        self.with([("alarm", alarm_t())])
    }

    /// Adds the time stamp.
    #[must_use]
    pub fn time_stamp(self) -> Self {
        self.with([("timeStamp", time_t())])
    }

    /// Adds a description.
    #[must_use]
    pub fn descriptor(self) -> Self {
        self.with([("descriptor", TEXT)])
    }

    /// Adds how to show the value: units, precision, limits if it is a number.
    #[must_use]
    pub fn display(self) -> Self {
        let number = self.number();
        let limits = number.iter().flat_map(|of| [("limitLow", of.clone()), ("limitHigh", of.clone())]);
        let mut fields: Vec<_> = limits.chain([("description", TEXT), ("units", TEXT)]).collect();
        if number.is_some() {
            fields.extend([("precision", I32), ("form", enum_t())]);
        }
        self.with([("display", Type::structure("", fields))])
    }

    /// Adds the limits between which the value may be set, if it is a number.
    #[must_use]
    pub fn control(self) -> Self {
        let Some(of) = self.number() else { return self };
        let fields = [("limitLow", of.clone()), ("limitHigh", of.clone()), ("minStep", of)];
        self.with([("control", Type::structure("", fields))])
    }

    /// Adds the limits outside which the value is in alarm, if it is a number.
    #[must_use]
    pub fn value_alarm(self) -> Self {
        let Some(of) = self.number() else { return self };
        let limits = ["lowAlarmLimit", "lowWarningLimit", "highWarningLimit", "highAlarmLimit"];
        let severities = ["lowAlarmSeverity", "lowWarningSeverity", "highWarningSeverity", "highAlarmSeverity"];
        let fields = [("active", Scalar::Bool.into())].into_iter();
        let fields = fields.chain(limits.map(|name| (name, of.clone()))).chain(severities.map(|name| (name, I32)));
        let fields = fields.chain([("hysteresis", F64)]);
        self.with([("valueAlarm", Type::structure("", fields))])
    }

    /// Adds a field of one's own.
    #[must_use]
    pub fn field(self, name: &str, of: Type) -> Self {
        self.with([(name, of)])
    }

    /// Returns the type.
    #[must_use]
    pub fn build(self) -> Type {
        Type::structure(self.id, self.fields)
    }

    /// Returns the type of the value if it is a number.
    fn number(&self) -> Option<Type> {
        self.of.filter(|of| !matches!(of, Scalar::Bool | Scalar::Text)).map(Type::from)
    }
}

/// Returns the type of an alarm.
#[must_use]
pub fn alarm_t() -> Type {
    Type::structure("alarm_t", [("severity", I32), ("status", I32), ("message", TEXT)])
}

/// Returns the type of a time stamp.
#[must_use]
pub fn time_t() -> Type {
    Type::structure("time_t", [("secondsPastEpoch", Scalar::I64.into()), ("nanoseconds", I32), ("userTag", I32)])
}

/// Returns the type of a choice.
#[must_use]
pub fn enum_t() -> Type {
    Type::structure("enum_t", [("index", I32), ("choices", TEXTS)])
}

/// Returns the type of an image's content: a union of arrays of every type.
fn pixels() -> Type {
    use Scalar::{Bool, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let members = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64];
    Type::union("", members.map(|of| (alloc::format!("{}Value", of.name()), array(of))))
}

/// How urgent a value is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alarm {
    /// 0 none, 1 minor, 2 major, 3 invalid, 4 undefined.
    pub severity: i32,
    /// 0 none, 1 device, 2 driver, 3 record, 4 database, 5 configuration, 6 undefined, 7 client.
    pub status: i32,
    /// Text for people.
    pub message: String,
}

/// When a value was taken: since the beginning of 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TimeStamp {
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds beside the seconds.
    pub nanoseconds: i32,
    /// A number that the source chooses.
    pub user_tag: i32,
}

impl Value {
    /// Returns the alarm, if the value has one.
    #[must_use]
    pub fn alarm(&self) -> Option<Alarm> {
        let number = |path| self.get(path)?.as_i64()?.try_into().ok();
        let message = self.get("alarm.message")?.as_text()?.to_string();
        Some(Alarm { severity: number("alarm.severity")?, status: number("alarm.status")?, message })
    }

    /// Sets the alarm.
    ///
    /// # Errors
    /// [`SetError::NoField`] if the value has none.
    pub fn set_alarm(&mut self, alarm: &Alarm) -> Result<(), SetError> {
        self.set("alarm.severity", alarm.severity)?;
        self.set("alarm.status", alarm.status)?;
        self.set("alarm.message", alarm.message.as_str())
    }

    /// Returns the time stamp, if the value has one.
    #[must_use]
    pub fn time_stamp(&self) -> Option<TimeStamp> {
        let number = |path| self.get(path)?.as_i64();
        Some(TimeStamp {
            seconds: number("timeStamp.secondsPastEpoch")?,
            nanoseconds: number("timeStamp.nanoseconds")?.try_into().ok()?,
            user_tag: number("timeStamp.userTag")?.try_into().ok()?,
        })
    }

    /// Sets the time stamp.
    ///
    /// # Errors
    /// [`SetError::NoField`] if the value has none.
    pub fn set_time_stamp(&mut self, at: TimeStamp) -> Result<(), SetError> {
        self.set("timeStamp.secondsPastEpoch", at.seconds)?;
        self.set("timeStamp.nanoseconds", at.nanoseconds)?;
        self.set("timeStamp.userTag", at.user_tag)
    }
}
