# SPDX-License-Identifier: Apache-2.0
# Proofs: what holds for all inputs, shown by the model checker CBMC.
PROOF_BIN := $(BUILD)/proof/cbmc/bin
$(call needs,proof proof-long proof-faults,gcc libc6-dev time)

$(PROOF_BIN)/cbmc: tests/proof/get_cbmc.sh
	sh $< $(BUILD)/proof/cbmc

.PHONY: proof proof-long proof-faults
proof: $(PROOF_BIN)/cbmc ## prove what tests/proof/README.md lists, by CBMC; NAME=text: those alone
	@sh tests/proof/run.sh $(NAME)

proof-long: $(PROOF_BIN)/cbmc ## the proofs that take long
	@LIMIT=$${LIMIT:-3600} sh tests/proof/run.sh --long

proof-faults: $(PROOF_BIN)/cbmc ## see that each proof fails with a fault planted in what it is about; NAME=text: those alone
	@sh tests/proof/faults.sh $(NAME)
