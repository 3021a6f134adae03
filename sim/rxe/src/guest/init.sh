#!/busybox sh
# The first program of the virtual machine: loads what is needed to see the root of the machine outside, lays a memory
# file system over it, and goes there. Nothing that is written reaches the outside but through the share.
b=/busybox
fail() {
    echo "tagmatch: $*"
    $b poweroff -f
}
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
for module in /modules/*.ko; do
    $b insmod "$module" || echo "tagmatch: $module cannot be loaded"
done
$b mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose root /outside || fail 'the root outside cannot be mounted'
$b mount -t tmpfs -o mode=0755 tmpfs /over && $b mkdir /over/upper /over/work || fail 'there is no memory for files'
$b mount -t overlay -o lowerdir=/outside,upperdir=/over/upper,workdir=/over/work overlay /new || fail 'the root outside cannot be laid under'
for folder in proc sys dev run; do
    [ -d /new/$folder ] || $b mkdir /new/$folder
done
$b mkdir -p /new/run/tagmatch-rxe /new/run/tagmatch-rxe-common
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none share /new/run/tagmatch-rxe || fail 'the share cannot be mounted'
# From the command line of the kernel.
if [ -n "$tagmatch_common" ]; then
    $b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none common /new/run/tagmatch-rxe-common || fail 'what both machines share cannot be mounted'
fi
for folder in proc sys dev; do
    $b mount -o move /$folder /new/$folder || fail "$folder cannot be moved"
done
exec $b switch_root /new /bin/sh /run/tagmatch-rxe/session || fail 'there is no way to the root outside'
