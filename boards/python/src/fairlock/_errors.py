# SPDX-License-Identifier: Apache-2.0
"""An exception for each status of the C library, each also what Python has for such a case."""

from __future__ import annotations

from ._c import ffi, lib


class Error(Exception):
    """The base of all exceptions of this package.

    `status` is the number that lock/fairlock.h has for it. The text says which lock, what
    happened, and what the server or the connection has said last, where that is known.
    """

    status: int = 0
    text: str = ""

    def __init__(self, what: str = "", detail: str = "", text: str = "") -> None:
        text = text or self.text or ffi.string(lib.fls_status_text(self.status)).decode()
        super().__init__(": ".join(part for part in (what, text, detail) if part))


class NotAcquired(Error):
    """Others have the lock: what an acquire may end with when all is well."""


class Busy(NotAcquired):
    """A try: somebody else holds the lock, or is first in line."""

    status = -1


class Timeout(NotAcquired, TimeoutError):
    """The wait has ended without the lock."""

    status = -2


class Closed(Error, RuntimeError):
    """The client is closed, or was while this thread or task waited."""

    status = -3
    text = "the client was closed"


class Lost(Error):
    """The hold had ended before its release: others may have had the lock since."""

    status = -4


class NotHeld(Error, RuntimeError):
    """It was released before."""

    status = -5


class Unknown(Error):
    """No answer to a release: it is repeated in the background, or the lease ends the hold."""

    status = -8


class Unreachable(Error, ConnectionError):
    """There is no connection to the server."""

    status = -9


class Denied(Error, PermissionError):
    """The server refuses this user or password, or the user lacks a right."""

    status = -10


class Unsupported(Error):
    """The server is too old, or this installation cannot do it, such as TLS."""

    status = -11


class Unavailable(Error, ConnectionError):
    """The server cannot serve now: it is loading or busy, or its cluster is down."""

    status = -12


class ReadOnly(Error, ConnectionError):
    """The server is a replica."""

    status = -13


class OutOfMemory(Error):
    """The server, or this process, is out of memory."""

    status = -14


class Misconfigured(Error):
    """The server refuses writes: its log says why."""

    status = -15


class Unsynced(Error):
    """Too few replicas acknowledged in time: the lock was not taken."""

    status = -16


class Refused(Error):
    """Any other error of the server, whose words are in the text."""

    status = -17


class ProtocolError(Error):
    """What answers is not a Redis server."""

    status = -18


class Invalid(Error, ValueError):
    """An argument or an option is out of its range."""

    status = -19


class TooLong(Invalid):
    """The name or the client_id is too long."""

    status = -20


class WrongShard(Error, ConnectionError):
    """Another node of the cluster has this lock, and the client does not follow there now."""

    status = -21


class Untrusted(Error, ConnectionError):
    """TLS: a certificate or key, theirs or ours, is not trusted."""

    status = -22


class Forked(Error, RuntimeError):
    """The hold is the parent process's."""

    status = -23


class Outdated(Error):
    """A later release uses the lock in a way that this one does not know."""

    status = -25


def _all(of: type[Error]) -> list[type[Error]]:
    return [one for cls in of.__subclasses__() for one in (cls, *_all(cls))]


_BY_STATUS = {cls.status: cls for cls in _all(Error) if cls.status != 0}


def error(status: int, what: str, detail: str | None = None) -> Error:
    """The exception for a status; one that has none of its own is an Error with that status."""
    cls = _BY_STATUS.get(status)
    if cls is None:
        cls = type("Error", (Error,), {"status": status, "__module__": "fairlock"})
    return cls(what, detail or "")


for _cls in [Error, *_all(Error)]:
    _cls.__module__ = "fairlock"
