"""Every normative type with all its fields, and structures of all that pvData knows: types of p4p, values, and what our command has to show of them.

The types are those of the Normative Types specification; where p4p.nt builds one, it is p4p's. Values are as p4p takes them: a union is a tuple of a
member's name and its value.
"""

import dataclasses
import datetime
import json

import numpy
from p4p import Type, Value, nt
from p4p.nt.common import alarm, timeStamp

SEVERITIES = ["", "MINOR", "MAJOR", "INVALID", "UNDEFINED"]
STATUSES = ["", "DEVICE", "DRIVER", "RECORD", "DB", "CONF", "UNDEFINED", "CLIENT"]
WORDS = {
    "?": "boolean", "b": "byte", "h": "short", "i": "int", "l": "long", "B": "ubyte", "H": "ushort", "I": "uint", "L": "ulong",
    "f": "float", "d": "double", "s": "string", "v": "any", "S": "structure", "U": "union",
}  # fmt: skip
STATE = [("alarm", alarm), ("timeStamp", timeStamp)]
DESCRIBED = [("descriptor", "s"), *STATE]
DISPLAY = ("S", "display_t", [
    ("limitLow", "d"), ("limitHigh", "d"), ("description", "s"), ("units", "s"), ("precision", "i"),
    ("form", ("S", "enum_t", [("index", "i"), ("choices", "as")])),
])  # fmt: skip
HOT = {"severity": 2, "status": 1, "message": "too hot"}
CALM = {"severity": 0, "status": 0, "message": ""}
THEN = {"secondsPastEpoch": 1_700_000_000, "nanoseconds": 250_000_000, "userTag": 7}
LATER = {"secondsPastEpoch": 1_700_000_001, "nanoseconds": 999_999_999, "userTag": 0}
WHOLE = {"descriptor": "of all", "alarm": HOT, "timeStamp": THEN}
FORM = {"index": 4, "choices": ["Default", "String", "Binary", "Decimal", "Hex"]}


@dataclasses.dataclass
class Case:
    """A type, a value of it, and the fields that a server changes and a client puts afterwards."""

    type: Type
    value: dict
    update: dict
    put: dict


def numbers(low, high):
    """Values of display, control and valueAlarm."""
    names = ["lowAlarmSeverity", "lowWarningSeverity", "highWarningSeverity", "highAlarmSeverity"]
    limits = {"lowAlarmLimit": low, "lowWarningLimit": low, "highWarningLimit": high, "highAlarmLimit": high}
    severities = dict(zip(names, [2, 1, 1, 2], strict=True))
    return {
        "display": {"limitLow": low, "limitHigh": high, "description": "of a \"tank\"", "precision": 3, "form": FORM, "units": "°C"},
        "control": {"limitLow": low, "limitHigh": high, "minStep": high},
        "valueAlarm": {"active": True, **limits, **severities, "hysteresis": 0.5},
    }


def normative(name, fields):
    return Type(fields, id=f"epics:nt/NT{name}:1.0")


def channels(kind, value):
    """The type of several channels: p4p's, with another identifier for those of one type."""
    spec = nt.NTMultiChannel.buildType("ad").aspy()[2]
    return normative(kind, [("value", value), *spec[1:]])


def of_channels(value):
    states = {"severity": [0, 3], "status": [0, 2], "message": ["", "gone"], "isConnected": [True, False]}
    times = {"secondsPastEpoch": [1_700_000_000, 0], "nanoseconds": [5, 0], "userTag": [1, -1]}
    return {"value": value, "channelName": ["A", "B"], **WHOLE, **states, **times}


def image_type():
    """The type of p4p's images, with a description: what p4p says of a union without a name would be one."""
    (_, pixels), *others = nt.NTNDArray.buildType().aspy()[2]
    return normative("NDArray", [("value", ("U", None, pixels[2])), *others, ("descriptor", "s")])


def image(pixels, shape):
    """An NTNDArray with dimensions and attributes of two types."""
    about = {"tags": ["a", "b"], "descriptor": "", "alarm": CALM, "timeStamp": THEN, "sourceType": 1, "source": "driver"}
    size = len(pixels[1])
    return {
        "value": pixels, "codec": {"name": "", "parameters": None}, "compressedSize": size, "uncompressedSize": size, "uniqueId": 77,
        "dataTimeStamp": THEN, "alarm": CALM, "timeStamp": LATER,
        "dimension": [{"size": at, "offset": 0, "fullSize": at, "binning": 1, "reverse": at == 2} for at in shape],
        "attribute": [{"name": "ColorMode", "value": 0, **about}, {"name": "Model", "value": "an \"eye\"", **about}],
    }  # fmt: skip


MANY = {"display": True, "control": True, "valueAlarm": True, "form": True}
EITHER = ("U", None, [("number", "d"), ("text", "s"), ("many", "ai")])
SCALARS = {
    "?": True, "b": -128, "h": -32768, "i": -(2**31), "l": -(2**63), "B": 255, "H": 65535, "I": 2**32 - 1, "L": 2**64 - 1,
    "f": 0.1875, "d": 0.1, "s": "hé \"x\"",
}  # fmt: skip
CASES = {
    "NTScalar": Case(
        nt.NTScalar.buildType("d", extra=[("descriptor", "s")], **MANY), {"value": 1.5, **WHOLE, **numbers(-2.5, 8.0)},
        {"value": 9.25, "alarm": CALM, "timeStamp": LATER},
        {"value": -0.5, "alarm": {"message": "by hand"}, "display": {"units": "K", "form": {"index": 1}}, "control": {"limitHigh": 3.0}},
    ),
    "NTScalar of texts": Case(
        nt.NTScalar.buildType("s", display=True), {"value": "a b", "alarm": HOT, "timeStamp": THEN, "display": {"description": "d", "units": ""}},
        {"value": ""}, {"value": "ü\n\t\"", "display": {"description": "x y"}},
    ),
    "NTScalarArray": Case(
        nt.NTScalar.buildType("aL", extra=[("descriptor", "s")], **MANY), {"value": [0, 2**64 - 1], **WHOLE, **numbers(0, 2**63)},
        {"value": [5], "valueAlarm": {"active": False, "hysteresis": 0.0}}, {"value": [], "control": {"minStep": 2**64 - 2}},
    ),
    "NTEnum": Case(
        nt.NTEnum.buildType(extra=[("descriptor", "s")]), {"value": {"index": 1, "choices": ["Off", "On it", "3"]}, **WHOLE},
        {"value": {"index": 2}, "alarm": CALM}, {"value": {"index": 0, "choices": ["None"]}},
    ),
    "NTMatrix": Case(
        normative("Matrix", [("value", "ad"), ("dim", "ai"), *DESCRIBED, ("display", DISPLAY)]),
        {"value": [1.0, 2.5, 3.0, -4.0, 5.0, 1e300], "dim": [3, 2], **WHOLE, "display": numbers(-4.0, 1e300)["display"]},
        {"value": [7.0], "dim": [1, 1]}, {"value": [1.0, 2.0], "dim": [2], "display": {"precision": -1}},
    ),
    "NTURI": Case(
        nt.NTURI.buildType([("name", "s"), ("count", "I"), ("at", "ad")]),
        {"scheme": "pva", "authority": "host", "path": "history", "query": {"name": "T:ai", "count": 5, "at": [0.5]}},
        {"query": {"count": 4_000_000_000}}, {"path": "other", "query": {"name": "", "at": []}},
    ),
    "NTNameValue": Case(
        normative("NameValue", [("name", "as"), ("value", "as"), *DESCRIBED]), {"name": ["a", "b c"], "value": ["x", ""], **WHOLE},
        {"value": ["y", "\"z\""]}, {"name": ["one"], "value": ["1"]},
    ),
    "NTTable": Case(
        nt.NTTable.buildType([("name", "as"), ("at", "ad"), ("on", "a?"), ("n", "aB")]),
        {"labels": ["Name", "At", "On", "N"], "value": {"name": ["x", "y z"], "at": [1.5, -2.0], "on": [True, False], "n": [0, 255]}, **WHOLE},
        {"value": {"at": [3.0, 4.0]}, "alarm": CALM}, {"labels": ["1", "2", "3", "4"], "value": {"name": [], "at": [], "on": [], "n": []}},
    ),
    "NTAttribute": Case(
        normative("Attribute", [("name", "s"), ("value", "v"), ("tags", "as"), *DESCRIBED]), {"name": "gain", "value": 12, "tags": ["t"], **WHOLE},
        {"value": "high"}, {"value": 2.5, "tags": []},
    ),
    "NTMultiChannel": Case(
        nt.NTMultiChannel.buildType("av"), of_channels([1.5, "two"]), {"isConnected": [True, True], "alarm": CALM}, {"value": [1, None]},
    ),
    "NTMultiChannel of unions": Case(
        channels("MultiChannel", ("aU", None, EITHER[2])), of_channels([("number", 0.5), ("many", [1, 2])]),
        {"value": [("text", "gone")]}, {"value": [("text", "x"), ("number", 2.0), None]},
    ),
    "NTScalarMultiChannel": Case(
        channels("ScalarMultiChannel", "ad"), of_channels([1.5, 2.0]), {"value": [3.0, 4.5], "severity": [0, 0]}, {"value": [], "channelName": []},
    ),
    "NTNDArray": Case(
        image_type(), {**image(("ushortValue", [1, 2, 3, 4, 5, 65535]), [3, 2]), "descriptor": "camera"},
        {"value": ("doubleValue", [0.5]), "uniqueId": 78}, {"value": ("byteValue", [-1, 7]), "uniqueId": 79, "codec": {"name": "x", "parameters": 5}},
    ),
    "NTContinuum": Case(
        normative("Continuum", [("base", "ad"), ("value", "ad"), ("units", "as"), *DESCRIBED]),
        {"base": [0.0, 1.0], "value": [1.0, 2.0, 3.0, 4.0], "units": ["s", "V", "A"], **WHOLE},
        {"value": [4.0, 3.0, 2.0, 1.0]}, {"base": [0.5], "value": [1.0, 2.0], "timeStamp": {"userTag": 9}},
    ),
    "NTHistogram": Case(
        normative("Histogram", [("ranges", "ad"), ("value", "al"), *DESCRIBED]), {"ranges": [0.0, 0.5, 1.0], "value": [3, 2**62], **WHOLE},
        {"value": [4, 0]}, {"ranges": [0.0, 10.0], "value": [-1]},
    ),
    "NTAggregate": Case(
        normative("Aggregate", [
            ("value", "d"), ("N", "l"), ("dispersion", "d"), ("first", "d"), ("firstTimeStamp", timeStamp), ("last", "d"),
            ("lastTimeStamp", timeStamp), ("max", "d"), ("min", "d"), *DESCRIBED,
        ]),
        {
            "value": 2.5, "N": 4, "dispersion": 0.25, "first": 1.0, "firstTimeStamp": THEN, "last": 4.0, "lastTimeStamp": LATER,
            "max": 9.0, "min": -1.0, **WHOLE,
        },
        {"value": 2.75, "N": 5, "last": 3.75}, {"N": 0, "firstTimeStamp": {"nanoseconds": 1}},
    ),
    "NTUnion": Case(
        normative("Union", [("value", "v"), *DESCRIBED]), {"value": [1.5, 2.0], **WHOLE}, {"value": 3}, {"value": "text", "descriptor": "of any"},
    ),
    "NTUnion of two": Case(
        normative("Union", [("value", EITHER), *DESCRIBED]), {"value": ("text", "either"), **WHOLE},
        {"value": ("number", 2.5)}, {"value": ("many", [1, -1])},
    ),
    "scalars": Case(
        Type([(WORDS[code], code) for code in SCALARS], id="all_t"), {WORDS[code]: value for code, value in SCALARS.items()},
        {"boolean": False, "long": 2**63 - 1, "ulong": 0, "float": 0.5, "string": ""},
        {
            "boolean": False, "byte": 127, "short": 32767, "int": 2**31 - 1, "long": -1, "ubyte": 0, "ushort": 1, "uint": 2, "ulong": 2**63,
            "float": -1.5, "double": 1e-300, "string": "x",
        },
    ),
    "arrays": Case(
        Type([(WORDS[code], f"a{code}") for code in SCALARS], id="all_t"), {WORDS[code]: [value] * 3 for code, value in SCALARS.items()},
        {"boolean": [], "long": [2**63 - 1], "string": ["", "a"]}, {WORDS[code]: [value] for code, value in SCALARS.items()},
    ),
    "nested": Case(
        Type([
            ("inner", ("S", "inner_t", [("a", "i"), ("deeper", ("S", None, [("t", "s"), ("either", EITHER)]))])),
            ("rows", ("aS", "row_t", [("d", "d"), ("either", EITHER)])), ("eithers", ("aU", "either_t", EITHER[2])), ("any", "v"), ("anys", "av"),
        ]),
        {
            "inner": {"a": 1, "deeper": {"t": "x", "either": ("many", [1, 2])}},
            "rows": [{"d": 1.5, "either": ("text", "y")}, {"d": 2.0, "either": None}, None],
            "eithers": [("number", 1.0), None, ("text", "z")], "any": [0.5], "anys": [1, "b", 2.5],
        },
        {"inner": {"deeper": {"either": ("number", 0.5)}}, "any": None},
        {"inner": {"a": 2, "deeper": {"t": ""}}, "rows": [{"d": 9.0, "either": ("many", [])}], "eithers": [], "any": "text", "anys": []},
    ),
}  # fmt: skip


def merged(value, change):
    """A value after some of its fields have changed."""
    if not isinstance(change, dict):
        return change
    return {**value, **{name: merged(value[name], inner) for name, inner in change.items()}}


def value_of(case, fields):
    """Some fields of a value, for p4p."""
    return Value(case.type, as_p4p(case.type.aspy(), fields))


def as_p4p(spec, data):
    """A value as p4p takes it: it would take numbers in an any-field for texts unless they are an array."""
    code = spec if isinstance(spec, str) else spec[0]
    if code == "S":
        return {name: as_p4p(inner, data[name]) for name, inner in fields_of(spec) if name in data}
    return numpy.array(data) if code == "v" and isinstance(data, list) else data


def as_json(spec, data):
    """What JSON shows of a value: a union is an object with its member."""
    code = spec if isinstance(spec, str) else spec[0]
    if code == "S":
        return {name: as_json(inner, data[name]) for name, inner in fields_of(spec) if name in data}
    if code == "U":
        return data and {data[0]: data[1]}
    if code in ("aS", "aU"):
        return [element and as_json((code[1:], *spec[1:]), element) for element in data]
    return data


def as_raw(spec, data, changed=None):
    """The lines that pvget's raw form shows of a value, of which only some fields may have changed."""
    return list(raw_lines(spec, "", data, data if changed is None else changed, 0))


def raw_lines(spec, name, data, changed, level):
    code = spec if isinstance(spec, str) else spec[0]
    if code == "v" and data is not None:
        inner = any_type(data)
        body, below = "", raw_lines(inner, "", data, data, level + 1)
    elif code == "U" and data:
        body, below = "", raw_lines(dict(fields_of(spec))[data[0]], data[0], data[1], data[1], level + 1)
    elif code == "S":
        body = meaning(spec, data)
        shown = [(field, inner) for field, inner in fields_of(spec) if field in changed]
        below = (line for field, inner in shown for line in raw_lines(inner, field, data[field], changed[field], level + 1))
    elif code in ("aS", "aU", "av"):
        element = code[1:] if code == "av" else (code[1:], *spec[1:])
        body, below = "", (line for one in data for line in element_lines(element, one, level + 1))
    else:
        body, below = f"[{','.join(map(quoted, data))}]" if code[0] == "a" else plain(data), ()
    yield "    " * level + " ".join(filter(None, [type_word(spec), name, body]))
    yield from below


def element_lines(spec, data, level):
    return ["    " * level + "null"] if data is None else raw_lines(spec, "", data, data, level)


def fields_of(spec):
    """The fields of a structure or a union, as pairs of name and specification."""
    return [(name, of.aspy() if isinstance(of, Type) else of) for name, of in spec[2]]


def type_word(spec):
    code, identifier = (spec, None) if isinstance(spec, str) else spec[:2]
    # p4p says so of what has no identifier.
    named = identifier if identifier != "structure" else None
    return f"{named or WORDS[code[1:]]}[]" if code[0] == "a" else named or WORDS[code]


def any_type(data):
    """The type that p4p and our command choose for what an any-field holds."""
    if isinstance(data, list):
        return f"a{any_type(data[0])}"
    return {int: "l", float: "d", str: "s"}[type(data)]


def meaning(spec, data):
    """What pvget says of an alarm, a time stamp and a choice."""
    if spec[1] == "alarm_t" and data["severity"]:
        return " ".join(filter(None, [SEVERITIES[data["severity"]], STATUSES[data["status"]], data["message"]]))
    if spec[1] == "time_t":
        at = datetime.datetime.fromtimestamp(data["secondsPastEpoch"], datetime.timezone.utc)
        tag = f"  {data['userTag']}" if data["userTag"] else ""
        return f"{at:%Y-%m-%d %H:%M:%S}.{data['nanoseconds'] // 1_000_000:03}{tag}"
    if spec[1] == "enum_t":
        return f"({data['index']}) {data['choices'][data['index']]}"
    return ""


def plain(data):
    if data is None:
        return "null"
    if isinstance(data, str):
        return data.replace("\n", "\\n").replace("\t", "\\t")
    # Python and Rust choose the same digits; a fraction of zero is left out.
    return json.dumps(data).removesuffix(".0").replace("e+", "e")


def quoted(data):
    return json.dumps(data, ensure_ascii=False) if isinstance(data, str) else plain(data)


def leaves(spec, data, path=""):
    """Fields that are no structures, by their paths, as a server of p4p sees them: a union without its member."""
    found = {}
    for name, inner in fields_of(spec):
        if name in data:
            code = inner if isinstance(inner, str) else inner[0]
            found |= leaves(inner, data[name], f"{path}{name}.") if code == "S" else {path + name: as_p4p_shows(inner, data[name])}
    return found


def as_p4p_shows(spec, data):
    code = spec if isinstance(spec, str) else spec[0]
    if code == "U":
        return data and data[1]
    if code in ("aU", "aS"):
        return [one and as_p4p_shows((code[1:], *spec[1:]), one) for one in data]
    if code == "S":
        return {name: as_p4p_shows(inner, data[name]) for name, inner in fields_of(spec)}
    return data
