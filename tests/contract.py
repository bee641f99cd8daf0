"""The result contract, version 3, as checks: what every document that hodo writes must hold."""

import base64
import functools
import json
import pathlib
import zlib

MODES = ("both", "send", "receive")
TSV_COLUMNS = (
    "protocol link test mode size_bytes window channels batch wait repeats operations_per_s payload_mbit_per_s"
    " average_time_us latency_p50_us latency_p99_us cpu_machine_percent cpu_local_percent cpu_remote_percent"
    " limit_mbit_per_s share_of_limit lost retransmitted verdict"
    " limit_kind limit_us binds rate_low rate_high latency_min_us latency_p90_us latency_p99_9_us latency_max_us"
    " cpu_local_ns_per_operation cpu_remote_ns_per_operation cpu_s_per_gbit user_s system_s rate_asked seed duplicated"
    " reordered refused overrun simulated host kernel started commit"
    " simulation_host_s simulation_times_real_time simulation_machine_percent simulation_local_percent"
    " simulation_local_ns_per_operation simulation_user_s simulation_system_s"
    " average_packet_time_us times_plain_loop stalls stalled_s"
    " cpu_local_polling_s cpu_remote_polling_s cpu_local_sleeps_per_operation cpu_remote_sleeps_per_operation rounds"
    " dscp ttl mss device sent_operations_per_s sent_mbit_per_s"
).split()
# The front of every HdrHistogram V2 in compressed form.
HISTOGRAM_COOKIE = 0x1C849314


def closed(schema):
    """The schema, in which no object has a field that it does not name, and what may be absent is not null."""
    for one in (schema, *schema["$defs"].values()):
        if one.get("type") == "object":
            one["unevaluatedProperties"] = False
            for name in one["properties"].keys() - set(one.get("required", ())):
                one["properties"][name] = {"allOf": [one["properties"][name]], "not": {"type": "null"}}
    return schema


SCHEMA = pathlib.Path(__file__).parents[1] / "docs/result.schema.json"
# Figures that may be below 0: of two clocks, which is ahead.
SIGNED = {"ahead_ns"}


def parse(text):
    """The document of a text that is JSON and nothing else, checked."""
    document = json.loads(text, parse_constant=lambda name: complain("document", f"{name} is not JSON"))
    check_document(document)
    return document


@functools.cache
def worst_violation():
    """A function from a document to its worst violation of the schema, or `None`."""
    # Here, as it takes most of a second to load, and few of the processes that tests start check documents.
    import jsonschema

    validator = jsonschema.Draft202012Validator(closed(json.loads(SCHEMA.read_text(encoding="utf-8"))))
    return lambda document: jsonschema.exceptions.best_match(validator.iter_errors(document))


def check_document(document):
    """Fails, naming the field, where a document breaks the contract."""
    worst = worst_violation()(document)
    if worst:
        complain(f"document{worst.json_path[1:]}", worst.message)
    if document["tool"]["name"] != "hodo":
        complain("document.tool.name", f"{document['tool']['name']!r} is not hodo")
    check_figures("document", document)
    for number, measurement in enumerate(document["measurements"]):
        check_sense(f"measurements[{number}]", measurement)


def check_figures(where, value):
    """No figure is negative, or not finite."""
    if isinstance(value, dict):
        for name in value.keys() - SIGNED:
            check_figures(f"{where}.{name}", value[name])
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            check_figures(f"{where}[{number}]", entry)
    elif isinstance(value, (int, float)) and not 0 <= value < float("inf"):
        complain(where, f"{value!r} is no figure")


def complain(where, what):
    raise AssertionError(f"{where}: {what}")


def check_sense(where, found):
    """What the types cannot say: figures that contradict each other."""
    if "sent" in found and (found["window"] is not None or found["latency_ns"] is not None):
        complain(where, "without a window there are no replies to time")
    drawn = found["size_bytes"] is None
    if drawn and not 0 <= found["size_min_bytes"] <= found["size_max_bytes"]:
        complain(where, "sizes were drawn, and their bounds are not in order")
    if (found["test"] == "random") != drawn:
        complain(where, "size_bytes is null for drawn sizes, and only for them")
    if len(found["intervals"]) > 200:
        complain(where, f"{len(found['intervals'])} intervals, at most 200")
    if not found["verdict"]["text"].strip():
        complain(where, "a verdict without a sentence")
    if found["latency_ns"]:
        check_latency(f"{where}.latency_ns", found["latency_ns"])
    local = [stage["share"] for stage in found["stages"] if stage["side"] == "local"]
    if found["stages"] and abs(sum(local) - 1) > 1e-6:
        complain(f"{where}.stages", f"the shares of this side are {local}, and do not add up to 1")
    around = None
    for stage in found["stages"]:
        # What is left of the stage of this side that the far end's are within is a stage too.
        around = [stage, 0.0] if stage["side"] == "local" else [around[0], around[1] + stage["mean_ns"]]
        if stage["name"] == "network, waking" and abs(around[1] - around[0]["mean_ns"]) > 1:
            complain(f"{where}.stages", f"those of the far end take {around[1]} ns of {around[0]['mean_ns']}")
    if ("simulation" in found) != found["link"].startswith("sim+") and found["operations"] > 0:
        complain(where, "a simulated link says what it cost this host, and no other does")
    limit = found["limit"]
    if (found["times_plain_loop"] is not None) != ("plain_loop" in found):
        complain(where, "what was achieved over the plain loop stands where there is one, and only there")
    if limit and limit["kind"] == "plain_loop" and found["share_of_limit"] is not None:
        complain(where, "a share of a plain loop, which is no bound")
    if limit and all(limit[name] is None for name in ("payload_bits_per_s", "operations_per_s", "latency_ns")):
        complain(f"{where}.limit", "a limit without a figure")
    if limit and not limit["formula"].strip():
        complain(f"{where}.limit", "a limit without its formula")
    complete = found["verdict"]["state"] not in ("interrupted", "failed")
    if complete and not (found["operations"] > 0 and found["elapsed_s"] > 0 and found["intervals"]):
        complain(where, "complete, and yet nothing was measured")
    for name, estimate in found["rate"].items():
        low, high = estimate["low"], estimate["high"]
        if low is not None and not low <= estimate["median"] <= high:
            complain(f"{where}.rate.{name}", "the median is outside its interval")


# Facts of a host or an interface that not every one has, and the commit, which a copy without its history has not.
NOT_EVERYWHERE = {
    ".tool.commit",
    ".environment.hypervisor",
    ".environment.governor",
    *(f".environment.nic.{fact}" for fact in ("driver", "speed_mbit_per_s", "duplex")),
    *(f".environment.far_end.{fact}" for fact in ("congestion_control", "line_bits_per_s")),
    *(f".environment.nic.{way}_{fact}" for way in ("rx", "tx") for fact in ("usecs", "adaptive")),
}


def check_filled(document):
    """Fails, naming the field, where one is null that could have been known."""
    kinds = {one["link"].split("://")[0] for one in document["measurements"]}
    justified = set(NOT_EVERYWHERE)
    if all(kind == "unix" or kind.startswith("sim+") for kind in kinds):
        # No interface is between the two ends.
        justified |= {".environment.nic", ".environment.mtu"}
    for path in nulls("", {name: document[name] for name in ("tool", "environment")}):
        if path not in justified:
            complain(path, "is null")
    for number, one in enumerate(document["measurements"]):
        for path in nulls("", one):
            # Whose a stall was, and what the host observed then, is not always known.
            if path not in may_be_null(one) and not path.startswith((".stalls[]", ".observed.")):
                complain(f"measurements[{number}]{path}", "is null")


def may_be_null(one):
    """The fields of a complete measurement that say nothing in it."""
    # No measurement of a test lasts for a window of ten seconds.
    paths = {".fairness.worst_window"}
    if one["test"] == "random":
        paths.add(".size_bytes")
    if one["test"] != "latency":
        # A plain loop has a time only where one operation is in flight at a time.
        paths |= {".limit.latency_ns", ".plain_loop.latency_ns"}
    if one["limit"] and one["limit"]["kind"] == "plain_loop":
        paths.add(".share_of_limit")
    else:
        paths.add(".limit.spread")
    if "plain_loop" not in one:
        paths.add(".times_plain_loop")
    if one["test"] == "updates" and "rate_asked" not in one:
        # A few of them may be taken from what has been buffered, far faster than bare sockets send.
        paths |= {".limit", ".share_of_limit"}
    if one["repeats"] < 3:
        paths |= {f".rate.{rate}.{end}" for rate in one["rate"] for end in ("low", "high", "confidence")}
    if one["link"].startswith("sim+"):
        # What computing the simulation costs says nothing of the link.
        paths |= {f".cpu.{name}" for name in one["cpu"]}
        paths.add(".simulation.machine_percent")
    if one["elapsed_s"] < 0.05:
        # The kernel counts a machine's time in hundredths of a second.
        paths.add(".cpu.machine_percent")
    return paths


def nulls(where, value):
    """The paths of all nulls in a value."""
    if value is None:
        yield where
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from nulls(f"{where}.{name}", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nulls(f"{where}[]", inner)


def check_latency(where, latency):
    quantiles = [latency[name] for name in ("min", "p50", "p90", "p99", "p99_9", "max")]
    if quantiles != sorted(quantiles) or not latency["min"] <= latency["mean"] <= latency["max"]:
        complain(where, f"out of order: {quantiles}, mean {latency['mean']}")
    packed = base64.b64decode(latency["histogram"], validate=True)
    if int.from_bytes(packed[:4], "big") != HISTOGRAM_COOKIE:
        complain(f"{where}.histogram", "is not an HdrHistogram V2 in compressed form")
    zlib.decompress(packed[8 : 8 + int.from_bytes(packed[4:8], "big")])


def parse_tsv(text):
    """The rows of a TSV as dictionaries, checked."""
    lines = text.split("\n")
    if lines.pop() != "" or lines[0].split("\t") != TSV_COLUMNS:
        complain("TSV", f"begins with {lines[:1]}, not with the columns of the contract, or has no last newline")
    rows = [line.split("\t") for line in lines[1:]]
    for number, row in enumerate(rows, 2):
        if len(row) != len(TSV_COLUMNS):
            complain(f"TSV line {number}", f"{len(row)} columns, not {len(TSV_COLUMNS)}")
    return [dict(zip(TSV_COLUMNS, row, strict=True)) for row in rows]
