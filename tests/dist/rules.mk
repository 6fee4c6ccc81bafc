# What is handed on: the version, and the tarball.
VERSION_TEST := tests/dist/test_version.sh
SUITES += $(VERSION_TEST)
$(VERSION_TEST): | $(BUILD)/fairlock $(BUILD)/fairlock.pc

# What is committed, and so the same bytes for all who make it of the same commit by the same gzip.
TARBALL := $(BUILD)/fairlock-$(VERSION).tar.gz

.PHONY: dist
dist: ## pack what is committed into build/fairlock-VERSION.tar.gz
	@test -e .git || { echo "make dist needs a clone of the repository: it packs a commit" >&2; exit 1; }
	@command -v git >/dev/null || sh tests/tools/need.sh git
	@git diff --quiet HEAD || echo "not all is committed: what is not is left out" >&2
	@mkdir -p $(BUILD)
	git archive --prefix=fairlock-$(VERSION)/ HEAD >$(BUILD)/dist.tar
	@gzip -9 -n -c $(BUILD)/dist.tar >$(TARBALL).new && mv $(TARBALL).new $(TARBALL) && rm $(BUILD)/dist.tar

.PHONY: dist-check
dist-check: dist ## unpack that tarball elsewhere, build it without git, and run its unit suites
	@sh tests/tools/run.sh "sh tests/dist/check.sh $(TARBALL)"
