# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio."""

import asyncio
import contextlib
import functools
import gc
import time

import fairlock.aio
import rig
from rig import NOW, case, free, held, queued, raises, redis, require, soon_free, url


def loop_case(function):
    """A case that is a coroutine; in a loop that says what blocks it, and what was not awaited."""

    @functools.wraps(function)
    def run():
        return asyncio.run(function())

    return case(run)


async def true(condition, what):
    end = NOW() + rig.SOON
    while not condition():
        require(NOW() < end, "this never came:", what)
        await asyncio.sleep(0.005)


@loop_case
async def holds_and_releases():
    async with fairlock.aio.Client(url()) as client:
        await client.connect()
        async with client.lock("door", wait=10) as hold:
            require(hold.token > 0 and 20 < hold.remaining <= 30 and not hold.lost)
            require(redis("HKEYS", "door") == [hold.id])
            require(await client.lock("door").try_acquire() is None)
            with raises(fairlock.Timeout, TimeoutError):
                await client.lock("door").acquire(0.1)
            with raises(fairlock.Busy):
                await client.lock("door").acquire(0)
        require(free("door"))
        with raises(fairlock.NotHeld):
            await hold.release()
        async with await client.lock("door", limit=2).acquire() as hold:
            await hold.release()
    with raises(fairlock.Closed):
        await client.lock("door").acquire()


@loop_case
async def tasks_share_a_lock():
    inside, tokens = [], []
    async with fairlock.aio.Client(url()) as client:
        lock = client.lock("door")

        async def work():
            for _ in range(20):
                async with lock as hold:
                    inside.append(1)
                    await asyncio.sleep(0)
                    require(len(inside) == 1, "two hold it")
                    tokens.append(hold.token)
                    inside.pop()

        began = NOW()
        await asyncio.gather(*[work() for _ in range(100)])
        seconds = NOW() - began
    require(len(tokens) == 2000 and tokens == sorted(set(tokens)))
    return f"{seconds / 2000 * 1e6:.0f} us a hold"


@loop_case
async def tasks_are_served_in_order():
    order = []
    async with fairlock.aio.Client(url()) as client:

        async def wait(number):
            async with client.lock("door"):
                order.append(number)

        async with client.lock("door"):
            tasks = []
            for number in range(20):
                tasks.append(asyncio.create_task(wait(number)))
                await true(lambda: queued("door") == len(tasks), "it waits")
        await asyncio.gather(*tasks)
    require(order == list(range(20)), order)


@loop_case
async def cancelled_task_leaves_the_queue():
    async with fairlock.aio.Client(url()) as client:
        async with client.lock("door"):
            with raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.lock("door").acquire(), 0.1)
            await true(lambda: queued("door") == 0, "it has left")
            task = asyncio.create_task(client.lock("door").acquire())
            await true(lambda: queued("door") == 1, "it waits")
            began = NOW()
            task.cancel()
            with raises(asyncio.CancelledError):
                await task
            await true(lambda: queued("door") == 0, "it has left")
            seconds = NOW() - began
        require(free("door"))
    return f"after {seconds * 1000:.1f} ms"


@loop_case
async def cancelled_around_a_grant():
    """Before, while or after the lock comes: nobody's hold stays."""
    counts = [0, 0]
    async with fairlock.aio.Client(url()) as client:
        lock = client.lock("door")

        async def hold_it():
            async with lock:
                counts[0] += 1
                await asyncio.sleep(0)

        for i in range(200):
            first = await lock.acquire()
            task = asyncio.create_task(hold_it())
            await asyncio.sleep(0.001)
            await first.release()
            for _ in range(i % 8):
                await asyncio.sleep(0)
            task.cancel()
            counts[1] += (await asyncio.gather(task, return_exceptions=True)) != [None]
            async with lock:
                pass
        require(free("door"))
    require(counts[1] >= 20, "too few are hit", counts)
    return f"{counts[0]} held, {counts[1]} cancelled"


@loop_case
async def cancelled_release_goes_on():
    async with fairlock.aio.Client(url()) as client:
        hold = await client.lock("door").acquire()
        task = asyncio.create_task(hold.release())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await true(lambda: free("door"), "it is released")


@loop_case
async def dropped_holds_are_released():
    async with fairlock.aio.Client(url()) as client:
        hold = await client.lock("door").acquire()
        del hold
        gc.collect()
        (await client.lock("door").acquire(rig.SOON)) and None
        gc.collect()
        await true(lambda: free("door"), "it is released")


@loop_case
async def blocked_loop_loses_nothing():
    async def block():
        async with client.lock("door") as hold:
            time.sleep(1.5)
            return not hold.lost

    async with fairlock.aio.Client(url(), lease=1) as client:
        for _ in range(3):
            with contextlib.suppress(fairlock.Lost):
                if await block():
                    return
        require(False, "the lease was not renewed")


@loop_case
async def tells_of_a_loss():
    told, asked = [], []
    client = fairlock.aio.Client(
        url(), lease=1, on_lost=told.append, on_ask=lambda *what: asked.append(what)
    )
    async with client:
        hold = await client.lock("door").acquire()
        require(rig.ask("door") == 1)
        await true(lambda: asked == [(hold, "")], "on_ask was called")
        redis("DEL", "door")
        await true(lambda: told, "on_lost was called")
        require(told == [hold] and hold.lost)
        with raises(fairlock.Lost):
            await hold.release()
        with raises(fairlock.Lost):
            async with client.lock("door"):
                redis("DEL", "door")
        with raises(ZeroDivisionError):
            async with client.lock("door"):
                redis("DEL", "door")
                1 / 0  # noqa: B018


@loop_case
async def close_ends_all():
    client = fairlock.aio.Client(url())
    hold = await client.lock("door").acquire()
    tasks = [asyncio.create_task(client.lock("door").acquire()) for _ in range(5)]
    await true(lambda: queued("door") == 5, "they wait")
    await client.close()
    require(free("door"))
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        require(isinstance(result, fairlock.Closed), result)
    with raises(fairlock.NotHeld):
        await hold.release()
    await client.close()


@case
def one_loop_after_another():
    client = fairlock.aio.Client(url())

    async def use():
        async with client.lock("door", wait=5):
            require(held("door"))

    asyncio.run(use())
    asyncio.run(use())

    async def elsewhere():
        await use()
        loop = asyncio.new_event_loop()
        with raises(fairlock.Invalid):
            await asyncio.get_running_loop().run_in_executor(None, loop.run_until_complete, use())
        loop.close()
        await client.close()

    asyncio.run(elsewhere())
    soon_free("door")


@loop_case
async def acquire_while_it_closes_ends():
    async with fairlock.aio.Client(url()) as other, other.lock("door"):
        client = fairlock.aio.Client(url(), lease=1, waiter=2)
        await client.connect()
        waits = asyncio.create_task(client.lock("door").acquire())
        await asyncio.sleep(0.1)
        closes = asyncio.create_task(client.close())
        late = asyncio.create_task(client.lock("door").acquire())
        await closes
        for task in (waits, late):
            with raises(fairlock.Closed):
                await asyncio.wait_for(task, rig.SOON)
    soon_free("door")


@case
def loop_that_was_closed_keeps_nothing():
    client = fairlock.aio.Client(url(), lease=1, waiter=2)
    with fairlock.Client(url()) as other:
        with other.lock("door"):
            loop = asyncio.new_event_loop()
            task = loop.create_task(client.lock("door").acquire())
            loop.run_until_complete(asyncio.sleep(0.1))
            loop.close()

        async def use():
            async with client.lock("gate"):
                pass

        asyncio.run(use())
        with other.lock("door", wait=rig.SOON):
            pass
        del task


if __name__ == "__main__":
    rig.run()
