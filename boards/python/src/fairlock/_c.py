# SPDX-License-Identifier: Apache-2.0
"""The part in C. A wheel has it twice: linked with the system's OpenSSL 3, and without TLS, for
where there is none. Built where it is used, it is one, with whichever OpenSSL there is.

FAIRLOCK_TLS=0 in the environment takes the one without, and loads no OpenSSL.
"""

import os

try:
    if os.environ.get("FAIRLOCK_TLS") == "0":
        raise ImportError
    from ._fairlock_tls import ffi, lib
except ImportError:
    from ._fairlock import ffi, lib

__all__ = ["ffi", "lib"]
