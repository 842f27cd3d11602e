"""A bounded relay between two network namespaces, for kernels without netem: packets wait a fixed time.

delay.py NAMESPACE_A ADDRESS_A NAMESPACE_B ADDRESS_B MILLISECONDS SECONDS
Makes a TUN device "delay" in both and moves packets between them until SECONDS have passed or its parent ends. At most
4096 packets wait in each direction; more are dropped, as a network would.
"""
import collections, ctypes, fcntl, os, select, struct, subprocess, sys, time

libc = ctypes.CDLL(None, use_errno=True)


def device(namespace, own):
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open("/run/netns/" + namespace, os.O_RDONLY)
    if libc.setns(there, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"delay", 0x0001 | 0x1000))  # TUNSETIFF: IFF_TUN, IFF_NO_PI
    if libc.setns(home, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    for words in (["addr", "add", own + "/24", "dev", "delay"], ["link", "set", "delay", "up"]):
        subprocess.run(["ip", "-n", namespace, *words], check=True)
    return tun


a, own_a, b, own_b = sys.argv[1:5]
wait, end = float(sys.argv[5]) / 1000, time.monotonic() + float(sys.argv[6])
parent = os.getppid()
ends = [device(a, own_a), device(b, own_b)]
queues = [collections.deque(), collections.deque()]  # to ends[0], to ends[1]
print("ready", flush=True)
while time.monotonic() < end and os.getppid() == parent:
    now = time.monotonic()
    due = [q[0][0] for q in queues if q]
    timeout = min([max(0, min(due) - now)] if due else [0.2])
    for tun in select.select(ends, [], [], min(timeout, 0.2))[0]:
        to = 1 if tun == ends[0] else 0
        for _ in range(256):
            try:
                packet = os.read(tun, 65536)
            except BlockingIOError:
                break
            if len(queues[to]) < 4096:
                queues[to].append((time.monotonic() + wait, packet))
    now = time.monotonic()
    for to in (0, 1):
        while queues[to] and queues[to][0][0] <= now:
            packet = queues[to].popleft()[1]
            try:
                os.write(ends[to], packet)
            except OSError:
                pass
