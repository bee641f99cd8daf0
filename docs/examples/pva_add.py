"""Adds the arguments of a call: `hodo pva serve` gives the request to it, and its reply to the client."""

import json
import sys


def number(given):
    """Return a number as it is; pvcall, pvxcall and eget send texts."""
    try:
        return int(given) if isinstance(given, str) else given
    except ValueError:
        return float(given)


query = json.load(sys.stdin)["query"]
try:
    print(json.dumps(number(query["a"]) + number(query["b"])))
except (KeyError, TypeError, ValueError):
    sys.exit("give two numbers, a and b")
