"""Adds the arguments of a call: `hodo pva serve` gives the request to it, and its reply to the client."""

import json
import sys

query = json.load(sys.stdin)["query"]
if not {"a", "b"} <= query.keys():
    sys.exit("give two numbers, a and b")
print(json.dumps(query["a"] + query["b"]))
