# SPDX-License-Identifier: Apache-2.0
# fairlock: `make` builds the library and the command; `make help` lists the rest.

# $(call needs,TARGET...,NAME...): these targets, goals or suites, need these packages of Debian, or
# what other targets need, by their names; a name with a / of which nothing is known needs nothing.
# PROGRAM=PACKAGE: unless the program is there, wherever it comes from. What the goals need is asked
# for at the end of this file: at once, before anything is made.
needs = $(foreach target,$1,$(eval NEEDS.$(target) += $2))
packages = $(sort $(foreach name,$1,$(if $(NEEDS.$(name)),$(call packages,$(NEEDS.$(name))),$(if $(findstring /,$(name)),,$(name)))))
GOALS := $(or $(MAKECMDGOALS),all)

# STATIC=1: one static program to copy anywhere, in build/static, made with musl.
# Where musl is the system's own, CC=cc does.
ifdef STATIC
CC := musl-gcc
$(call needs,$(GOALS),$(CC)=musl-tools)
BUILD ?= build/static
CFLAGS ?= -Os
LDFLAGS += -static -s
PIC ?=
endif

CC ?= cc
AR ?= ar
PREFIX ?= /usr/local
BUILD ?= build
VERSION := $(shell sed -n 's/^.define FAIRLOCK_VERSION *"\(.*\)"$$/\1/p' lock/fairlock.h)

# A warning is an error in a clone of the repository, where this is worked on (.git is a folder),
# but not where it is only built, by whatever compiler comes: in an unpacked tarball or a submodule.
# WERROR=1 and WERROR=0 say otherwise.
WERROR ?= $(if $(wildcard .git/.),1,0)
export WERROR
WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wmissing-prototypes $(if $(filter 1,$(WERROR)),-Werror)
CFLAGS ?= -O2 -g
INCLUDES := -Iresp -Iport -Iport/posix -Iport/openssl -Ilock
LIB_CFLAGS = -std=c11 $(WARNINGS) $(INCLUDES) $(CFLAGS)
LDLIBS += -pthread

CORE := $(wildcard resp/*.c) $(wildcard lock/*.c)
LIB_SOURCES := $(CORE) $(wildcard port/posix/*.c)
LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/%.o)
HOST_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard boards/fairlock/*.c))
HEADERS := resp/resp.h port/port.h port/posix/port_types.h port/posix/port_posix.h lock/driver.h lock/state.h \
  $(sort $(wildcard lock/fairlock*.h)) lock/fairlock.hpp

# TLS=openssl: the library has port/openssl, and the command rediss://. Without it, neither asks for
# OpenSSL. The mark has what depends on it built anew when another TLS is asked for, and is what is
# asked for by default from then on.
TLS ?= $(if $(wildcard $(BUILD)/tls.openssl),openssl,none)
TLS_MARK := $(BUILD)/tls.$(TLS)
$(if $(filter none openssl,$(TLS)),,$(error TLS=$(TLS) is not known: TLS=openssl))
HOST_OBJECTS += $(BUILD)/boards/fairlock/tls/$(TLS).o
ifeq ($(TLS),openssl)
LIB_OBJECTS += $(patsubst %.c,$(BUILD)/%.o,$(wildcard port/openssl/*.c))
HEADERS += port/openssl/port_openssl.h
TLS_LIBS := -lssl -lcrypto
endif

.PHONY: all
all: $(BUILD)/liblock.a $(BUILD)/fairlock $(BUILD)/include/fairlock ## build the library and the fairlock command

# Position-independent, so that it can become a part of a shared object: on x86-64 an acquire and a
# release then take 3 % more instructions, and 0.2 us. PIC= leaves it to the compiler.
PIC ?= -fPIC
$(LIB_OBJECTS): LIB_CFLAGS += $(PIC)

$(BUILD)/liblock.a: $(LIB_OBJECTS) $(TLS_MARK)
	rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# The public headers, as a program that uses the library finds them: <fairlock/fairlock.h>. They
# include each other from their own folder, so a program may have a driver.h or a port.h, too.
$(BUILD)/include/fairlock: $(HEADERS) $(TLS_MARK)
	rm -rf $(@D) && mkdir -p $@ && cp $(filter %.h %.hpp,$^) $@

$(BUILD)/fairlock: $(HOST_OBJECTS) $(BUILD)/liblock.a $(TLS_MARK)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(TLS_LIBS) $(LDLIBS)
	$(if $(STATIC),@echo "$@: $$(wc -c <$@) bytes")

$(TLS_MARK):
	@mkdir -p $(@D) && rm -f $(BUILD)/tls.*
	@touch $@

$(BUILD)/port/openssl/openssl.o $(if $(TLS_LIBS),$(LIB_OBJECTS)): | openssl-library

# Asked for only where the compiler does not find it, because it need not be Debian's. musl's compiler
# does not find Debian's, which is made for another C library.
FINDS_OPENSSL = printf '\043include <openssl/ssl.h>\n' | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1
$(call needs,openssl-library,libssl-dev)

.PHONY: openssl-library
openssl-library:
	@$(FINDS_OPENSSL) || $(if $(STATIC),{ echo '$(STATIC_TLS)' >&2; exit 1; },sh tests/tools/need.sh $(NEEDS.$@))

STATIC_TLS := STATIC=1 TLS=openssl needs an OpenSSL whose libssl.a is made for the C library of CC=$(CC), which finds none. \
  On Alpine: apk add openssl-dev openssl-libs-static, and CC=cc. On Debian: CC=gcc with libssl-dev, for machines with the same glibc

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $<

# Without POSIX: codec and lock, for a program with one task. The program
# brings a transport, port_clock_ms() and port_idle(). Each function has a section of its own, so that
# the linker can leave out what the program does not use, and it is built for size unless the caller's
# CFLAGS have an -O.
#
# THREADS=port/freertos, or another folder with a port_types.h, is for the tasks of that system, whose
# headers CFLAGS has to name, and in place of port_idle() there are the functions of threads.c: in the
# library, if they are one of our ports.
#
# SCRIPTS=hashes leaves the scripts' texts out: boards/README.md says when that is right.
THREADS := port/single
override THREADS := $(patsubst %/,%,$(THREADS))
SCRIPTS ?= texts
$(if $(filter texts hashes,$(SCRIPTS)),,$(error SCRIPTS=$(SCRIPTS) is not known: texts or hashes))
WITHOUT_TEXTS := $(filter-out lock/scripts.c lock/texts.c,$(CORE)) lock/scripts/hashes.c
CORE_FOLDER := $(BUILD)/core/$(notdir $(firstword $(CC)))$(if $(filter hashes,$(SCRIPTS)),-hashes)$(if $(filter-out port/single,$(THREADS)),-$(notdir $(THREADS)))
CORE_THREADS := $(wildcard $(addprefix $(filter port/%,$(THREADS)),/threads.c /process.c))
CORE_GIVEN = $(if $(filter file,$(origin CFLAGS)),,$(CFLAGS))
CORE_FLAGS = -ffunction-sections -fdata-sections $(if $(filter -O%,$(CC) $(CORE_GIVEN)),,-Os) $(CORE_GIVEN)
CORE_OBJECTS := $(patsubst %.c,$(CORE_FOLDER)/%.o,$(if $(filter hashes,$(SCRIPTS)),$(WITHOUT_TEXTS),$(CORE)) $(CORE_THREADS))
CORE_COMPILE = $(CC) -std=c11 $(WARNINGS) -Iresp -Iport -I$(THREADS) -Ilock $(CORE_FLAGS) $(CPPFLAGS)

.PHONY: core
core: $(CORE_FOLDER)/liblock.a ## build the library without POSIX into build/core, by any compiler: CC=arm-none-eabi-gcc CFLAGS="-mcpu=cortex-m3 -mthumb"; THREADS=port/freertos is for tasks of FreeRTOS; SCRIPTS=hashes leaves the scripts' texts out

$(CORE_FOLDER)/liblock.a: $(CORE_OBJECTS)
	rm -f $@ && $(if $(filter %-gcc,$(CC)),$(CC:%-gcc=%-ar),$(AR)) rcs $@ $^

$(CORE_FOLDER)/%.o: %.c $(CORE_FOLDER)/command
	@mkdir -p $(@D)
	$(CORE_COMPILE) -MMD -MP -c -o $@ $<

# Other flags for the same compiler build all objects anew.
$(CORE_FOLDER)/command: core-compiler
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(CORE_COMPILE))' >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# Asked for where the compiler is missing, or finds no C library. Cross compilers are where they are used.
$(call needs,compiler/clang,clang libc6-dev)

.PHONY: core-compiler
core-compiler:
	$(if $(wildcard $(THREADS)/port_types.h),,$(error THREADS=$(THREADS) is no folder with a port_types.h, as port/freertos is))
	@printf '#include <string.h>\n' | $(CORE_COMPILE) -E - >/dev/null 2>&1 || \
	  sh tests/tools/need.sh $(NEEDS.compiler/$(notdir $(firstword $(CC))))

# Tests. A folder of tests adds its programs to SUITES, and says what they need, in rules.mk.
SUITES := $(wildcard tests/tools/test_*.sh)
tests/tools/test_layers.sh: | $(BUILD)/liblock.a
$(call needs,tests/tools/test_need.sh,$(BUILD)/redis-server gcc git=git)
$(call needs,tests/tools/test_misra.sh,misra)
$(call needs,tests/tools/test_size.sh,compiler/arm-none-eabi-gcc)
$(call needs,tests/tools/test_fresh.sh,mmdebstrap git=git)
TEST_CFLAGS = $(LIB_CFLAGS) -Itests -D_DEFAULT_SOURCE
FRAME := $(BUILD)/tests/check.o $(BUILD)/tests/check_host.o
SUPPORT := $(BUILD)/tests/support/support.a

$(BUILD)/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $<

UNIT := $(patsubst tests/unit/test_%.c,$(BUILD)/tests/unit/test_%,$(wildcard tests/unit/test_*.c)) $(BUILD)/tests/unit/test_one_task
SUITES += $(UNIT)

$(BUILD)/tests/unit/test_unpack: $(BUILD)/tests/sim/sha1.o

comma := ,

# One suite in several files; its fixture is that of two others, too.
ENGINE_TESTS := $(wildcard tests/unit/engine_*.c)
$(BUILD)/tests/unit/test_engine: $(ENGINE_TESTS:%.c=$(BUILD)/%.o)
$(addprefix $(BUILD)/tests/unit/test_,abandon credentials downgrade events hashes keeper keys links share topology work): $(BUILD)/tests/unit/engine_fixture.o
$(addprefix $(BUILD)/tests/unit/test_,credentials events keeper links topology): $(BUILD)/tests/unit/follow_fixture.o

# The judge of the tests that let clients contend.
$(BUILD)/tests/unit/test_history: $(BUILD)/tests/support/history.o

# What stands in front of the library is taken in place of what that has.
$(BUILD)/tests/unit/test_hashes: $(BUILD)/lock/scripts/hashes.o

# It counts the calls between the library's files.
$(BUILD)/tests/unit/test_work: override LDFLAGS += $(addprefix -Wl$(comma)--wrap=,fairlock_schedule_next fairlock_handle_on_tick resp_write_raw)

# Its tasks do not end their sleep by themselves.
$(BUILD)/tests/unit/test_client: override LDFLAGS += -Wl$(comma)--wrap=port_event_wait

# The library of a program with one task (tests/sim builds it), and the engine's tests on that.
ONE_TASK_UNIT := $(addprefix $(BUILD)/tests/unit/test_,single single_long)
ONE_TASK_TESTS := $(patsubst %.c,$(BUILD)/one_task/%.o,$(ENGINE_TESTS) $(addprefix tests/unit/,test_engine.c engine_fixture.c))
$(ONE_TASK_TESTS): CPPFLAGS += -Itests -D_DEFAULT_SOURCE
$(ONE_TASK_TESTS): INCLUDES := -Iresp -Iport -Iport/single -Ilock

$(BUILD)/tests/unit/test_one_task: $(ONE_TASK_TESTS) $(FRAME)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(ONE_TASK_UNIT): %: %.o $(FRAME)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(filter-out %/test_one_task $(ONE_TASK_UNIT),$(UNIT)): %: %.o $(FRAME) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

# Every test, the demo and the benchmarks start $(BUILD)/redis-server, which runs the server that
# SERVER names, in the environment or as a make variable, or else the installed one. Debian's
# redis-tools holds that under another name, and, unlike the package redis-server, starts no
# service.
override SERVER := $(if $(findstring /,$(SERVER)),$(abspath $(SERVER)),$(SERVER))
export SERVER
INSTALLED_SERVER = $(BUILD)/servers/installed/redis-server
$(call needs,$(BUILD)/redis-server,redis-tools)

$(BUILD)/redis-server: Makefile
	@mkdir -p $(dir $(INSTALLED_SERVER))
	@sh tests/tools/need.sh $(NEEDS.$@)
	@ln -sf "$$(command -v redis-server || command -v redis-check-rdb || command -v valkey-server)" $(INSTALLED_SERVER)
	@printf '%s\n' '#!/bin/sh' 'exec "$${SERVER:-$(abspath $(INSTALLED_SERVER))}" "$$@"' >$@.new
	@chmod +x $@.new
	@mv -f $@.new $@

include $(wildcard tests/*/rules.mk boards/*/rules.mk)

.PHONY: packages
packages: ## install the Debian packages that `make test-all` needs
	@:

.PHONY: print-packages
print-packages:
	@echo $(call packages,$(or $(TARGET),$(patsubst NEEDS.%,%,$(filter NEEDS.%,$(.VARIABLES)))))

# The order of the suites: first the one that keeps a processor busy for a minute, which has to leave
# it to the others, because these sleep most of the time (unless NICE= says that others keep it busy,
# who would leave it nothing); then those that take a minute.
NICE := nice
BUSY := $(BUILD)/tests/sim/sim
SLOW := $(BUILD)/tests/failover/test_sentinel tests/command/test_lost.sh tests/command/test_descendants.sh \
  $(BUILD)/tests/failover/test_cluster tests/command/test_topology.sh \
  $(BUILD)/tests/server/test_rotation \
  $(BUILD)/tests/boards/test_faults $(BUILD)/tests/server/test_replies \
  $(BUILD)/tests/chaos/chaos $(COMPAT_TESTS) $(BUILD)/tests/python/compat

# `make test` shows in less than five minutes that this machine's build works. What only `make
# test-all` runs: tests of tests, tools, pages and figures; those that wait for minutes; boards,
# other compilers and other systems.
TESTS_OF_TESTS := $(FOUND_TEST) $(MODEL_TESTS) tests/bench/decode_cycles.sh \
  tests/fuzz/names.sh $(PAGES_TEST) $(SITE_TEST) $(OPERATORS_TEST) \
  $(ABI_TEST) $(DIST_TEST) $(DIFFERENTIAL) $(SOAK_TEST) $(DEMO_TEST) \
  $(CONFORMANCE)/faulty $(BUILD)/tests/failover/test_contest
LONG_WAITS := $(MODEM_LONG) $(addprefix tests/command/test_,lost.sh server.sh topology.sh) tests/demo/check.sh $(COMPAT_TESTS) \
  $(addprefix $(BUILD)/tests/failover/,test_sentinel test_cluster test_shared test_url test_moves)
OTHER_BUILDS := $(BUILD)/tests/boards/test_lwip $(ON_TARGET) $(QEMU_TESTS) $(IMAGE_TESTS) \
  $(LIBRARY_TEST) $(CXX_TEST) $(NAMES_TEST) $(CORE_TEST) $(STATIC_TEST) $(SYSTEMS_TEST) $(CMAKE_TEST) $(NUTTX_TEST) $(RIOT_TESTS) $(DEB_TEST) $(ZEPHYR_TESTS) $(ARDUINO_TESTS) $(PLUS_TCP_TESTS) $(NETX_TESTS) tests/command/test_plain.sh
ONLY_ALL := $(TESTS_OF_TESTS) $(LONG_WAITS) $(OTHER_BUILDS)

# What needs the tools of another language.
LANGUAGE_TESTS := $(PYTHON_TESTS) $(NODE_TESTS) $(GO_TESTS) $(RUST_TESTS) $(LANGUAGES_TEST)

# What CI does not run, but a release asks for: suites that find no mutant that no other one finds
# (tests/mutants/README.md), and those of what changes seldom. test_rotation has a part in `make test`.
ONLY_RELEASE := $(SOCKETS)/threads \
  $(filter-out tests/tools/test_layers.sh,$(wildcard tests/tools/test_*.sh)) $(MICROPYTHON_TESTS) $(DOCS_TEST) $(RELEASE_TEST)
NOT_FIRST := $(ONLY_ALL) $(LANGUAGE_TESTS) $(ONLY_RELEASE)
$(if $(filter-out $(SUITES),$(NOT_FIRST)),$(error no suites: $(filter-out $(SUITES),$(NOT_FIRST))))

# `make test` has a part of the first two and of those of compat, and 40 s of the chaos.
PARTED := $(addprefix $(BUILD)/tests/failover/,test_sentinel test_cluster)
IN_ORDER = $(patsubst %,$(if $(NICE),"$(NICE) %",%),$(filter $1,$(BUSY))) $(filter $1,$(SLOW)) $(filter-out $(BUSY) $(SLOW),$1)
TESTED := $(call IN_ORDER,$(filter-out $(NOT_FIRST),$(SUITES))) $(PARTED:%="% killed_master") $(COMPAT_SHORT)
TESTED_ALL := "env TIME=120 $(CHAOS)" $(call IN_ORDER,$(ONLY_ALL))
TESTED_RELEASE := "env ROTATIONS=100 $(BUILD)/tests/server/test_rotation" $(call IN_ORDER,$(ONLY_RELEASE))
PARALLEL = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j2)

# PART=words: the suites with one of these words in their path, as in tests/.
PART_SUITES := $(strip $(foreach suite,$(SUITES),$(if $(strip $(foreach word,$(PART),$(findstring $(word),$(suite:$(BUILD)/%=%)))),$(suite))))
$(if $(PART),$(if $(PART_SUITES),,$(error no suite has $(PART) in its path)))
$(call needs,test test-busy,$(or $(PART_SUITES),$(filter-out $(NOT_FIRST),$(SUITES)) $(PARTED) $(COMPAT_TESTS)))
$(call needs,test-rest,$(ONLY_ALL) $(CHAOS))
$(call needs,test-languages,$(LANGUAGE_TESTS))
$(call needs,test-release,$(ONLY_RELEASE) $(BUILD)/redis-server)
$(call needs,test-all packages,test test-rest test-languages model mutants-changed test-release)

.PHONY: test
test: ## see that this machine's build works, in less than 5 minutes; PART=words: the suites whose path in tests/ has one of these words, as in PART=server/
	@echo "building the suites"
ifdef PART
	@$(MAKE) --no-print-directory -s $(PARALLEL) all $(PART_SUITES) $(BUILD)/redis-server
	@sh tests/tools/run.sh $(call IN_ORDER,$(PART_SUITES))
else
	@$(MAKE) --no-print-directory -s $(PARALLEL) all $(filter-out $(NOT_FIRST),$(SUITES)) $(PARTED) $(COMPAT_CLIENTS) $(BUILD)/redis-server
	@JOBS=$${JOBS:-6} sh tests/tools/run.sh $(TESTED)
endif

.PHONY: test-all
test-all: test ## all suites: `make test`, then boards, the model, mutants, tests of tests, long waits, chaos
	@$(MAKE) --no-print-directory test-rest
	@$(MAKE) --no-print-directory test-languages
	@$(MAKE) --no-print-directory model
	@$(MAKE) --no-print-directory mutants-changed
	@$(MAKE) --no-print-directory test-release

.PHONY: test-rest
test-rest: ## what `make test-all` runs after `make test`
	@echo "building the other suites"
	@$(MAKE) --no-print-directory -s $(PARALLEL) $(ONLY_ALL) $(CHAOS)
	@JOBS=$${JOBS:-6} sh tests/tools/run.sh $(TESTED_ALL)

.PHONY: test-languages
test-languages: ## the suites of the packages for Python, Node, Go and Rust
	@$(MAKE) --no-print-directory -s $(PARALLEL) all $(LANGUAGE_TESTS)
	@JOBS=$${JOBS:-4} sh tests/tools/run.sh $(call IN_ORDER,$(LANGUAGE_TESTS))

.PHONY: test-release
test-release: ## what `make test-all` runs last, and CI does not
	@$(MAKE) --no-print-directory -s $(PARALLEL) all $(ONLY_RELEASE) $(BUILD)/tests/server/test_rotation
	@JOBS=$${JOBS:-6} sh tests/tools/run.sh $(TESTED_RELEASE)

.PHONY: test-busy
test-busy: ## see that no test depends on speed: `make test`, or TARGET=, with all cores busy, and on one; ROUNDS="busy one" for fewer
	@MAKE="$(MAKE)" sh tests/tools/busy.sh $(TARGET)

# For those that run at the same time afterwards, and must find what they share.
$(call needs,suites,test test-rest mutants-changed)

.PHONY: suites
suites:
	@$(MAKE) --no-print-directory -s $(PARALLEL) all $(filter-out $(ONLY_RELEASE) $(LANGUAGE_TESTS),$(SUITES)) $(FINDERS) $(PARTED) $(COMPAT_CLIENTS) $(INTEROP_PROGRAMS) $(BUILD)/redis-server

# What needs nothing but a Debian, tried on one that has nothing else. It is kept in $(FRESH).
FRESH := $(BUILD)/fresh
RELEASE ?= bookworm

$(call needs,fresh,mmdebstrap)

.PHONY: fresh
fresh: ## try this commit on a minimal Debian, RELEASE=: all that README.md says to type, and make test, or TARGET="words of one make"
	@RELEASE=$(RELEASE) sh tests/tools/fresh.sh $(FRESH) $(if $(TARGET),'$(TARGET)',README.md test)

.PHONY: unit
unit: $(UNIT) ## run the unit tests alone
	@sh tests/tools/run.sh $(UNIT)

# After each edit: all that is quick. test_port waits in real time, and the sweep's pairs of faults
# take long.
CHECKED = $(filter-out %/test_port,$(UNIT)) $(VERSION_TEST) $(BUILD)/tests/sim/sim $(BUILD)/tests/sim/test_sweep
$(call needs,check,$(CHECKED) tests/server/test_generated.sh)

.PHONY: check
check: ## after each edit, within 20 s: compile, quick unit suites, a few simulated worlds, layout, what is generated, mutants that apply
	@$(MAKE) --no-print-directory -s $(PARALLEL) all $(CHECKED)
	@QUIET=1 sh tests/tools/run.sh $(filter-out $(BUILD)/tests/sim/%,$(CHECKED)) tests/server/test_generated.sh $(APPLY_TEST) \
	  $(if $(wildcard .git),$(if $(shell command -v clang-format),tests/tools/format.sh)) \
	  "$(BUILD)/tests/sim/test_sweep each operation" $(foreach seed,1 2 3 4 5 6 7 8,"$(BUILD)/tests/sim/sim seed $(seed)")

# After a change of lock/, besides the suites themselves.
$(call needs,check-lock,soak mutants-changed $(SERVER_TESTS) chaos coverage)

.PHONY: check-lock
check-lock: ## after a change of lock/, within half an hour: soak, mutants, a real server, chaos, coverage
	@for target in "soak TIME=300" mutants-changed "test PART=tests/server/" chaos coverage; do \
	  echo "### make $$target"; $(MAKE) --no-print-directory $$target || exit 1; done

# The suites again under the sanitizers and valgrind, each with a build of its own. Races need
# threads, so TSan gets the suites that start some. Valgrind, 30 times slower, gets the unit suites. It
# runs one thread at a time, and must be told to let the others have their turn.
THREADED := $(notdir $(basename $(wildcard tests/languages/test_service*.c) $(shell grep -l pthread_create tests/unit/*.c tests/server/*.c tests/tls/*.c))) threads
SANITIZABLE = $(filter $(addprefix $(BUILD)/tests/,unit/% server/% tls/% languages/%),$(SUITES))
SANITIZED_asan = $(filter-out $(ONLY_RELEASE),$(SANITIZABLE))
SANITIZED_tsan = $(foreach suite,$(SANITIZABLE),$(if $(filter $(THREADED),$(notdir $(suite))),$(suite)))
SANITIZED_valgrind = $(UNIT)
SANITIZED = $(SANITIZED_$(SANITIZER))
$(foreach sanitizer,asan tsan valgrind,$(call needs,sanitize-$(sanitizer),$(SANITIZED_$(sanitizer))))
$(call needs,sanitize-valgrind,valgrind)
$(call needs,sanitize,sanitize-asan sanitize-tsan sanitize-valgrind)

sanitize-%: $(BUILD)/redis-server
	@$(MAKE) --no-print-directory sanitized BUILD=$(BUILD)/$* RUNNER="$(RUNNER_$*)" \
	  CFLAGS="-g -fno-omit-frame-pointer -include tests/asserts.h $(CFLAGS_$*)" SANITIZER=$*

CFLAGS_asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
CFLAGS_tsan := -O1 -fsanitize=thread
CFLAGS_valgrind := -O1
RUNNER_valgrind := valgrind -q --fair-sched=yes --error-exitcode=99 --leak-check=full --child-silent-after-fork=yes

.PHONY: sanitized
sanitized:
	@$(MAKE) --no-print-directory -s $(PARALLEL) $(SANITIZED) $(BUILD)/redis-server
	@echo "== with $(SANITIZER)"
	@JOBS=$${JOBS:-$(if $(RUNNER),2,6)} TSAN_OPTIONS=halt_on_error=1 RUNNER="$(RUNNER)" sh tests/tools/run.sh $(call IN_ORDER,$(SANITIZED))

.PHONY: sanitize
sanitize: ## run the suites with ASan and UBSan, with TSan, and in valgrind
	@$(MAKE) --no-print-directory sanitize-asan
	@$(MAKE) --no-print-directory sanitize-tsan
	@$(MAKE) --no-print-directory sanitize-valgrind

# It compiles all there is, and makes the sources that that needs.
$(call needs,lint,clang clang-tidy clang-format cppcheck shellcheck firmware freertos loops bearssl-library mbedtls-library \
  openssl-library $(BUILD)/tests/sim/sim $(BUILD)/tests/peers/contender)

.PHONY: lint
lint: ## compile with gcc and clang, analyse, and check the layout of the sources
	@sh tests/tools/lint.sh

$(call needs,misra,cppcheck)

.PHONY: misra
misra: ## count deviations from MISRA C:2012 in resp/ and lock/; clearly more than tests/MISRA.md has fail
	@sh tests/tools/misra.sh

$(call needs,format,clang-format)

.PHONY: format
format: ## lay out the C sources
	@clang-format -i $$(sh tests/tools/sources.sh '*.c' '*.h' '*.hpp' '*.cpp' 'boards/*.cc')

# The other processors: their stack alone.
STACK_OF = sh tests/tools/stack.sh $1 $(shell sed -n 's/^CPU := //p' boards/$2/board.mk)

.PHONY: size
size: ## print flash, RAM, stack, and what changed since the last commit, for this machine and, with its compiler installed, Cortex-M3, whose growth by more than 2 %, or 64 bytes since the last release, fails; the stack for Cortex-M0 and RISC-V, too
	@sh tests/tools/size.sh $(CC)
	@mkdir -p $(BUILD) && : >$(BUILD)/compared.txt
	@if command -v arm-none-eabi-gcc >/dev/null; then \
	  sh tests/tools/size.sh arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb >$(BUILD)/size.txt; status=$$?; \
	  cat $(BUILD)/size.txt; [ $$status -eq 0 ] && \
	  sh tests/tools/check_size.sh $(BUILD)/size.txt "$$(arm-none-eabi-gcc -dumpfullversion)" >$(BUILD)/compared.txt; \
	  status=$$?; cat $(BUILD)/compared.txt; [ $$status -eq 0 ] && \
	  echo "Cortex-M0" && $(call STACK_OF,arm-none-eabi-gcc,mps2-an385-m0); \
	else echo "Cortex-M3 and M0: install $(NEEDS.compiler/arm-none-eabi-gcc)"; fi
	@if command -v riscv64-unknown-elf-gcc >/dev/null; then \
	  echo "RISC-V" && $(call STACK_OF,riscv64-unknown-elf-gcc,riscv-virt); \
	else echo "RISC-V: install $(NEEDS.compiler/riscv64-unknown-elf-gcc)"; fi
	@grep 'not compared' $(BUILD)/compared.txt || : # again, at the end

.PHONY: scripts
scripts: ## write lock/scripts.c and lock/scripts/hashes.h anew from lock/scripts/*.lua
	@mkdir -p $(BUILD)
	sh lock/scripts/generate.sh > $(BUILD)/scripts.c.new && mv $(BUILD)/scripts.c.new lock/scripts.c
	sh lock/scripts/generate.sh hashes > $(BUILD)/hashes.h.new && mv $(BUILD)/hashes.h.new lock/scripts/hashes.h

# What help lists; the rest is by help-all, whose last part but one is the suites of one part.
FIRST := all demo install core firmware check test help-all
TO_USE := demo board-demo all install uninstall deb core firmware arduino rust python wasm node go uart-bridge loops conformance-peer test clean
TO_CHANGE := check check-lock unit lint test-all fresh format size docs site scripts packages help help-all
TO_RELEASE := release-check test-release test-busy abi bench-peers corpus demo-picture dist dist-check failover-soak misra mutants mutants-found size-boards soak
TARGETS := sed -n 's/^\([a-z][a-z-]*\):.*\#\# /\1\t/p' $(MAKEFILE_LIST) | sort -u
AS_LIST := while IFS="$$(printf '\t')" read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done
list = for name in $1; do $(TARGETS) | grep "^$$name$$(printf '\t')"; done | $(AS_LIST)

.PHONY: help
help: ## list what most need first
	@$(call list,$(FIRST))
	@echo 'A target that needs packages says which and installs them; with INSTALL=0 it stops and says how.'

.PHONY: help-all
help-all: ## list all targets
	@echo 'To see it and to use it:'
	@$(call list,$(TO_USE))
	@echo 'To change it (.github/CONTRIBUTING.md says which when):'
	@$(call list,$(TO_CHANGE))
	@echo 'To change it, the suites of one part; the others by make test PART=:'
	@$(TARGETS) | grep -vE "^($(subst $() ,|,$(TO_USE) $(TO_CHANGE) $(TO_RELEASE)))$$(printf '\t')" | $(AS_LIST)
	@echo 'To release it:'
	@$(call list,$(TO_RELEASE))

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BUILD)

# Not when make only looks (-n, -p with -q, -t), nor again in the makes that this one starts. An
# INSTALL=0 that make was told is not in the environment of $(shell).
LOOKS := $(foreach letter,n q t,$(findstring $(letter),$(filter-out --%,$(firstword -$(MAKEFLAGS)))))
ASK := $(if $(strip $(LOOKS)),,$(filter-out $(PACKAGES_ASKED),$(call packages,$(foreach goal,$(GOALS),$(NEEDS.$(goal))))))
$(if $(ASK),$(if $(filter-out 0,$(shell INSTALL='$(INSTALL)' sh tests/tools/need.sh $(ASK) >&2; echo $$?)),\
  $(error not without these packages)))
export PACKAGES_ASKED += $(ASK)

-include $(shell find $(BUILD) -path $(FRESH) -prune -o -type f -name '*.d' -print 2>/dev/null)
