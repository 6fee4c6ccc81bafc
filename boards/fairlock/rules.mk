# SPDX-License-Identifier: Apache-2.0
# Installing the fairlock command together with the library. INSTALL=0 speaks of Debian's packages.
INSTALL ?= install
INSTALLER = $(if $(filter 0,$(INSTALL)),install,$(INSTALL))

# Where to: each below PREFIX, unless it begins with a /.
BINDIR ?= bin
LIBDIR ?= lib
INCLUDEDIR ?= include
DATADIR ?= share
MANDIR ?= $(DATADIR)/man

# A path may have spaces, at which make's own functions would split it: hide replaces them meanwhile.
# quote is for the shell, and text for what sed puts in.
space := $(subst ,, )
hide = $(subst $(space),@space@,$1)
show = $(subst @space@,$(space),$1)
quote = '$(subst ','\'',$1)'
text = $(subst |,\|,$(subst &,\&,$(subst \,\\,$1)))
joined = $(abspath $(if $(filter /%,$(call hide,$1)),$(call hide,$1),$(call hide,$(PREFIX)/$1)))
place = $(call show,$(call joined,$1))

TO_BIN = $(call quote,$(DESTDIR)$(call place,$(BINDIR)))
TO_LIB = $(call quote,$(DESTDIR)$(call place,$(LIBDIR)))
TO_PKGCONFIG = $(TO_LIB)/pkgconfig
TO_CMAKE = $(TO_LIB)/cmake/fairlock
TO_INCLUDE = $(call quote,$(DESTDIR)$(call place,$(INCLUDEDIR))/fairlock)
TO_MAN = $(call quote,$(DESTDIR)$(call place,$(MANDIR))/man1)
TO_BASH = $(call quote,$(DESTDIR)$(call place,$(DATADIR))/bash-completion/completions)
TO_ZSH = $(call quote,$(DESTDIR)$(call place,$(DATADIR))/zsh/site-functions)

PC_FILES := $(BUILD)/fairlock.pc $(if $(filter openssl,$(TLS)),$(BUILD)/fairlock-openssl.pc)
prefix = $(abspath $(call hide,$(PREFIX)))
in_prefix = $(call show,$(patsubst $(prefix)/%,$${prefix}/%,$(call joined,$1)))
put = -e $(call quote,s|@$1@|$(call text,$2)|)

$(BUILD)/%.pc: boards/fairlock/%.pc.in FORCE
	@mkdir -p $(@D)
	@sed $(call put,PREFIX,$(call show,$(prefix))) $(call put,LIBDIR,$(call in_prefix,$(LIBDIR))) \
	  $(call put,INCLUDEDIR,$(call in_prefix,$(INCLUDEDIR))) $(call put,VERSION,$(VERSION)) $< > $@

# For find_package() of CMake.
CMAKE_FILES := $(BUILD)/fairlockConfig.cmake $(BUILD)/fairlockConfigVersion.cmake

$(BUILD)/%.cmake: boards/cmake/%.cmake.in FORCE
	@mkdir -p $(@D)
	@sed $(call put,LIBDIR,$(call place,$(LIBDIR))) $(call put,INCLUDEDIR,$(call place,$(INCLUDEDIR))) \
	  $(call put,VERSION,$(VERSION)) $< > $@

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
