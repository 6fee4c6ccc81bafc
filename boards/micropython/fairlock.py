# SPDX-License-Identifier: Apache-2.0
# A fair distributed lock over Redis for MicroPython's asyncio. README.md beside this file has an example.
#
# Of a client, three tasks service the connection: _serve does what is due, opens and closes; _read and
# _write carry bytes. None of them waits for another one, so that a full socket holds up no deadline.
import asyncio
import _fairlock

_PENDING = 1
_UNREACHABLE = -9
_IN_PROGRESS = -7
_CONNECT, _CLOSE = 1, 2  # enum fairlock_want
_ENDED, _LOST = 1, 2  # enum fairlock_core_kind
_FOREVER = 0xFFFFFFFF
_RENEW = 0x7E7E7E7E
_READ_SIZE = 128
_LONGEST_MS = 3600000  # of a sleep: what ticks can tell has a limit


class Error(Exception):
    """status: of enum fairlock_status (lock/fairlock.h); name: as "TIMEOUT"."""

    def __init__(self, status, detail=""):
        self.status = status
        self.name, text = _fairlock.status_text(status)
        super().__init__(text + (": " + detail if detail else ""))


class Client:
    """One connection, which is made when it is needed, and again when it breaks. lease_ms, waiter_ms: 0:
    30 and 5 s. name_max: bytes of the longest name. ssl, server_hostname: as asyncio.open_connection() has
    them. Made for one event loop."""

    def __init__(self, host, port=6379, ssl=None, server_hostname=None, **options):
        self._where = host, port, ssl, server_hostname
        self._core = _fairlock.Core(**options)
        self._locks = {}  # key to Lock
        self._keys = 0
        self._stream = None  # while the connection is open
        self._opener = self._server = None
        self._carriers = ()
        self._woken, self._sends, self._changed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def lock(self, name, limit=-1):
        """A view of a lock: one holder. limit: -1: alone; 0: shared by any number; else by at most so many."""
        return Lock(self, name, limit)

    async def connect(self):
        """Waits for a connection, without a limit. Need not be called."""
        while not self._core.ready():
            self._core.connect()
            self._changed.clear()
            self._wake()
            await self._changed.wait()

    async def close(self, timeout_ms=2000):
        """Gives up all locks. Waits until the server knows, or for so long."""
        for lock in list(self._locks.values()):
            lock.drop()
        try:
            await asyncio.wait_for_ms(self._left(), timeout_ms)
        except asyncio.TimeoutError:
            pass
        if self._server:
            self._server.cancel()
        self._server = None
        self._close()

    async def _left(self):
        while self._core.leaving():
            self._changed.clear()
            await self._changed.wait()

    def _wake(self):
        if self._server is None or self._server.done():  # or it had no memory
            self._server = asyncio.create_task(self._serve())
        self._woken.set()

    def _tell(self):
        while True:
            event = self._core.next()
            if event is None:
                return
            kind, key, status = event
            lock = self._locks.get(key)
            if lock and kind == _ENDED:
                lock._status = status
                lock._ended.set()
            elif lock and kind == _LOST:
                lock.lost.set()

    def _close(self):
        for task in (self._opener,) + self._carriers:
            if task and task is not asyncio.current_task():
                task.cancel()
        stream, self._stream = self._stream, None
        self._opener, self._carriers = None, ()
        if stream:
            stream.s.close()
        self._core.closed(_UNREACHABLE)

    async def _serve(self):
        core = self._core
        while True:
            wants = core.wants()
            if wants & _CLOSE:
                self._close()
                wants = core.wants()
            if wants & _CONNECT and self._opener is None and self._stream is None:
                core.opening()
                self._opener = asyncio.create_task(self._open())
            self._sends.set()
            self._tell()
            self._changed.set()
            try:
                await asyncio.wait_for_ms(self._woken.wait(), min(core.deadline(), _LONGEST_MS))
            except asyncio.TimeoutError:
                await asyncio.sleep_ms(1)  # for _read: what has come in time is not late
                if self._stream and not core.received(b""):
                    self._close()
            self._woken.clear()

    async def _open(self):
        host, port, ssl, name = self._where
        try:
            reader, self._stream = await asyncio.open_connection(host, port, ssl=ssl, server_hostname=name)
            self._core.opened()
            self._carriers = asyncio.create_task(self._read(reader)), asyncio.create_task(self._write(self._stream))
        except (OSError, MemoryError):
            self._close()
        self._opener = None
        self._woken.set()

    async def _read(self, stream):
        try:
            while True:
                some = await stream.read(_READ_SIZE)
                if not some or not self._core.received(some):
                    break
                self._tell()
                self._woken.set()
        except (OSError, MemoryError):
            pass
        self._close()
        self._woken.set()

    async def _write(self, stream):
        try:
            while True:
                some = self._core.output()
                self._tell()
                if some:
                    stream.write(some)
                    self._woken.set()  # the deadline is another one
                    await stream.drain()
                else:
                    self._sends.clear()
                    await self._sends.wait()
        except (OSError, MemoryError):
            self._close()
            self._woken.set()


class Lock:
    """lost: an asyncio.Event that is set when a hold has ended before its release."""

    def __init__(self, client, name, limit):
        self._client, self._name, self._limit = client, name, limit
        self._handle = self._key = None
        self._status, self._ended, self.lost = 0, asyncio.Event(), asyncio.Event()

    def _open(self):
        if self._handle is None:
            client = self._client
            client._keys = self._key = (client._keys + 1) & 0x3FFFFFFF
            handle = client._core.lock(self._name, self._limit, self._key)
            if isinstance(handle, int):
                raise Error(handle)
            self._handle = handle
            client._locks[self._key] = self
        return self._handle

    async def _end(self, status):
        self._ended.clear()
        self._status = status
        self._client._wake()
        try:
            while self._status == _PENDING:
                await self._ended.wait()
        except asyncio.CancelledError:
            self.drop()
            raise
        if self._status:
            raise Error(self._status, self._client._core.error())

    async def acquire(self, wait_ms=None, lease_ms=None):
        """Waits in line: None: for ever, 0: not at all. lease_ms: None: that of the client, renewed until the
        release. Raises Error. One that is cancelled gives its place up."""
        handle = self._open()
        if self._status == _PENDING or handle.remaining():
            raise Error(_IN_PROGRESS)
        self.lost.clear()
        wait = _FOREVER if wait_ms is None else wait_ms
        await self._end(handle.acquire(wait, _RENEW if lease_ms is None else lease_ms))
        return self

    async def release(self):
        """Raises Error: LOST, if the hold had ended before. One that is cancelled goes on in the background."""
        await self._end(self._open().release())

    def drop(self):
        """Gives it up, whatever it is doing, and frees its memory: place or hold end in the background."""
        if self._handle is not None:
            del self._client._locks[self._key]
            self._handle.drop()
            self._handle = None
            self._status = 0
            self._client._wake()

    def token(self):
        """The fencing token of the hold; 0: there is none."""
        return self._handle.token() if self._handle else 0

    def remaining_ms(self):
        """For how long the hold is safe; 0: it is not. Ask before each step that must not be done twice."""
        return self._handle.remaining() if self._handle else 0

    async def __aenter__(self):
        return await self.acquire()

    async def __aexit__(self, kind, error, trace):
        try:
            await self.release()
        except Error:
            if kind is None:
                raise
        finally:
            self.drop()
