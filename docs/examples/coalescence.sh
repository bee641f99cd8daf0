#!/usr/bin/env bash
# What does interrupt coalescence cost in latency, and save in processors? Root; the far end is another host.
#
#     docs/examples/coalescence.sh eth0 ipbusudp-2.0://board:50001              0, 10, 50 and 100 us
#     docs/examples/coalescence.sh eth0 udp://there:4242 results 0 5 20 200     others, and a folder that stays
#
# It sets rx-usecs of the interface that the link leaves by, without adaptation, and puts back what there was. The far end
# has a coalescence of its own. It only reads: a board's registers stay as they are.
set -euo pipefail
hodo=${HODO:-target/release/hodo}
(($# >= 2)) || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
interface=$1 link=$2 results=${3:-$(mktemp -d)}
shift $(($# < 3 ? $# : 3))
(($#)) || set -- 0 10 50 100

before=$(ethtool -c "$interface") || { echo "$interface tells no coalescence; name the interface of a wire" >&2; exit 1; }
usecs=$(awk '$1 == "rx-usecs:" { print $2 }' <<<"$before")
adaptive=$(awk '$1 == "Adaptive" { print $3 }' <<<"$before")
[[ $usecs =~ ^[0-9]+$ ]] || { echo "$interface has no rx-usecs that could be set" >&2; exit 1; }
# Not every driver has both.
set_usecs() { ethtool -C "$interface" adaptive-rx "$2" rx-usecs "$1" 2>/dev/null || ethtool -C "$interface" rx-usecs "$1"; }
trap 'set_usecs "$usecs" "${adaptive/n\/a/off}"' EXIT

for each in "$@"; do
    set_usecs "$each" off
    "$hodo" bench "$link" --test latency --mode receive --sizes 4 --out "$results/rx-$each-latency" --quiet
    "$hodo" bench "$link" --test rate --mode receive --sizes 1388 --window 1,2,4,8,16 --out "$results/rx-$each-rate" --quiet
done
# B/A under 1: slower than with the first. The warning about the coalescence is what was changed on purpose.
for each in "${@:2}"; do
    for test in latency rate; do
        "$hodo" compare "$results/rx-$1-$test/result.json" "$results/rx-$each-$test/result.json"
    done
done
echo "results in $results"
