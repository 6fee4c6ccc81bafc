# SPDX-License-Identifier: Apache-2.0
"""The same for asyncio:

    async with fairlock.aio.Client("redis://localhost") as client:
        async with client.lock("door:7", wait=10) as hold:
            await write(..., fence=hold.token)

A task that is cancelled while it waits leaves the queue. A client belongs to the event loop in
which it is first used, and to no other thread.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from ._c import lib
from ._core import (
    CANCELLED,
    ENDED_EVENT,
    OK,
    PENDING,
    UNSET,
    BaseClient,
    BaseHold,
    BaseLock,
    Core,
    Name,
    Seconds,
    Unset,
    end_of,
    key_of,
    left_with,
)
from ._errors import Invalid, Lost, NotAcquired

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Client", "Hold", "Lock"]


class Hold(BaseHold["Client"]):
    """A held lock, which any task of the client's loop may release.

    One that is dropped without a release is released in the background, with a ResourceWarning.
    """

    __slots__ = ()

    async def release(self) -> None:
        """Hands the lock to the next in line.

        Raises Lost if the hold had ended before, NotHeld after a release, or why the server could
        not be told; it is then told in the background, or the lease ends the hold.
        """
        box, status = self._begin_release(1)
        if status == PENDING:
            try:
                status = await self._client._ended(self._number, None)
            except BaseException:
                box.clear()  # it goes on in the background
                raise
        self._end_release(box, status)

    async def __aenter__(self) -> Hold:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._box:
            return  # the block has released it
        try:
            await self.release()
        except Lost as lost:
            left_with(lost, raised)


class Lock(BaseLock["Client"]):
    """A named lock, made by Client.lock(). Tasks may share it: each acquire is a holder."""

    def __init__(
        self,
        client: Client,
        key: tuple[bytes, int],
        wait: Seconds | None,
        lease: Seconds | None,
    ) -> None:
        super().__init__(client, key, wait, lease)
        self._entered: dict[Any, list[Hold]] = {}  # by task

    async def acquire(
        self,
        wait: Seconds | Unset | None = UNSET,
        lease: Seconds | Unset | None = UNSET,
    ) -> Hold:
        """Waits in line for up to `wait` seconds. 0: a try; None: without a limit.

        lease: after so many seconds, 0.1 to 12 days, the hold ends; None: that of the client, which
        is renewed until the release. What is not given is as Client.lock() had it. Raises Busy (a
        try), Timeout, or why the server does not serve; Unreachable also if the wait ends before
        there is a connection.
        """
        wait_ms, lease_ms = self._times(wait, lease)
        client = self._client
        core = client._attached()
        hold = Hold(client, core, self._key, core.take(self._key))
        try:
            status = lib.fls_acquire(hold._box[0][0], wait_ms, lease_ms, 1)
            if status == PENDING:
                status = await client._ended(hold._number, end_of(wait_ms))
            if status == OK:
                hold._acquired()
                return hold
        except BaseException:  # CancelledError: the wait, or the hold, ends in the background
            hold._give_up()
            raise
        raise hold._not_acquired(status)

    async def try_acquire(self, lease: Seconds | Unset | None = UNSET) -> Hold | None:
        """A hold, if that takes no wait and passes nobody who waits; otherwise None."""
        try:
            return await self.acquire(0, lease)
        except NotAcquired:
            return None

    async def __aenter__(self) -> Hold:
        hold = await self.acquire()
        self._entered.setdefault(asyncio.current_task(), []).append(hold)
        return hold

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task = asyncio.current_task()
        holds = self._entered.get(task)
        if not holds:
            raise RuntimeError("this task has not entered the lock")
        hold = holds.pop()
        if not holds:
            del self._entered[task]
        await hold.__aexit__(kind, raised, trace)


class Client(BaseClient[Hold]):
    """A connection to Redis, for all tasks of an event loop.

    The arguments are those of fairlock.Client. A thread of C services the connection, so leases are
    renewed while the loop is blocked. on_lost and on_ask are called in the loop: they must not
    block, and may create a task.
    """

    def _open(self) -> Core:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watched = -1
        self._ends: dict[int, asyncio.Future[int]] = {}
        return super()._open()

    def lock(
        self,
        name: Name,
        *,
        wait: Seconds | None = None,
        lease: Seconds | None = None,
        shared: bool = False,
        limit: int | None = None,
    ) -> Lock:
        """A lock by its name, for `async with` and acquire(), which say what wait and lease mean.

        name: 1 to 4096 bytes, not wholly in braces. shared: with any number of others who share it,
        as readers do. limit: with so many at most, 1 to 1000, as a semaphore. Sends nothing.
        """
        return Lock(self, key_of(name, shared, limit), wait, lease)

    async def connect(self) -> None:
        """Checks that the server can be reached and accepts us; otherwise raises why not."""
        core = self._attached()
        loop = asyncio.get_running_loop()
        status = await loop.run_in_executor(None, lib.fls_connect, core.c)
        if status != OK:
            raise core.failure(status, "connect")

    async def close(self) -> None:
        """Gives up all holds and waits, for up to a second until the server has been told.

        The client may be used no more. A wait of another task ends with Closed.
        """
        core = self._end()
        if core is None or core.closed:
            return
        ends = [future for future in self._ends.values() if not future.done()]
        for future in ends:
            future.set_result(CANCELLED)
        if ends:
            await asyncio.sleep(0)  # their tasks give up what they waited with
        self._detach()
        await asyncio.get_running_loop().run_in_executor(None, core.close)

    async def __aenter__(self) -> Client:
        self._attached()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _attached(self) -> Core:
        """The core of this process, whose events the running loop takes."""
        core = self._core()
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                raise Invalid("the client belongs to another event loop")
            for number in self._ends:  # tasks of a loop that was closed, which will never go on
                hold = core.hold_of(number)
                if hold is not None:
                    hold._give_up()
            self._ends.clear()
            self._loop, self._watched = loop, -1
        if self._watched < 0:
            self._watched = lib.fls_fd(core.c)
            loop.add_reader(self._watched, self._take_events)
        return core

    def _detach(self) -> None:
        if self._watched >= 0 and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._watched)
        self._watched = -1

    def _take_events(self) -> None:
        core = self._current
        while core is not None and (event := core.next_event()) is not None:
            if event.what & ENDED_EVENT:
                hold = core.hold_of(event.user)
                if hold is not None:
                    hold._token = event.token  # before it may be lost
                future = self._ends.get(event.user)
                if future is not None and not future.done():
                    future.set_result(event.status)
            self._told(core, event)

    async def _ended(self, number: int, until: float | None) -> int:
        """Waits for the end of an operation. PENDING: it did not come in time."""
        assert self._loop is not None
        if self._closed:  # nobody takes its event any more
            return CANCELLED
        future = self._ends[number] = self._loop.create_future()
        timer = None
        if until is not None:
            timer = self._loop.call_later(until - time.monotonic(), _not_in_time, future)
        try:
            status: int = await future
            return status
        finally:
            self._ends.pop(number, None)
            if timer is not None:
                timer.cancel()


def _not_in_time(future: asyncio.Future[int]) -> None:
    if not future.done():
        future.set_result(PENDING)
