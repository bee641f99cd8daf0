#!/usr/bin/env bash
# Which of two TCP congestion controls is faster on this link?
#
#     docs/examples/congestion.sh                                     cubic and reno, on this host
#     docs/examples/congestion.sh bbr cubic tcp://there:4242          others, to a far end elsewhere
#
# The far end's side uses its own: start it with `hodo serve --congestion NAME` where it is to send.
set -euo pipefail
hodo=${HODO:-target/release/hodo}
first=${1:-cubic} second=${2:-reno} link=${3:-tcp}
results=$(mktemp -d)
trap 'rm -r "$results"' EXIT

for name in "$first" "$second"; do
    "$hodo" bench "$link" --test rate --mode send --sizes 1K,32K --duration 200ms --repeat 8 \
        --congestion "$name" --json "$results/$name.json" --quiet
done
# B/A over 1: the second is faster. The warning about the environment is what we changed on purpose.
"$hodo" compare "$results/$first.json" "$results/$second.json"
