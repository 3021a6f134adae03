# What every machine does before the command: it says that it is there, and makes the file systems that programs expect.
# What the shell can do itself it does: each program costs an emulated machine a tenth of a second.
: >"$share/ready"
finish() {
    sync
    echo "$1" >"$share/rc.new" && mv "$share/rc.new" "$share/rc"
    # Off, at once.
    echo o >"$system/proc/sysrq-trigger"
    while :; do :; done
}
# A step of the setting up. What it says is shown if it fails.
step() {
    "$@" >>"$share/setup.log" 2>&1 || {
        echo "failed: $*" >>"$share/setup.log"
        finish setup
    }
}
# Again until it holds, for something that the kernel or another machine does in its own time.
until_true() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || return 1
        sleep 0.1
    done
}
[ -d "$system/dev/shm" ] || mkdir "$system/dev/shm"
[ -d "$system/dev/pts" ] || mkdir "$system/dev/pts"
step mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
step mount -t devpts -o mode=0620,ptmxmode=0666 devpts "$system/dev/pts"
[ -e "$system/dev/fd" ] || ln -s /proc/self/fd "$system/dev/fd"
for stream in 0:stdin 1:stdout 2:stderr; do
    [ -e "$system/dev/${stream#*:}" ] || ln -s "/proc/self/fd/${stream%:*}" "$system/dev/${stream#*:}"
done
ulimit -l unlimited
ulimit -c 0
echo "$name" >"$system/proc/sys/kernel/hostname"
