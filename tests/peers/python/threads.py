# SPDX-License-Identifier: Apache-2.0
# A hundred threads of one process at one lock, three turns each with holds of 2 ms, and as many tasks
# of asyncio: threads.py PORT prints the table. A perfect lock takes 0.6 s, and each wait 0.2 s. Peers
# take turns, in any order; the median of the rounds counts.
import asyncio
import os
import random
import statistics
import sys
import threading
import time

import fairlock.aio
import redis
import redis.asyncio
import redis_lock

THREADS, TURNS, HOLD_S, LEASE_S, ROUNDS = 100, 3, 0.002, 30, 3

port = int(sys.argv[1])
url = f"redis://127.0.0.1:{port}"
client = redis.Redis(port=port, max_connections=2 * THREADS)
ours = fairlock.Client(url).lock("ours")


def threads(make):
    waits, ready = [], threading.Barrier(THREADS + 1)

    def work():
        ready.wait()
        for _ in range(TURNS):
            began = time.monotonic()
            with make():
                waits.append(time.monotonic() - began)
                time.sleep(HOLD_S)

    workers = [threading.Thread(target=work) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    ready.wait()
    began, busy = time.monotonic(), os.times()
    for worker in workers:
        worker.join()
    return ended(began, busy, waits)


def tasks(open_client):
    waits = []

    async def work(make):
        for _ in range(TURNS):
            began = time.monotonic()
            async with make():
                waits.append(time.monotonic() - began)
                await asyncio.sleep(HOLD_S)

    async def run():
        make, close = open_client()
        await asyncio.gather(*[work(make) for _ in range(2)])  # connections are there
        waits.clear()
        began, busy = time.monotonic(), os.times()
        await asyncio.gather(*[work(make) for _ in range(THREADS)])
        figures = ended(began, busy, waits)
        await close()
        return figures

    return asyncio.run(run())


def ended(began, busy, waits):
    now = os.times()
    waits.sort()
    spent = now.user + now.system - busy.user - busy.system
    return time.monotonic() - began, waits[len(waits) // 2], waits[-1], spent


def open_ours():
    one = fairlock.aio.Client(url)
    lock = one.lock("ours")
    return (lambda: lock), one.close


def open_theirs():
    one = redis.asyncio.Redis(port=port, max_connections=2 * THREADS)
    return (lambda: one.lock("theirs", timeout=LEASE_S)), one.aclose


PEERS = {
    "fairlock": lambda: threads(lambda: ours),
    "redis-py Lock": lambda: threads(lambda: client.lock("theirs", timeout=LEASE_S)),
    "python-redis-lock": lambda: threads(lambda: redis_lock.Lock(client, "listed", expire=LEASE_S)),
    "fairlock.aio": lambda: tasks(open_ours),
    "redis-py asyncio Lock": lambda: tasks(open_theirs),
}
results = {name: [] for name in PEERS}
for _ in range(ROUNDS):
    for name in random.sample(list(PEERS), len(PEERS)):
        print("threads:", name, file=sys.stderr)
        results[name].append(PEERS[name]())
print(f"| {THREADS} threads, or tasks, of one Python | all done, s | median wait, s | longest wait, s |"
      " its CPU, s |\n| --- | --- | --- | --- | --- |")
for name, rounds in results.items():
    figures = [statistics.median(column) for column in zip(*rounds)]
    print("|", name, "|", " | ".join(f"{figure:.2f}" for figure in figures), "|")
