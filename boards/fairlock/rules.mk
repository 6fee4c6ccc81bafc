# Installing the fairlock command together with the library. INSTALL=0 speaks of Debian's packages.
INSTALL ?= install
INSTALLER = $(if $(filter 0,$(INSTALL)),install,$(INSTALL))

# Where to: each below PREFIX, unless it begins with a /.
BINDIR ?= bin
LIBDIR ?= lib
INCLUDEDIR ?= include
DATADIR ?= share
MANDIR ?= $(DATADIR)/man
place = $(abspath $(if $(filter /%,$1),$1,$(PREFIX)/$1))

TO_BIN = $(DESTDIR)$(call place,$(BINDIR))
TO_LIB = $(DESTDIR)$(call place,$(LIBDIR))
TO_PKGCONFIG = $(TO_LIB)/pkgconfig
TO_CMAKE = $(TO_LIB)/cmake/fairlock
TO_INCLUDE = $(DESTDIR)$(call place,$(INCLUDEDIR))/fairlock
TO_MAN = $(DESTDIR)$(call place,$(MANDIR))/man1
TO_BASH = $(DESTDIR)$(call place,$(DATADIR))/bash-completion/completions
TO_ZSH = $(DESTDIR)$(call place,$(DATADIR))/zsh/site-functions

PC_FILES := $(BUILD)/fairlock.pc $(if $(filter openssl,$(TLS)),$(BUILD)/fairlock-openssl.pc)
in_prefix = $(patsubst $(abspath $(PREFIX))/%,$${prefix}/%,$(call place,$1))

$(BUILD)/%.pc: boards/fairlock/%.pc.in FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(abspath $(PREFIX))|' -e 's|@LIBDIR@|$(call in_prefix,$(LIBDIR))|' \
	  -e 's|@INCLUDEDIR@|$(call in_prefix,$(INCLUDEDIR))|' -e 's|@VERSION@|$(VERSION)|' $< > $@

# For find_package() of CMake.
CMAKE_FILES := $(BUILD)/fairlockConfig.cmake $(BUILD)/fairlockConfigVersion.cmake

$(BUILD)/%.cmake: boards/cmake/%.cmake.in FORCE
	@mkdir -p $(@D)
	@sed -e 's|@LIBDIR@|$(call place,$(LIBDIR))|' -e 's|@INCLUDEDIR@|$(call place,$(INCLUDEDIR))|' \
	  -e 's|@VERSION@|$(VERSION)|' $< > $@

.PHONY: FORCE
FORCE:

.PHONY: install
install: all $(PC_FILES) $(CMAKE_FILES) ## install headers, library, command, man page and completions below PREFIX (and DESTDIR), or where BINDIR, LIBDIR, INCLUDEDIR, DATADIR and MANDIR say
	$(INSTALLER) -d $(TO_BIN) $(TO_PKGCONFIG) $(TO_CMAKE) $(TO_INCLUDE) $(TO_MAN) $(TO_BASH) $(TO_ZSH)
	$(INSTALLER) -m 755 $(BUILD)/fairlock $(TO_BIN)/fairlock
	$(INSTALLER) -m 644 $(BUILD)/liblock.a $(TO_LIB)/liblock.a
	$(INSTALLER) -m 644 $(PC_FILES) $(TO_PKGCONFIG)
	$(INSTALLER) -m 644 $(CMAKE_FILES) $(TO_CMAKE)
	$(INSTALLER) -m 644 $(HEADERS) $(TO_INCLUDE)
	$(INSTALLER) -m 644 boards/fairlock/fairlock.1 $(TO_MAN)/fairlock.1
	$(INSTALLER) -m 644 boards/fairlock/completion.bash $(TO_BASH)/fairlock
	$(INSTALLER) -m 644 boards/fairlock/_fairlock $(TO_ZSH)/_fairlock

.PHONY: uninstall
uninstall: ## remove what install put there, told of the same folders
	rm -f $(TO_BIN)/fairlock $(TO_LIB)/liblock.a $(TO_MAN)/fairlock.1 $(TO_BASH)/fairlock $(TO_ZSH)/_fairlock
	rm -f $(addprefix $(TO_PKGCONFIG)/,fairlock.pc fairlock-openssl.pc) $(addprefix $(TO_CMAKE)/,$(notdir $(CMAKE_FILES)))
	rm -f $(addprefix $(TO_INCLUDE)/,$(notdir $(HEADERS)) port_openssl.h)
	-rmdir $(TO_INCLUDE) $(TO_CMAKE) 2>/dev/null || true
