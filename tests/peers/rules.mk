# The lock beside what else people use. Not part of `make test-all`: it needs Go, Node, Python, a JDK
# and packages for each, which their own clients get, by the checksums in this folder. Go and Maven
# have their own caches; all else is in build/peers.
PEERS := $(BUILD)/peers
PEERS_REDISSON := $(lastword $(REDISSON))
PEERS_PROGRAMS := $(addprefix $(BUILD)/tests/peers/,peers test_analyse contender)
PEERS_READY := $(PEERS)/go $(PEERS)/python/ready $(PEERS)/node/ready $(PEERS)/java/Contender.class $(PEERS)/etcd/ready

$(call needs,$(BUILD)/tests/peers/contender,libhiredis-dev)
$(call needs,bench-peers peers-page,go=golang-go python3 pip3=python3-pip npm=nodejs npm=npm interop/redisson \
  $(BUILD)/tests/peers/contender $(BUILD)/redis-server)

$(BUILD)/tests/peers/peers: $(patsubst %,$(BUILD)/tests/peers/%.o,peers programs analyse draw) $(BUILD)/tests/svg.o $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm $(LDLIBS)

$(BUILD)/tests/peers/test_analyse: $(patsubst %,$(BUILD)/tests/peers/%.o,test_analyse analyse) $(FRAME)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/tests/peers/contender: $(BUILD)/tests/peers/contender.o $(SUPPORT) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lhiredis $(LDLIBS)

$(PEERS)/go: tests/peers/go/contender.go tests/peers/go/go.mod tests/peers/go/go.sum
	cd tests/peers/go && go build -o $(abspath $@) .

$(PEERS)/python/ready: tests/peers/python/requirements.txt
	rm -rf $(@D) && python3 -m pip -q install --root-user-action=ignore --require-hashes --only-binary :all: --target $(@D) -r $<
	@touch $@

$(PEERS)/node/ready: tests/peers/node/package.json tests/peers/node/package-lock.json
	mkdir -p $(@D) && cp $^ $(@D) && cd $(@D) && npm ci --silent --ignore-scripts
	@touch $@

$(PEERS)/java/Contender.class: tests/peers/java/Contender.java $(BUILD)/interop/$(PEERS_REDISSON)/ready
	javac -cp "$(BUILD)/interop/$(PEERS_REDISSON)/lib/*" -d $(@D) $<

# Unpacked, because the package would start a service where it is installed.
$(PEERS)/etcd/ready:
	mkdir -p $(@D) && cd $(@D) && apt-get -qq -o APT::Sandbox::User="$$(id -un)" download etcd-server && dpkg -x etcd-server_*.deb .
	@touch $@

# The redirection leaves the table alone on stdout.
.PHONY: bench-peers
bench-peers: ## compare with Redlock libraries, redis-py, Redisson and etcd (ONLY=redsync: some): the table, and build/peers.svg
	@$(MAKE) --no-print-directory $(PEERS_PROGRAMS) $(PEERS_READY) $(BUILD)/redis-server >&2
	@$(BUILD)/tests/peers/test_analyse >&2
	@rm -rf $(PEERS)/etcd.data $(PEERS)/log
	@BUILD=$(abspath $(BUILD)) REDISSON_JARS=$(abspath $(BUILD))/interop/$(PEERS_REDISSON)/lib \
	  $(BUILD)/tests/peers/peers $(BUILD)/peers.md $(BUILD)/peers.svg $(ONLY)
	@rm -rf $(PEERS)/etcd.data
	@cat $(BUILD)/peers.md

.PHONY: peers-page
peers-page: bench-peers ## the same, and put its table and picture into tests/peers
	@sed -i -e '/^<!-- begin/,/^<!-- end/{/^<!--/!d}' -e '/^<!-- begin/r $(BUILD)/peers.md' tests/peers/README.md
	@cp $(BUILD)/peers.svg tests/peers/peers.svg
