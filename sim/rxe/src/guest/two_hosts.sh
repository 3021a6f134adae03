# One device, on the interface of the wire to the other machine. Nothing starts before both are there.
interface=
for folder in "$system"/sys/class/net/*; do
    case ${folder##*/} in eth* | vec*) interface=${folder##*/} ;; esac
done
address=10.9.0.$((host + 1))
other=10.9.0.$((2 - host))
echo "link set lo up
address add $address/24 dev $interface
link set $interface mtu $mtu up" >"$share/network"
step ip -batch "$share/network"
step rdma link add rxe0 type rxe netdev "$interface"
await_device rxe0 $address
echo "10.9.0.1 rxe-0
10.9.0.2 rxe-1" >>"$system/etc/hosts"
: >"$common/up.$host"
until_up() {
    [ -e "$common/up.$((1 - host))" ]
}
# The other machine may be started again meanwhile: as long as it takes.
until until_true until_up; do :; done
if [ -n "$netem" ]; then
    step tc qdisc add dev "$interface" root netem $netem
fi
TAGMATCH_RXE_HOST=$host
TAGMATCH_RXE_SHARE=$common
TAGMATCH_RXE_DEVICES=rxe0
TAGMATCH_RXE_ADDRESSES="$address $other"
TAGMATCH_RXE_INTERFACES=$interface
TAGMATCH_RXE_GIDS=$(gid_index rxe0 $address)
export TAGMATCH_RXE_HOST TAGMATCH_RXE_SHARE
export TAGMATCH_RXE_DEVICES TAGMATCH_RXE_ADDRESSES TAGMATCH_RXE_INTERFACES TAGMATCH_RXE_GIDS
