# SPDX-License-Identifier: Apache-2.0
"""A fair distributed lock over Redis: whoever asks first is served first.

    client = fairlock.Client("redis://localhost")
    with client.lock("door:7", wait=10) as hold:
        write(..., fence=hold.token)

fairlock.aio is the same for asyncio. Every exception is an Error, and also a TimeoutError,
ConnectionError, PermissionError, ValueError or RuntimeError where one of these says it.
"""

from . import aio
from ._c import ffi as _ffi
from ._c import lib as _lib
from ._client import Client, Hold, Lock
from ._errors import (
    Busy,
    Closed,
    Denied,
    Error,
    Forked,
    Invalid,
    Lost,
    Misconfigured,
    NotAcquired,
    NotHeld,
    Outdated,
    OutOfMemory,
    ProtocolError,
    ReadOnly,
    Refused,
    Timeout,
    TooLong,
    Unavailable,
    Unknown,
    Unreachable,
    Unsupported,
    Unsynced,
    Untrusted,
    WrongShard,
)

__version__: str = _ffi.string(_lib.fls_version()).decode().replace("-", "")

__all__ = [
    "Busy",
    "Client",
    "Closed",
    "Denied",
    "Error",
    "Forked",
    "Hold",
    "Invalid",
    "Lock",
    "Lost",
    "Misconfigured",
    "NotAcquired",
    "NotHeld",
    "OutOfMemory",
    "Outdated",
    "ProtocolError",
    "ReadOnly",
    "Refused",
    "Timeout",
    "TooLong",
    "Unavailable",
    "Unknown",
    "Unreachable",
    "Unsupported",
    "Unsynced",
    "Untrusted",
    "WrongShard",
    "aio",
]
