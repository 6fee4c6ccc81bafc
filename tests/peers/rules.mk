# SPDX-License-Identifier: Apache-2.0
# The lock beside what else people use. Not part of `make test-all`: it needs Go, Node, Python, Rust, a JDK
# and packages for each, which their own clients get, by the checksums in this folder. Go and Maven
# have their own caches; all else is in build/peers.
PEERS := $(BUILD)/peers
PEERS_REDISSON := $(lastword $(REDISSON))
PEERS_REDISSON_JARS := $(BUILD)/interop/$(PEERS_REDISSON)/lib
PEERS_PROGRAMS := $(addprefix $(BUILD)/tests/peers/,peers sharing test_analyse contender sharer)
PEERS_READY := $(PEERS)/go $(PEERS)/python/ready $(BUILD)/python/used/ready $(PEERS)/node/ready $(PEERS)/java/ready $(PEERS)/etcd/ready
PEERS_READY += $(BUILD)/node/fairlock-$(VERSION).tgz $(PEERS)/rust/release/contender

$(call needs,$(BUILD)/tests/peers/contender,libhiredis-dev)
$(call needs,bench-peers,go=golang-go $(BUILD)/tests/python/test_use pip3=python3-pip npm=nodejs npm=npm interop/redisson \
  compiler/cargo compiler/wasm $(BUILD)/tests/peers/contender $(BUILD)/redis-server)

$(BUILD)/tests/peers/peers: $(patsubst %,$(BUILD)/tests/peers/%.o,peers programs analyse draw) $(BUILD)/tests/svg.o $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm $(LDLIBS)

$(BUILD)/tests/peers/sharing: $(patsubst %,$(BUILD)/tests/peers/%.o,sharing programs analyse) $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/tests/peers/test_analyse: $(patsubst %,$(BUILD)/tests/peers/%.o,test_analyse analyse) $(FRAME) $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/tests/peers/contender: $(BUILD)/tests/peers/contender.o $(SUPPORT) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lhiredis $(LDLIBS)

$(BUILD)/tests/peers/sharer: $(BUILD)/tests/peers/sharer.o $(SUPPORT) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# With the module for Go as it was built.
$(PEERS)/go: tests/peers/go/contender.go tests/peers/go/go.mod tests/peers/go/go.sum $(BUILD)/go/fairlock-v$(VERSION).zip
	rm -rf $(PEERS)/go.source && mkdir -p $(PEERS)/go.source && cp $(filter tests/%,$^) $(PEERS)/go.source
	cd $(PEERS)/go.source && go mod edit -replace=example.org/fairlock=$(abspath $(GO_FOLDER)/module) && go build -o $(abspath $@) .

$(PEERS)/python/ready: tests/peers/python/requirements.txt
	rm -rf $(@D) && python3 -m pip -q install --root-user-action=ignore --require-hashes --only-binary :all: --target $(@D) -r $<
	@touch $@

$(PEERS)/node/ready: tests/peers/node/package.json tests/peers/node/package-lock.json
	mkdir -p $(@D) && cp $^ $(@D) && cd $(@D) && npm ci --silent --ignore-scripts
	@touch $@

# By the checksums of its lock file, which has the same versions each time.
$(PEERS)/rust/release/contender: $(wildcard tests/peers/rust/*.toml tests/peers/rust/src/*) $(CORE) $(wildcard lock/*.h port/posix/* boards/service/*.[ch] boards/rust/*.* boards/rust/src/*)
	cd tests/peers/rust && CARGO_TARGET_DIR=$(abspath $(PEERS))/rust cargo build -q --release --locked
	@touch $@

# Apart from Redisson's, whose jars have other versions of what both need.
$(PEERS)/curator/ready: tests/peers/java/pom.xml
	rm -rf $(@D)
	mvn -q -B -Dstyle.color=never -f $< dependency:copy-dependencies -DoutputDirectory=$(abspath $(@D))
	@touch $@

$(PEERS)/java/ready: $(wildcard tests/peers/java/*.java) $(BUILD)/interop/$(PEERS_REDISSON)/ready $(PEERS)/curator/ready
	javac -cp "$(PEERS_REDISSON_JARS)/*:$(PEERS)/curator/*" -d $(@D) $(filter %.java,$^)
	@touch $@

# Unpacked, because the package would start a service where it is installed.
$(PEERS)/etcd/ready:
	mkdir -p $(@D) && cd $(@D) && apt-get -qq -o APT::Sandbox::User="$$(id -un)" download etcd-server && dpkg -x etcd-server_*.deb .
	@touch $@

# Nothing in a release's own commit, nor where there is no repository.
PEERS_COMMIT = COMMIT="$$(git tag --points-at HEAD 2>/dev/null | grep -qx 'v$(VERSION)' || git rev-parse --short HEAD 2>/dev/null)"

# The redirection leaves the tables alone on stdout.
.PHONY: bench-peers
bench-peers: ## compare with Redlock libraries, redis-py, Redisson, etcd and Curator (ONLY=redsync: some): the tables, and build/peers.svg; PAGE=1: puts them into tests/peers
	@$(MAKE) --no-print-directory $(PEERS_PROGRAMS) $(PEERS_READY) $(BUILD)/redis-server >&2
	@$(BUILD)/tests/peers/test_analyse >&2
	@rm -rf $(PEERS)/etcd.data $(PEERS)/zookeeper.data $(PEERS)/log $(BUILD)/peers.md $(BUILD)/sharing.md $(BUILD)/threads.md
	@$(PEERS_COMMIT) BUILD=$(abspath $(BUILD)) REDISSON_JARS=$(abspath $(PEERS_REDISSON_JARS)) \
	  $(BUILD)/tests/peers/peers $(BUILD)/peers.md $(BUILD)/peers.svg $(ONLY)
	@$(PEERS_COMMIT) BUILD=$(abspath $(BUILD)) REDISSON_JARS=$(abspath $(PEERS_REDISSON_JARS)) CURATOR_JARS=$(abspath $(PEERS)/curator) \
	  $(BUILD)/tests/peers/sharing $(BUILD)/sharing.md $(ONLY)
	@$(if $(ONLY),,sh tests/peers/python/threads.sh $(BUILD) >$(BUILD)/threads.md)
	@rm -rf $(PEERS)/etcd.data $(PEERS)/zookeeper.data
	@for table in peers sharing threads; do if [ -f $(BUILD)/$$table.md ]; then cat $(BUILD)/$$table.md && echo; fi; done
ifdef PAGE
	@for table in peers sharing threads; do \
	  sed -i -e "/^<!-- begin $$table/,/^<!-- end/{/^<!--/!d}" -e "/^<!-- begin $$table/r $(BUILD)/$$table.md" tests/peers/README.md; done
	@cp $(BUILD)/peers.svg tests/peers/peers.svg
endif
