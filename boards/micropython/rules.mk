# SPDX-License-Identifier: Apache-2.0
# The module for MicroPython in the unix port, which is built of Debian 13's source package: build/micropython/run
# runs a script with it.
MICROPYTHON := $(BUILD)/micropython
MICROPYTHON_TESTS := $(addprefix boards/micropython/test/,test_client.sh test_mixed.sh test_peer.sh)
SUITES += $(MICROPYTHON_TESTS)
$(call needs,$(MICROPYTHON)/source/py,dpkg-dev)
$(call needs,$(MICROPYTHON)/run,python3 $(MICROPYTHON)/source/py)
$(call needs,$(MICROPYTHON_TESTS),$(MICROPYTHON)/run $(BUILD)/redis-server cmake)
$(MICROPYTHON_TESTS): | all $(MICROPYTHON)/run $(BUILD)/redis-server
boards/micropython/test/test_mixed.sh: | $(COMPAT_CLIENTS) $(JUDGE)

$(MICROPYTHON)/source/py: boards/micropython/test/fetch.sh
	sh boards/micropython/test/fetch.sh $(MICROPYTHON)
	@touch $@

# Without what asks for other libraries, and with nothing frozen, which would ask for its compiler. It is a build
# of its own, which shall have none of this one's variables.
$(MICROPYTHON)/run: $(wildcard boards/micropython/module/* boards/core/*.[ch] lock/*.[ch] resp/*.[ch] port/*.h port/single/*.h) \
  boards/micropython/rules.mk $(MICROPYTHON)/source/py
	env -i PATH="$$PATH" HOME="$$HOME" make -s -j2 -C $(MICROPYTHON)/source/ports/unix BUILD=$(abspath $(MICROPYTHON))/port \
	  VARIANT=standard FROZEN_MANIFEST= MICROPY_PY_SSL=0 MICROPY_SSL_MBEDTLS=0 MICROPY_PY_BTREE=0 MICROPY_PY_FFI=0 \
	  USER_C_MODULES=$(abspath boards/micropython)
	@printf '%s\n' '#!/bin/sh' 'MICROPYPATH=$(abspath $(MICROPYTHON))/source/extmod:$(abspath boards/micropython) \' \
	  '  exec $(abspath $(MICROPYTHON))/port/micropython "$$@"' >$@.new
	@chmod +x $@.new && mv -f $@.new $@
