#!/bin/bash
# Run an array on a SLURM of two nodes, from Debian's packages, in an overlay of / and namespaces of its own: nothing of the
# machine changes but the folder that is given. Usage: bash slurm.sh FOLDER, which has shards.sh and kepler-traverse.
set -e
shared=$1
if [ "$2" != inside ]; then exec unshare -m -p -f bash "$0" "$shared" inside; fi
top=$(mktemp -d)
mount -t tmpfs tmpfs "$top"
mkdir -p "$top"/{up,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/up,workdir=$top/work" "$top/root"
mount -t proc proc "$top/root/proc"
mount --rbind /dev "$top/root/dev"
mount --rbind /sys "$top/root/sys"
mount --bind "$shared" "$top/root$shared"
chroot "$top/root" /bin/bash -c '
export DEBIAN_FRONTEND=noninteractive
printf "#!/bin/sh\nexit 101\n" > /usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d
apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge > /root/apt.log 2>&1 || echo no packages
'
chroot "$top/root" /usr/bin/unshare -n /bin/bash -s "$shared" <<'INSIDE'
shared=$1
host=$(hostname -s)
ip link set lo up
ip addr add 10.9.9.1/32 dev lo # names do not resolve if there is no address but that of loopback
grep -q " $host" /etc/hosts || echo "10.9.9.1 $host" >> /etc/hosts
mkdir -p /etc/slurm /var/spool/slurmd-n1 /var/spool/slurmd-n2 /var/spool/slurmctld /run/munge
[ -f /etc/munge/munge.key ] || dd if=/dev/urandom of=/etc/munge/munge.key bs=1 count=1024 2> /dev/null
chown -R munge /run/munge /var/log/munge /var/lib/munge /etc/munge
chmod 400 /etc/munge/munge.key
# A task that was requeued begins when its credential has expired, by default after two minutes.
# Each slurmd has a PID file of its own: it ends the one whose number it finds there.
cat > /etc/slurm/slurm.conf <<CONF
ClusterName=t
SlurmctldHost=$host(10.9.9.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=cred_expire=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd-%n
SlurmdPidFile=/run/slurmd-%n.pid
ReturnToService=2
MailProg=/bin/true
KillWait=60
NodeName=n[1-2] NodeHostname=$host NodeAddr=10.9.9.1 Port=[17001-17002] CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=p Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
CONF
printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\n' > /etc/slurm/cgroup.conf
su -s /bin/sh munge -c "/usr/sbin/munged --force"
sleep 1
/usr/sbin/slurmctld
sleep 2
for node in n1 n2; do /usr/sbin/slurmd -D -N $node > /root/$node.log 2>&1 & done
for _ in $(seq 30); do sinfo -h -t idle -o %D | grep -q 2 && break || sleep 1; done
sinfo
cd "$shared" || exit 1
job=$(sbatch --parsable --output "$shared/task-%a.log" shards.sh)
# A task that runs is preempted: it gets SIGTERM, and begins again.
for _ in $(seq 60); do
  task=$(squeue -h -t R -o %i -j "$job" | head -1)
  [ -n "$task" ] && break || sleep 1
done
sleep 3
scontrol requeue "$task" && echo "requeued $task"
for _ in $(seq 600); do [ -z "$(squeue -h -j "$job")" ] && break || sleep 1; done
sbatch --wait --output "$shared/finish.log" --wrap "$shared/kepler-traverse finish $shared/out" > /dev/null
echo "finish ended with $?"
cat "$shared"/*.log
INSIDE
