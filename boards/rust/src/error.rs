// SPDX-License-Identifier: Apache-2.0
use core::ffi::{c_char, c_int, CStr};
use core::fmt;

extern "C" {
    fn fairlock_status_text(status: c_int) -> *const c_char;
}

macro_rules! errors {
    ($($(#[$text:meta])* $name:ident = $code:literal,)*) => {
        /// Why an operation did not do what it was asked. After an acquire that failed, the caller neither
        /// holds nor waits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Error {
            $($(#[$text])* $name,)*
            /// One that this release has no name for.
            Other(i32),
        }

        impl Error {
            /// The number in C: `enum fairlock_status`.
            pub fn code(self) -> i32 {
                match self {
                    $(Error::$name => $code,)*
                    Error::Other(code) => code,
                }
            }

            pub(crate) fn from_code(code: i32) -> Self {
                match code {
                    $($code => Error::$name,)*
                    other => Error::Other(other),
                }
            }
        }
    };
}

errors! {
    /// A try: somebody else holds, or is first in line.
    Busy = -1,
    /// The wait has ended without the lock.
    Timeout = -2,
    /// The wait was cancelled.
    Cancelled = -3,
    /// The hold had ended: its lease ran out, its release was forced, or its key was deleted. Others may have
    /// held the lock since.
    Lost = -4,
    /// Nothing to release.
    NotHeld = -5,
    /// Another thread holds or releases.
    WrongTask = -6,
    /// An operation is under way. Embedded: all room for holders and waiters is in use.
    InProgress = -7,
    /// No answer to a release: it was carried out, or will be, or the lease ends the hold.
    Unknown = -8,
    /// No connection to the server.
    Unreachable = -9,
    /// The server refuses this user, or wants a password.
    Denied = -10,
    /// The server lacks a command: Redis 6.2 or newer is needed.
    Unsupported = -11,
    /// The server cannot serve at present: it loads its data, a script runs, or a slot moves.
    Unavailable = -12,
    /// The server is a replica.
    ReadOnly = -13,
    /// The server is out of memory; or this machine, when a lock is made.
    OutOfMemory = -14,
    /// The server refuses writes: see its log.
    Misconfigured = -15,
    /// Too few replicas have acknowledged in time: not taken.
    Unsynced = -16,
    /// Another error of the server.
    Refused = -17,
    /// What answers is no Redis.
    Protocol = -18,
    /// An argument is out of its range: a name, a limit, a lease.
    Invalid = -19,
    /// The name is too long.
    TooLong = -20,
    /// Another node has this lock, and the client does not go there.
    WrongShard = -21,
    /// TLS: a certificate or key, theirs or ours, is not trusted.
    Untrusted = -22,
    /// The client was made before a `fork()`.
    Forked = -23,
    /// The holder cannot be asked to release.
    NotListening = -24,
    /// A later release uses the lock in a way unknown to this one.
    Outdated = -25,
}

impl Error {
    pub(crate) fn check(status: i32) -> Result<(), Self> {
        if status == 0 {
            Ok(())
        } else {
            Err(Self::from_code(status))
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: any number has a text, which is constant, and ASCII.
        let text = unsafe { CStr::from_ptr(fairlock_status_text(self.code())) };
        to.write_str(text.to_str().unwrap_or(""))
    }
}

impl core::error::Error for Error {}
