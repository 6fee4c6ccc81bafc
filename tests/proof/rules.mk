# SPDX-License-Identifier: Apache-2.0
# Proofs: what holds for all inputs, shown by the model checker CBMC.
PROOF_BIN := $(BUILD)/proof/cbmc/bin
$(call needs,proof,gcc libc6-dev time)

$(PROOF_BIN)/cbmc: tests/proof/get_cbmc.sh
	sh $< $(BUILD)/proof/cbmc

.PHONY: proof
proof: $(PROOF_BIN)/cbmc ## prove what tests/proof/README.md lists, by CBMC; NAME=text: those alone; LONG=1: those that take long; FAULTS=1: see that each fails with a fault planted in what it is about
	@$(if $(FAULTS),sh tests/proof/faults.sh $(NAME),$(if $(LONG),LIMIT=$${LIMIT:-3600} sh tests/proof/run.sh --long,sh tests/proof/run.sh $(NAME)))
