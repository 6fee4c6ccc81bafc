# SPDX-License-Identifier: Apache-2.0
"""pyspdxtools as its program is, but that it builds its index of licences once, not for each file."""

import functools

import license_expression

license_expression.get_spdx_licensing = functools.lru_cache(license_expression.get_spdx_licensing)

from spdx_tools.spdx.clitools.pyspdxtools import main  # after the line above, whose function it takes

main()
