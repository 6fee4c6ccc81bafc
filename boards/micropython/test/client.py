# SPDX-License-Identifier: Apache-2.0
# The module at work, as its users call it: client.py PORT, run by test_client.sh with the unix port.
import asyncio
import gc
import random
import socket
import sys
import time
import fairlock

PORT = int(sys.argv[1])
raw = socket.socket()
raw.connect(socket.getaddrinfo("127.0.0.1", PORT)[0][-1])
gc.threshold(20000)  # the collector runs all the time


def call(words):
    """An integer of the server's."""
    raw.send(words.encode() + b"\r\n")
    answer = raw.readline()
    assert answer[:1] == b":", answer
    return int(answer[1:])


def waiting(name):
    return call("LLEN redisson_lock_queue:{%s}" % name)


async def until(condition):
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep_ms(10)
    raise AssertionError("never came true")


async def fails(name, operation):
    try:
        await operation
    except fairlock.Error as error:
        assert error.name == name, (error.name, str(error))
        return
    raise AssertionError(name + " was expected")


async def holds_and_waits(client, other):
    lock, second = client.lock("a"), other.lock("a")
    await lock.acquire()
    assert lock.token() > 0 and 0 < lock.remaining_ms() <= 30000
    await fails("IN_PROGRESS", lock.acquire())
    await fails("BUSY", second.acquire(0))
    await fails("TIMEOUT", second.acquire(50))
    task = asyncio.create_task(second.acquire())
    await until(lambda: waiting("a") == 1)
    token = lock.token()
    await lock.release()
    await task
    assert second.token() > token and lock.token() == 0
    await second.release()
    await fails("NOT_HELD", second.release())
    lock.drop()
    second.drop()


async def order(client, other):
    got = []

    async def one(client, number):
        async with client.lock("b"):
            got.append(number)

    first = await client.lock("b").acquire()
    tasks = []
    for number in range(8):
        tasks.append(asyncio.create_task(one((client, other)[number % 2], number)))
        await until(lambda: waiting("b") == number + 1)
    await first.release()
    for task in tasks:
        await task
    assert got == list(range(8)), got
    first.drop()


async def shares(client, other):
    locks = [client.lock("c", 2), other.lock("c", 2), other.lock("c", 2)]
    await locks[0].acquire()
    await locks[1].acquire()
    await fails("BUSY", locks[2].acquire(0))
    for lock in locks:
        lock.drop()


async def cancels(client, other):
    holder = await client.lock("d").acquire()
    task = asyncio.create_task(other.lock("d").acquire())
    await until(lambda: waiting("d") == 1)
    task.cancel()
    await until(lambda: waiting("d") == 0)
    for _ in range(100):  # around the grant
        task = asyncio.create_task(other.lock("d").acquire())
        await asyncio.sleep_ms(1)
        await holder.release()
        await asyncio.sleep_ms(random.randrange(3))
        task.cancel()
        try:
            (await task).drop()
        except asyncio.CancelledError:
            pass
        await asyncio.wait_for(holder.acquire(), 60)
    holder.drop()
    await until(lambda: call("EXISTS d") == 0)


async def loses(client, other):
    lock = await client.lock("e").acquire(lease_ms=300)
    await asyncio.wait_for(lock.lost.wait(), 60)
    assert lock.remaining_ms() == 0
    await fails("LOST", lock.release())
    lock.drop()


async def renews(client, other):
    short = fairlock.Client("127.0.0.1", PORT, lease_ms=400)
    lock = await short.lock("f").acquire()
    await asyncio.sleep(2)
    assert lock.remaining_ms() > 0 and not lock.lost.is_set()
    await short.close()
    assert lock.remaining_ms() == 0 and call("EXISTS f") == 0


async def frees(client, other):
    def used():
        gc.collect()
        return gc.mem_alloc()

    async def uses(count):
        for i in range(count):
            async with client.lock("g%d" % (i % 7)):
                pass
        await until(lambda: client._core.leaving() == 0)

    await uses(50)
    before = used()
    await uses(500)
    assert used() < before + 4000, (before, used())


async def refuses(client, other):
    await fails("TOO_LONG", client.lock("x" * 300).acquire())
    nobody = fairlock.Client("127.0.0.1", 1)
    await fails("UNREACHABLE", nobody.lock("h").acquire(200))
    await nobody.close()
    stranger = fairlock.Client("127.0.0.1", PORT, user="nobody", password="wrong")
    await fails("DENIED", stranger.lock("h").acquire(20000))
    await stranger.close()


async def main():
    for test in (holds_and_waits, order, shares, cancels, loses, renews, frees, refuses):
        client, other = (fairlock.Client("127.0.0.1", PORT) for _ in range(2))
        await test(client, other)
        await client.close()
        await other.close()
        print("ok micropython: " + test.__name__.replace("_", " "))


asyncio.run(main())
