#!/bin/sh
# The first program of a Linux that is a process: lays a memory file system over the root outside, which is its root, and
# goes there. Its words are those of the programs of this root; /mnt is any directory that is there.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
fail() {
    echo "tagmatch: $*"
    echo o >/proc/sysrq-trigger
    while :; do :; done
}
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs -o mode=0755 tmpfs /mnt && mkdir /mnt/upper /mnt/work /mnt/new || fail 'there is no memory for files'
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/new || fail 'the root outside cannot be laid under'
mkdir -p /mnt/new/run/tagmatch-rxe /mnt/new/run/tagmatch-rxe-common
# From the command line of the kernel.
mount -t hostfs -o "$tagmatch_share" none /mnt/new/run/tagmatch-rxe || fail 'the share cannot be mounted'
if [ -n "$tagmatch_common" ]; then
    mount -t hostfs -o "$tagmatch_common" none /mnt/new/run/tagmatch-rxe-common || fail 'what both machines share cannot be mounted'
fi
exec switch_root /mnt/new /bin/sh /run/tagmatch-rxe/session || fail 'there is no way to the root outside'
