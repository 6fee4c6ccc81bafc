# SPDX-License-Identifier: Apache-2.0
# A contender in Python: contender.py PEER PORT. It speaks the lines of ../README.md.
import asyncio
import importlib.metadata
import random
import sys
import time

import fairlock.aio
import redis
import redis.asyncio
import redis_lock

LOCK, LEASE_S, HOLD_S, PAUSE_S = "sixteen-byte-nam", 30, 0.003, 0.006


class Ours:
    """With what acquire() returns kept, as a program does."""

    def __init__(self, lock):
        self.lock = lock

    def acquire(self):
        self.hold = self.lock.acquire()

    def release(self):
        self.hold.release()


class OursAsync(Ours):
    async def acquire(self):
        self.hold = await self.lock.acquire()

    async def release(self):
        await self.hold.release()


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
    return took


async def pairs_async(lock, count):
    took = []
    for _ in range(count):
        start = time.monotonic_ns()
        await lock.acquire()
        await lock.release()
        took.append(time.monotonic_ns() - start)
    return took


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
    return events


async def contend_async(lock, count):
    events = []
    for _ in range(count):
        events.append(time.monotonic_ns())
        await lock.acquire()
        events.append(time.monotonic_ns())
        time.sleep(HOLD_S)
        events.append(time.monotonic_ns())
        await lock.release()
        time.sleep(random.random() * PAUSE_S)
    return events


def of_threads(client):
    return {
        "fairlock": lambda: Ours(fairlock.Client(url).lock(LOCK)),
        "redis-py": lambda: client.lock(LOCK, timeout=LEASE_S),
        "python-redis-lock": lambda: redis_lock.Lock(client, LOCK, expire=LEASE_S),
    }


def of_asyncio(client):
    return {
        "fairlock.aio": lambda: OursAsync(fairlock.aio.Client(url).lock(LOCK)),
        "redis.asyncio": lambda: client.lock(LOCK, timeout=LEASE_S),
    }


peer, port = sys.argv[1], int(sys.argv[2])
url = f"redis://127.0.0.1:{port}"
client = redis.Redis(port=port)
client.ping()
package = {"redis-py": "redis", "redis.asyncio": "redis", "fairlock.aio": "fairlock"}.get(peer, peer)
print("ready", time.monotonic_ns(), importlib.metadata.version(package), flush=True)
if peer in of_threads(client):
    lock = of_threads(client)[peer]()
    verbs = {"pairs": pairs, "contend": contend}
else:
    loop = asyncio.new_event_loop()
    lock = of_asyncio(redis.asyncio.Redis(port=port))[peer]()
    verbs = {
        "pairs": lambda *words: loop.run_until_complete(pairs_async(*words)),
        "contend": lambda *words: loop.run_until_complete(contend_async(*words)),
    }
for line in sys.stdin:
    verb, count = line.split()
    answer(verbs[verb](lock, int(count)))
