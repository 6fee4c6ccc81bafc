# SPDX-License-Identifier: Apache-2.0
"""The client for threads."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from ._c import lib
from ._core import (
    LOST_EVENT,
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
from ._errors import Lost, NotAcquired

if TYPE_CHECKING:
    from types import TracebackType


class Hold(BaseHold["Client"]):
    """A held lock, which any thread may release.

    One that is dropped without a release is released in the background, when Python finds out that
    nobody refers to it any more, with a ResourceWarning.
    """

    __slots__ = ()

    def release(self) -> None:
        """Hands the lock to the next in line.

        Raises Lost if the hold had ended before, NotHeld after a release, or why the server could
        not be told; it is then told in the background, or the lease ends the hold.
        """
        box, status = self._begin_release(0)
        if status == PENDING:
            try:
                status = self._core.wait(box, self._number, None)
            except BaseException:
                box.clear()  # it goes on in the background
                raise
        self._end_release(box, status)

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._box:
            return  # the block has released it
        try:
            self.release()
        except Lost as lost:
            left_with(lost, raised)


class Lock(BaseLock["Client"]):
    """A named lock, made by Client.lock(). Threads may share it: each acquire is a holder."""

    def __init__(
        self,
        client: Client,
        key: tuple[bytes, int],
        wait: Seconds | None,
        lease: Seconds | None,
    ) -> None:
        super().__init__(client, key, wait, lease)
        self._entering: dict[int, weakref.ref[_Exit]] = {}  # by thread
        self._entered: dict[int, list[Hold]] = {}  # by thread

    def acquire(
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
        core = self._client._core()
        hold = Hold(self._client, core, self._key, core.take(self._key))
        try:
            status = lib.fls_acquire(hold._box[0][0], wait_ms, lease_ms, 0)
            if status == PENDING:
                status = core.wait(hold._box, hold._number, end_of(wait_ms))
            if status == OK:
                hold._acquired()
                return hold
        except BaseException:  # KeyboardInterrupt: the wait, or the hold, ends in the background
            hold._give_up()
            raise
        raise hold._not_acquired(status)

    def try_acquire(self, lease: Seconds | Unset | None = UNSET) -> Hold | None:
        """A hold, if that takes no wait and passes nobody who waits; otherwise None."""
        try:
            return self.acquire(0, lease)
        except NotAcquired:
            return None

    def __enter__(self) -> Hold:
        thread = threading.get_ident()
        reference = self._entering.pop(thread, None)
        end = reference() if reference is not None else None
        hold = self.acquire()
        if end is not None:
            end.own(hold)
        else:
            self._entered.setdefault(thread, []).append(hold)
        return hold

    def _leave(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends what __enter__() of this thread has begun last, if it was called by itself."""
        holds = self._entered.get(threading.get_ident())
        if not holds:
            raise RuntimeError("this thread has not entered the lock")
        hold = holds.pop()
        if not holds:
            del self._entered[threading.get_ident()]
        hold.__exit__(kind, raised, trace)

    if TYPE_CHECKING:

        def __exit__(
            self,
            kind: type[BaseException] | None,
            raised: BaseException | None,
            trace: TracebackType | None,
        ) -> None: ...


class _Exit:
    """The __exit__ of one `with lock:`, which owns its hold.

    A signal may raise an exception just as __exit__ is called, before its first line, and then
    nobody would release a hold that the lock, or a variable, still refers to. The statement asks
    for __exit__ before it calls __enter__, so the hold goes in here, and when this is dropped, for
    whatever reason, the hold has ended.
    """

    __slots__ = ("__weakref__", "box", "hold", "lock")

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        self.hold: Hold | None = None
        lock._entering[threading.get_ident()] = weakref.ref(self)

    def own(self, hold: Hold) -> None:
        self.hold, self.box = hold, hold._owned
        hold._owned = None

    def __call__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.hold is None:
            self.lock._leave(kind, raised, trace)
            return
        try:
            self.hold.__exit__(kind, raised, trace)
        except BaseException:
            self.hold._give_up()
            raise


class _Exits:
    def __get__(self, lock: Lock | None, of: type[Lock]) -> Any:
        return of._leave if lock is None else _Exit(lock)


if not TYPE_CHECKING:
    Lock.__exit__ = _Exits()


class Client(BaseClient[Hold]):
    """A connection to Redis, for all threads of the process.

    It connects when it is first used. From then on a thread of C services it, so leases are
    renewed while Python computes. After a fork, the child's first use opens a connection of its
    own.

    url: redis://[user:password@]host[:port][/db], rediss:// with TLS, unix:///path,
    redis+sentinel://host,.../name, redis+cluster://host,... Times are in seconds, at most 12 days;
    None stands for the default.

    lease      after so long without a renewal a hold ends, 0.1 and more: 30, with Sentinel and
               Cluster 60
    waiter     a waiter that is silent for so long loses its place, 2 to 600: 5
    claim      a handover that is not confirmed within this goes to the next in line, 1 to waiter:
               waiter
    response   after so long without an answer the connection is taken for dead: 0.4 waiter
    connect    how long connecting may take, at most 3 days: waiter, with servers that move 1
    offline    an operation fails after so long without a useful answer: 2 waiter, and 60 with
               servers that move; math.inf: never
    keep       for so long an uncontended lock is kept after its release, so that the next acquire
               sends nothing: 0
    replicas   so many have to acknowledge each hold: 0
    client_id, client_name  how holders and the connection are shown to people
    user, password, sentinel_user, sentinel_password  if they are not in the url
    ca_file, certificate, key, tls_name  for TLS: PEM files; the name that the server must have

    on_lost(hold) is called when a hold is lost, and on_ask(hold, words) when somebody asks a holder
    to release (`fairlock break --ask`), in a thread of Python's that does nothing else. They may
    use the hold and the client.
    """

    def _open(self) -> Core:
        core = super()._open()
        if self._on_lost is not None or self._on_ask is not None:
            # A descriptor of the thread's own stays readable, and ends it, after the core's end.
            thread = threading.Thread(
                target=_listen,
                args=(weakref.ref(self), weakref.ref(core), os.dup(lib.fls_fd(core.c))),
                name="fairlock",
                daemon=True,
            )
            thread.start()
        return core

    def lock(
        self,
        name: Name,
        *,
        wait: Seconds | None = None,
        lease: Seconds | None = None,
        shared: bool = False,
        limit: int | None = None,
    ) -> Lock:
        """A lock by its name, for `with` and acquire(), which say what wait and lease mean.

        name: 1 to 4096 bytes, not wholly in braces. shared: with any number of others who share it,
        as readers do. limit: with so many at most, 1 to 1000, as a semaphore. Sends nothing.
        """
        return Lock(self, key_of(name, shared, limit), wait, lease)

    def connect(self) -> None:
        """Checks that the server can be reached and accepts us; otherwise raises why not."""
        core = self._core()
        status = lib.fls_connect(core.c)
        if status != OK:
            raise core.failure(status, "connect")

    def close(self) -> None:
        """Gives up all holds and waits, for up to a second until the server has been told.

        It is called when the program ends, and the client may be used no more. A wait of another
        thread ends with Closed.
        """
        core = self._end()
        if core is not None:
            core.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _listen(of: weakref.ref[Client], at: weakref.ref[Core], descriptor: int) -> None:
    """Calls the callbacks, in a thread that keeps neither the client nor its core alive."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        while True:
            poll.poll()
            client, core = of(), at()
            if client is None or core is None or core.closed:
                return
            while (event := core.next_event()) is not None:
                _settle(core, event)
                try:
                    client._told(core, event)
                except BaseException:  # also SystemExit, which would end this thread
                    threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), None)))
            del client, core, event
    finally:
        os.close(descriptor)


def _settle(core: Core, event: Any) -> None:
    """A hold may be lost before the thread that acquires it has noted its token."""
    for _ in range(1000):
        hold = core.hold_of(event.user)
        if not event.what & LOST_EVENT or hold is None or hold._token != 0:
            return
        del hold
        time.sleep(0.001)
