"""The result contract, version 3, as checks: what every document that hodo writes must hold."""

import base64
import json
import zlib

SCHEMA = "hodo.result/3"
TESTS = ("rate", "latency", "random", "channels", "open", "updates")
MODES = ("both", "send", "receive")
STATES = ("stable", "noisy", "bimodal", "drifting", "missed", "stalled", "interrupted", "failed")
KINDS = ("line", "plain_loop", "model")
BINDS = ("line", "window", "roundtrip", "cpu", "bus", "schedule", "far_end", "loss", "buffer", "quota", "others", "unknown")
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


class Null:
    """A type that may also be null."""

    def __init__(self, kind):
        self.kind = kind


class Each:
    """A list of this type."""

    def __init__(self, kind):
        self.kind = kind


COUNT = "a whole number, not negative"
NUMBER = "a finite number, not negative"
TEXT = "a string"

ESTIMATE = {"median": NUMBER, "low": Null(NUMBER), "high": Null(NUMBER), "confidence": Null(NUMBER), "best": NUMBER}
PROCESS = {
    "percent": NUMBER,
    "user_s": NUMBER,
    "system_s": NUMBER,
    "polling_s": Null(NUMBER),
    "voluntary_switches": COUNT,
    "involuntary_switches": COUNT,
    "max_rss_bytes": COUNT,
}
LATENCY = {
    "min": COUNT,
    "mean": NUMBER,
    "p50": COUNT,
    "p90": COUNT,
    "p99": COUNT,
    "p99_9": COUNT,
    "max": COUNT,
    "count": COUNT,
    "histogram": TEXT,
}
LIMIT = {
    "payload_bits_per_s": Null(NUMBER),
    "operations_per_s": Null(NUMBER),
    "latency_ns": Null(NUMBER),
    "kind": KINDS,
    "binds": BINDS,
    "formula": TEXT,
    "assumes": TEXT,
    "spread": Null(NUMBER),
}
STAGE = {
    "name": TEXT,
    "side": ("local", "remote"),
    "count": COUNT,
    "mean_ns": NUMBER,
    "p50_ns": Null(COUNT),
    "p99_ns": Null(COUNT),
    "share": NUMBER,
}
OBSERVED = {
    "retransmitted": Null(COUNT),
    "timeouts": Null(COUNT),
    "queue_drops": Null(COUNT),
    "card_drops": Null(COUNT),
    "softirq_s": Null(NUMBER),
    "steal_s": Null(NUMBER),
    "others_s": Null(NUMBER),
    "waited_for_processor_s": Null(NUMBER),
    "far_waited_for_processor_s": Null(NUMBER),
    "throttled_s": Null(NUMBER),
    "far_throttled_s": Null(NUMBER),
}
STALL = {
    "at_s": NUMBER,
    "lasted_s": NUMBER,
    "operations_late": COUNT,
    "whose": Null(("link", "far_end", "host")),
    "saw": OBSERVED,
}
# Bare sockets in the row's shape.
PLAIN_LOOP = {
    "operations_per_s": NUMBER,
    "payload_bits_per_s": NUMBER,
    "latency_ns": Null(NUMBER),
    "cost_ns": Null(NUMBER),
    "looks": COUNT,
    "spread": NUMBER,
    "shape": TEXT,
}
MEASUREMENT = {
    "protocol": TEXT,
    "link": TEXT,
    "test": TESTS,
    "mode": MODES,
    "size_bytes": Null(COUNT),
    "window": Null(COUNT),
    "channels": COUNT,
    "batch": COUNT,
    "wait": TEXT,
    "seed": COUNT,
    "repeats": COUNT,
    "operations": COUNT,
    "payload_bytes": COUNT,
    "elapsed_s": NUMBER,
    "rate": {"operations_per_s": ESTIMATE, "payload_bits_per_s": ESTIMATE},
    "latency_ns": Null(LATENCY),
    "cpu": {
        "machine_percent": Null(NUMBER),
        "local": Null(PROCESS),
        "remote": Null(PROCESS),
        "local_ns_per_operation": Null(NUMBER),
        "remote_ns_per_operation": Null(NUMBER),
        "local_sleeps_per_operation": Null(NUMBER),
        "remote_sleeps_per_operation": Null(NUMBER),
    },
    "loss": {"lost": COUNT, "duplicated": COUNT, "reordered": COUNT, "retransmitted": COUNT, "refused": COUNT, "overrun": COUNT},
    "limit": Null(LIMIT),
    "share_of_limit": Null(NUMBER),
    "times_plain_loop": Null(NUMBER),
    "stages": Each(STAGE),
    "verdict": {"state": STATES, "text": TEXT},
    "stalls": Each(STALL),
    "intervals": Each({"t_s": NUMBER, "operations": COUNT, "payload_bytes": COUNT}),
}
ENVIRONMENT = {
    "host": Null(TEXT),
    "kernel": Null(TEXT),
    "cpu": Null(TEXT),
    "cores": Null(COUNT),
    "memory_bytes": Null(COUNT),
    "congestion_control": Null(TEXT),
    "mtu": Null(COUNT),
    "nic": Null({"name": TEXT}),
    "placement": Null(TEXT),
    "clock": Null({"source": TEXT, "cost_ns": NUMBER}),
    "hypervisor": Null(TEXT),
    "governor": Null(TEXT),
    "started": Null(TEXT),
    "arguments": Each(TEXT),
}
# What a document has only where it is known.
FAR_END = {
    "wait": Null(TEXT),
    "placement": Null(TEXT),
    "kernel": Null(TEXT),
    "congestion_control": Null(TEXT),
    "line_bits_per_s": Null(COUNT),
}
# What computing a simulated link cost this host.
SIMULATION = {
    "host_s": NUMBER,
    "times_real_time": NUMBER,
    "machine_percent": Null(NUMBER),
    "local": Null(PROCESS),
    "local_ns_per_operation": Null(NUMBER),
}
# The options of a link's sockets: each only where it was set, and the segments only of TCP.
CONNECTION = {
    "dscp": COUNT,
    "ttl": COUNT,
    "mss": COUNT,
    "mss_asked": COUNT,
    "bind": TEXT,
    "device": TEXT,
    "ip_version": COUNT,
}
# What this side sent, where no window held it back.
SENT = {"operations": COUNT, "operations_per_s": NUMBER, "payload_bits_per_s": NUMBER}
# The row that was measured at the same time, where there was one.
BESIDE = {"protocol": TEXT, "test": TEXT, "mode": TEXT, "size_bytes": Null(COUNT), "payload_bits_per_s": NUMBER}
# The search for the highest rate, where one was asked for.
SLO = {
    "conditions": Each(TEXT),
    "rate": Null(NUMBER),
    "low": Null(NUMBER),
    "high": Null(NUMBER),
    "closed_loop_per_s": NUMBER,
    "curve": Each({
        "rate": NUMBER,
        "operations_per_s": NUMBER,
        "p50_ns": Null(COUNT),
        "p99_ns": Null(COUNT),
        "lost": COUNT,
        "repeats": COUNT,
        "repeats_held": COUNT,
        "held": (True, False),
    }),
    "text": TEXT,
}
DOCUMENT = {
    "schema": (SCHEMA,),
    "tool": {"name": ("hodo",), "version": TEXT, "commit": Null(TEXT)},
    "environment": ENVIRONMENT,
    "measurements": Each(MEASUREMENT),
}


def parse(text):
    """The document of a text that is JSON and nothing else, checked."""
    document = json.loads(text, parse_constant=lambda name: complain("document", f"{name} is not JSON"))
    check_document(document)
    return document


def check_document(document):
    """Fails, naming the field, where a document breaks the contract."""
    check("document", document, DOCUMENT)
    if "far_end" in document["environment"]:
        check("document.environment.far_end", document["environment"]["far_end"], FAR_END)
    if "slo" in document:
        check("document.slo", document["slo"], SLO)
    for number, measurement in enumerate(document["measurements"]):
        if (measurement["limit"] or {}).get("least") is not None:
            check(f"measurements[{number}].limit.least", measurement["limit"]["least"], BINDS)
        if "simulation" in measurement:
            check(f"measurements[{number}].simulation", measurement["simulation"], SIMULATION)
        if "plain_loop" in measurement:
            check(f"measurements[{number}].plain_loop", measurement["plain_loop"], PLAIN_LOOP)
        if "connection" in measurement:
            known = {name: kind for name, kind in CONNECTION.items() if name in measurement["connection"]}
            check(f"measurements[{number}].connection", measurement["connection"], known)
        if "sent" in measurement:
            check(f"measurements[{number}].sent", measurement["sent"], SENT)
            assert measurement["window"] is None and measurement["latency_ns"] is None, measurement
        if "beside" in measurement:
            check(f"measurements[{number}].beside", measurement["beside"], BESIDE)
        if "shortfall_s" in measurement:
            check(f"measurements[{number}].shortfall_s", measurement["shortfall_s"], NUMBER)
        check_sense(f"measurements[{number}]", measurement)


def check(where, value, kind):
    if isinstance(kind, Null):
        if value is not None:
            check(where, value, kind.kind)
    elif isinstance(kind, Each):
        if not isinstance(value, list):
            complain(where, f"{value!r} is not a list")
        for number, entry in enumerate(value):
            check(f"{where}[{number}]", entry, kind.kind)
    elif isinstance(kind, dict):
        if not isinstance(value, dict):
            complain(where, f"{value!r} is not an object")
        for name, inner in kind.items():
            if name not in value:
                complain(f"{where}.{name}", "is missing")
            check(f"{where}.{name}", value[name], inner)
    elif isinstance(kind, tuple):
        if value not in kind:
            complain(where, f"{value!r} is none of {', '.join(kind)}")
    elif not fits(value, kind):
        complain(where, f"{value!r} is not {kind}")


def fits(value, kind):
    if kind is TEXT:
        return isinstance(value, str)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return (whole or (kind is NUMBER and isinstance(value, float))) and 0 <= value < float("inf")


def complain(where, what):
    raise AssertionError(f"{where}: {what}")


def check_sense(where, found):
    """What the types cannot say: figures that contradict each other."""
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
