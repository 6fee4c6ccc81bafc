# SPDX-License-Identifier: Apache-2.0
"""The part in C, for setuptools: cffi in API mode, so the C compiler checks each declaration and
knows each size; by the stable ABI, so one binary serves every Python from 3.9 on.

The declarations are those of boards/service/service.h.

FAIRLOCK_TLS: 1 builds with OpenSSL, 0 without; otherwise it is used where the compiler finds it.
For a wheel, `both` builds without, and a second part with it (_c.py). FAIRLOCK_INCLUDE,
FAIRLOCK_LIBRARIES: folders with the headers of Python and OpenSSL, and with the libraries of that.
"""

import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

from cffi import FFI

C = Path("c")  # setuptools runs in the folder of setup.py, and wants paths in it

INCLUDES = ["service", "resp", "lock", "port", "port/posix", "port/openssl"]

# What is not in service.h: a client that is closed, and a lock that is freed, when Python drops the
# last reference. Functions of C, because one of Python's may be interrupted by a signal. A lock
# keeps the memory of its client until it is freed itself.
OWN_DECLARATIONS = """
static const int fairlock_tls;
static void fairlock_drop_client(struct fls_client *client);
static void fairlock_drop_lock(struct fls_client *client, struct fls_lock *lock);
"""
OWN = """
#include "service.h"
static const int fairlock_tls = FAIRLOCK_TLS;
static void fairlock_drop_client(struct fls_client *client)
{
  fls_close(client, 1000);
}
static void fairlock_drop_lock(struct fls_client *client, struct fls_lock *lock)
{
  (void)client;
  fls_free(lock);
}
"""


def finds_openssl():
    words = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    flags = shlex.split(os.environ.get("CPPFLAGS", "") + " " + os.environ.get("CFLAGS", ""))
    try:
        done = subprocess.run(
            [*words, *flags, "-E", "-xc", "-"],
            input=b"#include <openssl/ssl.h>\n",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return False
    return done.returncode == 0


def declarations():
    """service.h without what cffi does not read: comments, directives, what is for C++."""
    text = (C / "service/service.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    return re.sub(r"^#.*$", "", text, flags=re.MULTILINE)


def sources(tls):
    yield C / "service/service.c"
    if not tls:
        yield C / "service/no_tls.c"
    for folder in ["resp", "lock", "port/posix", *(["port/openssl"] if tls else [])]:
        yield from sorted((C / folder).glob("*.c"))


def extension(name, tls):
    ffi = FFI()
    ffi.cdef(declarations() + OWN_DECLARATIONS)
    ffi.set_source(
        "fairlock." + name,
        OWN,
        sources=[path.as_posix() for path in sources(tls)],
        include_dirs=[
            *os.environ.get("FAIRLOCK_INCLUDE", "").split(),
            *((C / folder).as_posix() for folder in INCLUDES),
        ],
        library_dirs=os.environ.get("FAIRLOCK_LIBRARIES", "").split() if tls else [],
        define_macros=[("FAIRLOCK_TLS", str(int(tls)))],
        libraries=["ssl", "crypto"] if tls else [],
        extra_compile_args=["-O2", "-std=gnu11", "-fvisibility=hidden"],
        extra_link_args=["-pthread"],
        py_limited_api=True,
    )
    return ffi


def ffi():
    asked = os.environ.get("FAIRLOCK_TLS", "")
    return extension("_fairlock", asked == "1" or (asked == "" and finds_openssl()))


def ffi_tls():
    return extension("_fairlock_tls", True)
