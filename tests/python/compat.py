# SPDX-License-Identifier: Apache-2.0
"""The Python package as a client of ../interop/peer.py: compat.py HOST PORT [WAITER_MS LEASE_MS].

    make compat CLIENT="build/python/used/bin/python tests/python/compat.py"

A hold of the package is not entered again, as every acquire is a holder of its own. Here its lock
of C is, because the peer asks for that, too. "work" is for ../interop/test_mixed.py, as in
../interop/client.c.
"""

import random
import select
import sys
import time

import fairlock
from fairlock import _core
from fairlock._c import ffi, lib
from fairlock._core import RENEW

# After this, a wait whose end the server has not confirmed leaves in the background, and the peer
# would not wait for that.
_core.GRACE = 5

host, port = sys.argv[1:3]
waiter, lease = sys.argv[3:5] or ("5000", "30000")
client = fairlock.Client(
    f"redis://{host}:{port}", waiter=int(waiter) / 1000, lease=int(lease) / 1000
)
client.connect()
locks, holds = {}, {}


def lock_of(name, limit):
    key = (name, limit)
    if key not in locks:
        shared, most = limit is not None, int(limit or 0)
        locks[key] = client.lock(name, shared=shared, limit=most or None)
    return locks[key]


def identity(name, limit=None):
    """That with which it will wait: of the lock of C that the next acquire uses."""
    lock, core = lock_of(name, limit), client._core()
    one = core.take(lock._key)
    text = ffi.new("char[]", lib.FLS_ID_SIZE)
    lib.fls_id(one[0], text)
    core.give_back(lock._key, one)
    return "id " + ffi.string(text).decode()


def again(hold, wait, lease):
    """Re-enters."""
    c = hold._box[0][0]
    status = lib.fls_acquire(c, int(wait), int(lease) or RENEW, 0)
    while status == 1:
        status = lib.fls_wait(c, 1000)
    return {0: f"held {hold.token}", -4: "lost"}.get(status, f"error {status}")


def acquire(name, wait, lease, limit=None):
    key = (name, limit)
    if key in holds:
        return again(holds[key], wait, lease)
    try:
        seconds = int(lease) / 1000 if int(lease) else None
        holds[key] = lock_of(name, limit).acquire(int(wait) / 1000, seconds)
        return f"held {holds[key].token}"
    except fairlock.Busy:
        return "busy"
    except fairlock.Timeout:
        return "timeout"
    except fairlock.Lost:
        return "lost"
    except fairlock.Error as error:
        return f"error {error}"


def release(name, limit=None):
    key = (name, limit)
    if key not in holds:
        return "not-held"
    c = holds[key]._box[0][0]
    if lib.fls_hold_count(c) > 1:
        status = lib.fls_release(c, 0)
        while status == 1:
            status = lib.fls_wait(c, 1000)
        return {0: "released", -4: "lost"}.get(status, f"error {status}")
    try:
        holds.pop(key).release()
        return "released"
    except fairlock.Lost:
        return "lost"
    except fairlock.Error as error:
        return f"error {error}"


def believes(name):
    hold = holds.get((name, None))
    return f"held {hold.token}" if hold and hold.remaining > 0 else "not-held"


def share(name, limit, wait, lease):
    return acquire(name, wait, lease, limit)


def now_us():
    return time.monotonic_ns() // 1000


def status_of(operation):
    """Its hold, if it returns one, and the status."""
    try:
        return operation(), 0
    except fairlock.Error as error:
        return None, error.status


def work_in(name, limit, seconds, careless):
    """Holds it for so long, and tells until when it believed that."""
    at = now_us()
    lock = client.lock(name, limit=limit or None, wait=120)
    hold, status = status_of(lock.acquire)
    print("acquired", name, status, flush=True)
    if hold is None:
        return
    begun, seen = now_us(), 0
    while seen == 0 or seen < begun + seconds * 1e6:
        now = now_us()
        if not careless and hold.remaining == 0:
            break
        seen = now
        time.sleep(0.001)
    if careless:
        seen = now_us()
    if seen:
        print("hold", name, limit, at, begun, seen, hold.token, flush=True)
    print("released", name, status_of(hold.release)[1], flush=True)


def work(name, limit, careless):
    """One of two locks after the other, the second often shared, and now and then for 4 s."""
    while not select.select([sys.stdin], [], [], 0)[0]:
        seconds = 4 if random.random() < 0.005 else random.random() * 0.02
        which = random.randrange(8)
        one = name.decode() + (".shared" if which % 2 else "")
        work_in(one, int(limit) if which in (1, 3, 5) else 0, seconds, int(careless))
        time.sleep(random.random() * 0.02)
    return "done"


VERBS = {
    b"work": work,
    b"id": identity,
    b"acquire": acquire,
    b"release": release,
    b"holds": believes,
    b"share-id": identity,
    b"share": share,
    b"unshare": release,
}
print("ready", flush=True)
for line in sys.stdin.buffer:
    verb, *words = line.rstrip(b"\n").split(b" ")
    print(VERBS[verb](*words) if verb in VERBS else "unsupported", flush=True)
