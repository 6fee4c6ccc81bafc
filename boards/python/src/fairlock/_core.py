# SPDX-License-Identifier: Apache-2.0
"""What the clients for threads and for asyncio share: the client in C, and who owns what of it.

Memory. An object of cffi owns each lock of the C client, frees it when nobody refers to it any
more, and keeps the C client in memory until then. So a thread inside a function of C has what that
works with, in whichever order the rest is dropped, and a lock is freed by C alone, where no signal
of Python's comes in between. Freeing never waits: what the lock has or does on the server ends in
the background.

Interrupts. KeyboardInterrupt may be raised between any two instructions, and its traceback keeps
alive what the interrupted functions had. So those that wait have the lock of C only in a list, the
box, which is emptied when they are left by an exception.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import math
import os
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any, Callable, Generic, TypeVar, Union

from ._c import ffi, lib
from ._errors import Closed, Error, Forked, Invalid, Lost, Unsupported, error

PENDING, OK = 1, 0
BUSY, TIMEOUT, CANCELLED, LOST, NOT_HELD = -1, -2, -3, -4, -5
FOREVER, RENEW = 0xFFFFFFFF, 0x7E7E7E7E
ENDED_EVENT, LOST_EVENT, ASKED_EVENT = 1, 2, 4

IDLE_MAX = 128  # locks of C that are kept for the next acquire of the same lock
SLICE_MS = 100  # how long the main thread waits without a look at its signals
GRACE = 0.1  # seconds after its end until a wait without an answer is given up
CLOSE_TRIES = 2000  # of a millisecond, for threads that are inside a call to leave it

Seconds = Union[float, int]
Name = Union[str, bytes]
Text = Union[str, "os.PathLike[str]"]
H = TypeVar("H", bound="BaseHold[Any]")
C = TypeVar("C", bound="BaseClient[Any]")

TEXTS = [
    "client_id",
    "client_name",
    "user",
    "password",
    "sentinel_user",
    "sentinel_password",
    "ca_file",
    "certificate",
    "key",
    "tls_name",
]


class Unset:
    """Stands for an argument that was not given, where None means something."""


UNSET = Unset()


def milliseconds(seconds: Seconds | None, what: str, none: int = FOREVER) -> int:
    """Rounded up, so that nothing ends too early, and what is above 0 does not become 0."""
    if seconds is None:
        return none
    if not seconds >= 0:
        raise Invalid(f"{what}={seconds!r}")
    if seconds == math.inf:
        return FOREVER
    ms = math.ceil(seconds * 1000)
    if ms > 0x3FFFFFFF:  # FAIRLOCK_DURATION_MAX_MS
        raise Invalid(f"{what}={seconds!r}", "at most 12 days, or None")
    return ms


def end_of(wait_ms: int) -> float | None:
    """Until when to wait for the end of an acquire that waits so long; None: without a limit."""
    return time.monotonic() + wait_ms / 1000 + GRACE if 0 < wait_ms < FOREVER else None


class Core:
    """A C client, in the process that has made it."""

    def __init__(self, url: str, options: Mapping[str, Any], listen: bool) -> None:
        self.pid = os.getpid()
        self.closed = False
        self.numbers = itertools.count(1)
        self.holds: dict[int, HoldRef] = {}
        self.waits: dict[int, Box] = {}  # by number, with what threads wait
        self.idle: dict[tuple[bytes, int], list[tuple[Any, int]]] = {}
        self.idle_keys: deque[tuple[bytes, int]] = deque()  # one for each, oldest first
        self.event = ffi.new("struct fls_event *")
        self.c = self.open(url, options, listen)
        _cores.add(self)
        _end_with_process()

    @staticmethod
    def open(url: str, options: Mapping[str, Any], listen: bool) -> Any:
        given = ffi.new("struct fls_options *")
        given.size = ffi.sizeof("struct fls_options")
        strings = []

        def text(field: str, value: Text) -> None:
            encoded = os.fsencode(value)
            if b"\0" in encoded:  # where it would end in C
                raise Invalid(field, text="there is a NUL in it")
            strings.append(ffi.new("char[]", encoded))
            setattr(given, field, strings[-1])

        text("url", url)
        given.listen = listen
        for name, value in options.items():
            if value is None:
                continue
            if name in TEXTS:
                text(name, value)
            elif name == "replicas":
                if not 0 <= value <= 0x3FFFFFFF:
                    raise Invalid(f"{name}={value!r}")
                given.replicas = value
            elif value == 0 and name != "keep":
                raise Invalid(f"{name}={value!r}")
            else:
                setattr(given, name + "_ms", milliseconds(value, name))
        why = ffi.new("char[]", lib.FLS_ERROR_SIZE)
        client = lib.fls_open(given, why)
        if not client:
            words = ffi.string(why).decode(errors="replace")
            if not lib.fairlock_tls and url.startswith(("rediss", "valkeys")):
                raise Unsupported(
                    text="this build has no TLS, or found no OpenSSL 3: see the README"
                )
            raise Invalid(text=words)
        return ffi.gc(client, lib.fairlock_drop_client)

    def failure(self, status: int, what: str) -> Error:
        """The exception for a status, with what the server or the connection has said."""
        detail = ""
        if NOT_HELD <= status < 0:
            return error(status, what)
        client = self.c
        if client is not None:
            text = ffi.new("char[]", lib.FLS_ERROR_SIZE)
            lib.fls_error(client, text)
            detail = ffi.string(text).decode(errors="replace")
        return error(status, what, detail)

    # Locks of C: made, kept for the next acquire, given up. Without a gate: a handler of signals
    # may come in between anywhere, and use the client. Each step leaves what is right for who
    # comes next; at worst a lock is freed that might have been kept.

    def take(self, key: tuple[bytes, int]) -> tuple[Any, int]:
        """A lock and its number, by which its events are told from others'."""
        kept = self.idle.get(key)
        if kept:
            try:
                lock = kept.pop()
                self.idle_keys.remove(key)
                return lock
            except (IndexError, ValueError):
                pass  # somebody else was faster
        client = self.c
        if client is None:
            raise Closed
        number = next(self.numbers)
        status = ffi.new("int *")
        c = lib.fls_new(client, key[0], len(key[0]), key[1], number, status)
        if not c:
            raise self.failure(status[0], repr(key[0]))
        return ffi.gc(c, functools.partial(lib.fairlock_drop_lock, client)), number

    def give_back(self, key: tuple[bytes, int], lock: tuple[Any, int]) -> None:
        """Whoever calls this has no use for the lock any more."""
        if self.closed:
            return
        self.idle.setdefault(key, []).append(lock)
        self.idle_keys.append(key)
        while len(self.idle_keys) > IDLE_MAX:
            try:
                first = self.idle_keys.popleft()
                self.idle[first].pop(0)
                if not self.idle[first]:
                    del self.idle[first]
            except (IndexError, KeyError):
                pass
        if self.closed:
            self.idle.clear()

    def wait(self, box: Box, number: int, until: float | None) -> int:
        """Waits for the end of an operation. PENDING: it did not come in time."""
        in_main = threading.get_ident() == threading.main_thread().ident
        self.waits[number] = box
        if self.closed:  # close() may not have seen this one
            lib.fls_cancel(box[0][0])
        try:
            while True:
                left = FOREVER if until is None else int((until - time.monotonic()) * 1000) + 1
                if left <= 0:
                    return PENDING
                status: int = lib.fls_wait(box[0][0], min(left, SLICE_MS) if in_main else left)
                if status != PENDING:
                    return status
        finally:
            self.waits.pop(number, None)

    def next_event(self) -> Any:
        """An event, or None. Only one thread may take them."""
        client, event = self.c, self.event
        if client is None:
            return None
        event.size = ffi.sizeof("struct fls_event")
        return event if lib.fls_next(client, 0, event) else None

    def hold_of(self, number: int) -> BaseHold[Any] | None:
        reference = self.holds.get(number)
        return reference() if reference is not None else None

    # The end

    def close(self) -> None:
        """Ends waits of other threads, gives up all holds, and waits until the server knows."""
        if self.closed:
            return
        self.closed = True
        self.idle.clear()
        for _ in range(CLOSE_TRIES):
            if not self.waits:
                break
            for box in list(self.waits.values()):
                for lock in box[:]:
                    lib.fls_cancel(lock[0])
                    del lock
            time.sleep(0.001)
        for reference in list(self.holds.values()):
            hold = reference()
            if hold is not None and hold._token != 0:
                hold._give_up()
            del hold
        self.c = None  # the last one who has it ends the C client

    def forked(self) -> None:
        """In a child process: closes its copy of the connection."""
        client = self.c
        if client is not None:
            lib.fls_forked(client)
        self.closed = True


class Box(list[tuple[Any, int]]):
    """A lock of C and its number; empty when that was taken out."""

    __slots__ = ("__weakref__",)


class HoldRef(weakref.ref["BaseHold[Any]"]):
    """How a core knows a hold. It is called when the hold is dropped without a release."""

    __slots__ = ("holds", "name", "number", "seen")

    def __new__(cls, hold: BaseHold[Any]) -> HoldRef:
        return super().__new__(cls, hold, _dropped)

    def __init__(self, hold: BaseHold[Any]) -> None:
        self.holds = hold._core.holds
        self.name, self.number, self.seen = hold.name, hold._number, hold._seen


def _dropped(reference: Any) -> None:
    reference.holds.pop(reference.number, None)
    if reference.seen():
        warnings.warn(f"a hold of {reference.name!r} was not released", ResourceWarning)  # noqa: B028


class BaseHold(Generic[C]):
    """What a hold for threads and one for asyncio have in common."""

    __slots__ = (
        "__weakref__",
        "_client",
        "_core",
        "_key",
        "_lost",
        "_number",
        "_owned",
        "_seen",
        "_token",
    )

    def __init__(
        self, client: C, core: Core, key: tuple[bytes, int], lock: tuple[Any, int]
    ) -> None:
        self._client = client  # whose on_lost is called as long as there is the hold
        self._core = core
        self._key = key
        self._number = lock[1]
        self._token = 0  # until it is acquired
        self._lost = False
        self._owned: Box | None = Box([lock])
        self._seen = weakref.ref(self._owned)
        core.holds[self._number] = HoldRef(self)

    @property
    def _box(self) -> Box:
        """Whoever takes the lock of C out of it ends the hold."""
        box = self._seen()
        return Box() if box is None else box

    @property
    def name(self) -> str:
        """Of the lock."""
        return self._key[0].decode(errors="backslashreplace")

    @property
    def token(self) -> int:
        """The fencing token: larger than that of every hold of this lock before."""
        return self._token

    @property
    def remaining(self) -> float:
        """For how many seconds it is still safe to act as the holder; 0.0: not any more."""
        box = self._box[:]
        return lib.fls_remaining_ms(box[0][0]) / 1000 if box else 0.0

    @property
    def lost(self) -> bool:
        """Whether it has ended without a release of ours, as far as is known here."""
        box = self._box[:]
        if box and not self._lost:
            self._lost = lib.fls_held(box[0][0]) != self._token
        return self._lost

    @property
    def id(self) -> str:
        """By which the holder is shown, as by `fairlock status`; "": it was released."""
        box = self._box[:]
        if not box:
            return ""
        text = ffi.new("char[]", lib.FLS_ID_SIZE)
        lib.fls_id(box[0][0], text)
        return str(ffi.string(text).decode(errors="replace"))

    def check(self) -> None:
        """Raises Lost, or NotHeld after a release, unless the caller is still the holder."""
        if self._core.pid != os.getpid():
            raise Forked(repr(self.name))
        if self.lost:
            raise self._core.failure(LOST, repr(self.name))
        if not self._box:
            raise self._core.failure(NOT_HELD, repr(self.name))

    def __repr__(self) -> str:
        state = "lost" if self.lost else "held" if self._box else "released"
        return f"<{type(self).__module__}.Hold of {self.name!r}, token {self._token}, {state}>"

    def _acquired(self) -> None:
        self._token = lib.fls_token(self._box[0][0])
        if self._core.closed:  # by another thread, which may not have seen the token
            raise self._core.failure(CANCELLED, repr(self.name))

    def _not_acquired(self, status: int) -> Error:
        """What to raise after an acquire that has ended so."""
        lock = self._end()
        what = repr(self.name)
        if status == PENDING:  # it ends in the background
            return error(TIMEOUT, what, "the server does not answer")
        if status in (BUSY, TIMEOUT):
            self._core.give_back(self._key, lock)
        return self._core.failure(status, what)

    def _end(self) -> tuple[Any, int]:
        """Takes out the lock of C, which then is the caller's."""
        try:
            lock = self._box.pop()
        except IndexError:
            raise self._core.failure(NOT_HELD, repr(self.name)) from None
        self._core.holds.pop(self._number, None)
        return lock

    def _begin_release(self, event: int) -> tuple[Box, int]:
        if self._core.pid != os.getpid():
            raise Forked(repr(self.name))
        box = Box([self._end()])
        return box, lib.fls_release(box[0][0], event)

    def _end_release(self, box: Box, status: int) -> None:
        if status == OK:
            self._core.give_back(self._key, box.pop())
            return
        box.clear()
        self._lost = self._lost or status == LOST
        raise self._core.failure(status, repr(self.name))

    def _give_up(self) -> None:
        """Ends it in the background, whatever it does; there may be nothing to end."""
        self._core.holds.pop(self._number, None)
        self._box.clear()


class BaseLock(Generic[C]):
    """What a lock for threads and one for asyncio have in common."""

    def __init__(
        self, client: C, key: tuple[bytes, int], wait: Seconds | None, lease: Seconds | None
    ) -> None:
        self._client = client
        self._key = key
        self._wait = wait
        self._lease = lease

    def _times(
        self, wait: Seconds | Unset | None, lease: Seconds | Unset | None
    ) -> tuple[int, int]:
        """Of an acquire, in ms, as C takes them. What is not given is the lock's own."""
        wait = self._wait if isinstance(wait, Unset) else wait
        lease = self._lease if isinstance(lease, Unset) else lease
        return milliseconds(wait, "wait"), milliseconds(lease, "lease", RENEW)


def left_with(lost: Lost, raised: BaseException | None) -> None:
    """A with block ends, and the hold is lost: that must not hide what the block has raised."""
    if raised is None:
        raise lost
    if hasattr(raised, "add_note"):  # from Python 3.11 on
        raised.add_note(f"fairlock: {lost}")


def key_of(name: Name, shared: bool, limit: int | None) -> tuple[bytes, int]:
    if limit is not None and not 1 <= limit <= 1000:  # FAIRLOCK_LIMIT_MAX
        raise Invalid(f"limit={limit!r}", "1 to 1000")
    of_c = limit if limit is not None else 0 if shared else lib.FLS_EXCLUSIVE
    if isinstance(name, str):
        name = name.encode()
    elif not isinstance(name, (bytes, bytearray, memoryview)):
        raise TypeError(f"the name of a lock is str or bytes, not {type(name).__name__}")
    return bytes(name), of_c


class BaseClient(Generic[H]):
    """The options, and the C client of this process, which is made when it is needed."""

    def __init__(
        self,
        url: str,
        *,
        lease: Seconds | None = None,
        waiter: Seconds | None = None,
        claim: Seconds | None = None,
        response: Seconds | None = None,
        connect: Seconds | None = None,
        offline: Seconds | None = None,
        keep: Seconds | None = None,
        replicas: int | None = None,
        client_id: str | None = None,
        client_name: str | None = None,
        user: str | None = None,
        password: str | None = None,
        sentinel_user: str | None = None,
        sentinel_password: str | None = None,
        ca_file: Text | None = None,
        certificate: Text | None = None,
        key: Text | None = None,
        tls_name: str | None = None,
        on_lost: Callable[[H], object] | None = None,
        on_ask: Callable[[H, str], object] | None = None,
    ) -> None:
        options = dict(locals())
        for name in ("self", "url", "on_lost", "on_ask", "__class__"):
            options.pop(name, None)
        self._url = url
        self._options = {name: value for name, value in options.items() if value is not None}
        self._on_lost = on_lost
        self._on_ask = on_ask
        self._closed = False
        self._gate = threading.RLock()  # for handlers of signals
        self._current: Core | None = None  # until the first use, so that there is no thread to fork
        Core.open(url, self._options, on_ask is not None)  # says what is wrong with them
        _clients.add(self)

    def _open(self) -> Core:
        return Core(self._url, self._options, self._on_ask is not None)

    def _core(self) -> Core:
        core = self._current
        if core is None or core.pid != os.getpid() or core.closed:
            with self._gate:
                core = self._current
                if not self._closed and (core is None or core.pid != os.getpid()):
                    core = self._current = self._open()
        if core is None or core.closed or self._closed:
            raise Closed
        return core

    def _end(self) -> Core | None:
        """What is to be closed."""
        with self._gate:
            self._closed = True
            core = self._current
        return core if core is not None and core.pid == os.getpid() else None

    def _forked(self) -> None:
        self._gate = threading.RLock()

    def _told(self, core: Core, event: Any) -> None:
        """Calls the callbacks for an event."""
        hold: Any = core.hold_of(event.user)
        if hold is None:
            return
        if event.what & LOST_EVENT and event.lost == hold._token:
            hold._lost = True
            if self._on_lost is not None:
                self._on_lost(hold)
        if event.what & ASKED_EVENT and event.asked == hold._token and self._on_ask is not None:
            self._on_ask(hold, ffi.string(event.words).decode(errors="replace"))


# Processes

_cores: weakref.WeakSet[Core] = weakref.WeakSet()
_clients: weakref.WeakSet[BaseClient[Any]] = weakref.WeakSet()


def close_all() -> None:
    for core in list(_cores):
        if core.pid == os.getpid():
            core.close()


_ends_with: list[object] = []


def _end_with_process() -> None:
    """The processes of multiprocessing end without what atexit has to do."""
    if "multiprocessing.util" in sys.modules and not _ends_with:
        import multiprocessing.util

        _ends_with.append(multiprocessing.util.Finalize(None, close_all, exitpriority=10))


def _after_fork() -> None:
    for core in list(_cores):
        core.forked()
    for client in list(_clients):
        client._forked()
    _ends_with.clear()


atexit.register(close_all)
os.register_at_fork(after_in_child=_after_fork)
