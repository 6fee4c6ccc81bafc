# Mutants: the lock with one rule taken out, and what finds them.
# What the script links has to be there when it runs.
SUITES += tests/mutants/test_mutants.sh
tests/mutants/test_mutants.sh: | $(BUILD)/tests/sim/sim.a $(BUILD)/tests/unit/test_engine $(BUILD)/liblock.a

.PHONY: mutants
mutants: tests/mutants/test_mutants.sh ## see whether the simulator finds mutants of the lock; ONLY=text: some of them
	@sh tests/mutants/test_mutants.sh
