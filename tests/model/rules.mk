# The model of the protocol, checked in all its states.
SUITES += tests/model/check.sh
PACKAGES += spin gcc libc6-dev
export BUILD

.PHONY: model
model: ## check the model of the protocol with spin; ONLY=text: some of its runs
	@sh tests/tools/need.sh spin gcc libc6-dev
	@tests/model/check.sh $(ONLY)
