#!/bin/sh
# The first process of a host without systemd. Like many containers, it gives its programs only a part of the control
# groups, in which they are not alone.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /tmp
ip link set lo up
echo '+cpu +cpuset +io +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/box
sleep infinity &
echo $! >/sys/fs/cgroup/box/cgroup.procs
(
    exec sh -c 'echo $$ >/sys/fs/cgroup/box/cgroup.procs; exec unshare --cgroup --mount --propagation private sh -c "
        umount /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec /opt/falsework/tests.sh"'
)
sync
echo o >/proc/sysrq-trigger
sleep 60
