#!/usr/bin/env bash
# Two hosts on one machine: two network namespaces with a wire between them that carries what 1 Gbit/s Ethernet carries.
#
#     sudo docs/examples/two-hosts.sh                      the rate against the size, from here to the far end
#     sudo docs/examples/two-hosts.sh --test latency       any options of `hodo bench`
#
# Needs root, iproute2 and tc. The namespaces are removed at the end. The limit beside each row is the wire's: at most
# 941.5 Mbit/s of payload.
set -euo pipefail
hodo=${HODO:-target/release/hodo}
near=hodo-near-$$ far=hodo-far-$$
# tbf counts 1,514 of the 1,538 bytes that a full frame takes on the wire, so this stands for 1 Gbit/s.
kbit=984395

cleanup() {
    [[ -n ${server:-} ]] && kill "$server" 2>/dev/null
    ip netns del "$near" 2>/dev/null || true
    ip netns del "$far" 2>/dev/null || true
}
trap cleanup EXIT

ip netns add "$near"
ip netns add "$far"
ip link add wire netns "$near" type veth peer name wire netns "$far"
for end in "$near 10.99.0.2" "$far 10.99.0.1"; do
    read -r name address <<<"$end"
    ip -n "$name" address add "$address/24" dev wire
    ip -n "$name" link set wire mtu 1500 up
    ip -n "$name" link set lo up
    tc -n "$name" qdisc add dev wire root tbf rate ${kbit}kbit burst 64k latency 20ms
done

ip netns exec "$far" "$hodo" serve tcp://10.99.0.1:4242 >/dev/null &
server=$!
# A veth's own speed is no line rate, so it is said here. Options on the command line come last.
[[ $# -gt 0 ]] || set -- --test rate --mode send --sizes 64..128K*4 --congestion cubic --duration 500ms
ip netns exec "$near" "$hodo" bench tcp://10.99.0.1:4242 --line-rate 1G --mtu 1500 "$@"
