#!/bin/sh
# The first process of the guest: modules, the network, the software adapter, and the agent that runs what the tests ask for.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
while read -r module; do insmod "/lib/modules/$module" || echo "insmod $module failed"; done </modules
ip link set lo up
ip addr add "$ADDRESS/24" dev eth0
# The address is this one's alone.
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
ip -6 addr add "$ADDRESS6/64" dev eth0
ip link set eth0 mtu 9000 up
rdma link add rxe0 type rxe netdev eth0 || echo "rxe failed"
ulimit -l unlimited
agent 9000 &
echo "guest is up"
while :; do sleep 1000; done
