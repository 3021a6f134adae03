# Two devices on the ends of one virtual cable. Both addresses are of this machine, and a packet between them would not
# leave it; policy routing sends it over the cable. The rules with `oif` are for rdma_cm, which looks routes up by
# interface.
step ip link add v0 type veth peer name v1
for interface in all v0 v1; do
    echo 1 >"$system/proc/sys/net/ipv4/conf/$interface/accept_local"
    echo 0 >"$system/proc/sys/net/ipv4/conf/$interface/rp_filter"
done
echo "link set lo up
address add 10.9.0.1/24 dev v0
address add 10.9.1.1/24 dev v1
link set v0 mtu $mtu up
link set v1 mtu $mtu up
rule add pref 10 iif lo to 10.9.1.1 lookup 101
rule add pref 11 iif lo to 10.9.0.1 lookup 102
rule add pref 12 oif v0 to 10.9.1.1 lookup 101
rule add pref 13 oif v1 to 10.9.0.1 lookup 102
route add 10.9.1.1 dev v0 src 10.9.0.1 table 101
route add 10.9.0.1 dev v1 src 10.9.1.1 table 102
rule add pref 20 lookup local
rule del pref 0" >"$share/network"
step ip -batch "$share/network"
echo 'link add rxe0 type rxe netdev v0
link add rxe1 type rxe netdev v1' >"$share/devices"
step rdma -b "$share/devices"
await_device rxe0 10.9.0.1
await_device rxe1 10.9.1.1
if [ -n "$netem" ]; then
    step tc qdisc add dev v0 root netem $netem
    step tc qdisc add dev v1 root netem $netem
fi
echo "10.9.0.1 $name" >>"$system/etc/hosts"
TAGMATCH_RXE_DEVICES='rxe0 rxe1'
TAGMATCH_RXE_ADDRESSES='10.9.0.1 10.9.1.1'
TAGMATCH_RXE_INTERFACES='v0 v1'
TAGMATCH_RXE_GIDS="$(gid_index rxe0 10.9.0.1) $(gid_index rxe1 10.9.1.1)"
export TAGMATCH_RXE_DEVICES TAGMATCH_RXE_ADDRESSES TAGMATCH_RXE_INTERFACES TAGMATCH_RXE_GIDS
