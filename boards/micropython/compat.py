# SPDX-License-Identifier: Apache-2.0
# The module as a program that is driven by lines, which tests/interop/RELEASES.md describes, and by one more,
# "work NAME LIMIT", for test_mixed.py, which tests/interop/client.c explains.
import asyncio
import random
import sys
import time
import fairlock

ANSWERS = {"BUSY": "busy", "TIMEOUT": "timeout", "LOST": "lost", "NOT_HELD": "not-held", "IN_PROGRESS": "unsupported"}
locks = {}
stops = False


def lock_of(client, name, limit):
    key = name, limit
    if key not in locks:
        locks[key] = client.lock(name, limit)
    return locks[key]


async def answer(operation, good):
    try:
        await operation
        print(good())
    except fairlock.Error as error:
        print(ANSWERS.get(error.name, "error " + error.name))


def acquire(lock, wait, lease):
    return answer(lock.acquire(int(wait), int(lease) or None), lambda: "held %d" % lock.token())


# Tells until when it believed in its hold: the clock is read before the belief. Of the unix port, ticks_us() is the
# clock that all processes share.
async def work_in(client, name, limit, ms):
    at = time.ticks_us()
    lock = client.lock(name, limit or -1)
    step = "acquired"
    try:
        await lock.acquire(120000)
        print(step, name, 0)
        token, begun, seen = lock.token(), time.ticks_us(), 0
        now = begun
        while lock.remaining_ms() and (not seen or now < begun + ms * 1000):
            seen = now
            await asyncio.sleep_ms(1)
            now = time.ticks_us()
        if seen and token:
            print("hold", name, limit, at, begun, seen, token)
        step = "released"
        await lock.release()
        print(step, name, 0)
    except fairlock.Error as error:
        print(step, name, error.status)
    lock.drop()


async def work(client, name, limit):
    while not stops:
        second = random.randrange(2)
        shared = int(limit) if second and random.randrange(4) else 0
        ms = 4000 if random.randrange(200) == 0 else random.randrange(20)
        await work_in(client, name + ".shared" if second else name, shared, ms)
        await asyncio.sleep_ms(random.randrange(20))
    print("done")


async def obey(client, verb, words):
    if verb == "id":
        print("id", lock_of(client, words[0], -1)._open().id())
    elif verb == "share-id":
        print("id", lock_of(client, words[0], int(words[1]))._open().id())
    elif verb == "acquire":
        await acquire(lock_of(client, words[0], -1), *words[1:])
    elif verb == "share":
        await acquire(lock_of(client, words[0], int(words[1])), *words[2:])
    elif verb == "release" or verb == "unshare":
        limit = int(words[1]) if verb == "unshare" else -1
        await answer(lock_of(client, words[0], limit).release(), lambda: "released")
    elif verb == "holds":
        lock = lock_of(client, words[0], -1)
        print("held %d" % lock.token() if lock.remaining_ms() else "not-held")
    elif verb == "work":
        asyncio.create_task(work(client, *words[:2]))
    else:
        print("unsupported")


async def main(host, port, waiter_ms="0", lease_ms="0"):
    global stops
    client = fairlock.Client(host, int(port), waiter_ms=int(waiter_ms), lease_ms=int(lease_ms))
    await client.connect()
    print("ready")
    lines = asyncio.StreamReader(sys.stdin.buffer)
    while True:
        line = (await lines.readline()).decode().split()
        if not line:
            break  # what it holds or waits for ends with its connection and its lease
        if line[0] == "stop":
            stops = True
        else:
            await obey(client, line[0], line[1:])


asyncio.run(main(*sys.argv[1:]))
