# Functions that make devices.

# The index in the table of GIDs that holds an IPv4 address (RoCE v2), once it is there.
gid_index() {
    table=$system/sys/class/infiniband/$1/ports/1
    IFS=. read -r a b c d <<END
$2
END
    gid=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "$a" "$b" "$c" "$d")
    for index in 0 1 2 3 4 5 6 7; do
        read -r found <"$table/gids/$index" && [ "$found" = "$gid" ] || continue
        read -r found <"$table/gid_attrs/types/$index" && [ "$found" = 'RoCE v2' ] || continue
        echo $index
        return 0
    done 2>/dev/null
    return 1
}
is_active() {
    read -r state <"$system/sys/class/infiniband/$1/ports/1/state" && [ "${state#*ACTIVE}" != "$state" ]
}
# The device on an interface is up, and has the GID of its address.
await_device() {
    step until_true is_active "$1"
    step until_true gid_index "$1" "$2"
}
