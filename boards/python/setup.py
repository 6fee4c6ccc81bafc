# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: the part in C, and by which compiler.

FAIRLOCK_COMPILER: that command and no flags of this Python's, for a wheel that has the same bytes
wherever it is made.
"""

import os
import shlex

from setuptools import setup
from setuptools.command.build_ext import build_ext


class build(build_ext):
    def build_extensions(self):
        words = shlex.split(os.environ.get("FAIRLOCK_COMPILER", ""))
        if words:
            self.compiler.set_executables(
                compiler_so=[*words, "-fPIC", "-DNDEBUG"], linker_so=[*words, "-shared", "-s"]
            )
        super().build_extensions()


names = ["ffi", *(["ffi_tls"] if os.environ.get("FAIRLOCK_TLS") == "both" else [])]
setup(
    cffi_modules=[f"build_fairlock.py:{name}" for name in names],
    cmdclass={"build_ext": build},
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
