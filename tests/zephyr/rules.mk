# SPDX-License-Identifier: Apache-2.0
# The sample on Zephyr itself, for whoever has it. Nothing here gets it.
$(call needs,zephyr,$(BUILD)/redis-server)

.PHONY: zephyr
zephyr: all $(BUILD)/redis-server ## build Zephyr's sample with your tree of Zephyr, ZEPHYR_BASE=, and run it in QEMU
	@sh tests/zephyr/test_sample.sh
