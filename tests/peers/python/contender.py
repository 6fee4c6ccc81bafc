# SPDX-License-Identifier: Apache-2.0
# A contender in Python: contender.py redis-py|python-redis-lock PORT. It speaks the lines of
# ../README.md.
import importlib.metadata
import random
import sys
import time

import redis
import redis_lock

LOCK, LEASE_S, HOLD_S, PAUSE_S = "sixteen-byte-nam", 30, 0.003, 0.006


def answer(numbers):
    print("done 0", flush=True)
    print(*numbers, flush=True)


def pairs(lock, count):
    took = []
    for _ in range(count):
        start = time.monotonic_ns()
        lock.acquire()
        lock.release()
        took.append(time.monotonic_ns() - start)
    answer(took)


def contend(lock, count):
    events = []
    for _ in range(count):
        events.append(time.monotonic_ns())
        lock.acquire()
        events.append(time.monotonic_ns())
        time.sleep(HOLD_S)
        events.append(time.monotonic_ns())
        lock.release()
        time.sleep(random.random() * PAUSE_S)
    answer(events)


peer, port = sys.argv[1], int(sys.argv[2])
client = redis.Redis(port=port)
client.ping()
if peer == "redis-py":
    lock, package = client.lock(LOCK, timeout=LEASE_S), "redis"
else:
    lock, package = redis_lock.Lock(client, LOCK, expire=LEASE_S), peer
print("ready", time.monotonic_ns(), importlib.metadata.version(package), flush=True)
for line in sys.stdin:
    verb, count = line.split()
    {"pairs": pairs, "contend": contend}[verb](lock, int(count))
