# Installing the fairlock command together with the library. INSTALL=0 speaks of Debian's packages.
INSTALL ?= install
INSTALLER = $(if $(filter 0,$(INSTALL)),install,$(INSTALL))
INSTALLED = $(DESTDIR)$(PREFIX)

PC_FILES := $(BUILD)/fairlock.pc $(if $(filter openssl,$(TLS)),$(BUILD)/fairlock-openssl.pc)

$(BUILD)/%.pc: boards/fairlock/%.pc.in FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(abspath $(PREFIX))|' -e 's|@VERSION@|$(VERSION)|' $< > $@

# For find_package() of CMake.
CMAKE_FILES := boards/cmake/fairlockConfig.cmake $(BUILD)/fairlockConfigVersion.cmake

$(BUILD)/%.cmake: boards/cmake/%.cmake.in FORCE
	@mkdir -p $(@D)
	@sed 's|@VERSION@|$(VERSION)|' $< > $@

.PHONY: FORCE
FORCE:

.PHONY: install
install: all $(PC_FILES) $(CMAKE_FILES) ## install headers, library, command, man page and completions below PREFIX (and DESTDIR)
	$(INSTALLER) -d $(INSTALLED)/bin $(INSTALLED)/lib/pkgconfig $(INSTALLED)/lib/cmake/fairlock
	$(INSTALLER) -d $(INSTALLED)/include/fairlock $(INSTALLED)/share/man/man1
	$(INSTALLER) -m 755 $(BUILD)/fairlock $(INSTALLED)/bin/fairlock
	$(INSTALLER) -m 644 $(BUILD)/liblock.a $(INSTALLED)/lib/liblock.a
	$(INSTALLER) -m 644 $(PC_FILES) $(INSTALLED)/lib/pkgconfig
	$(INSTALLER) -m 644 $(CMAKE_FILES) $(INSTALLED)/lib/cmake/fairlock
	$(INSTALLER) -m 644 $(HEADERS) $(INSTALLED)/include/fairlock
	$(INSTALLER) -m 644 boards/fairlock/fairlock.1 $(INSTALLED)/share/man/man1/fairlock.1
	$(INSTALLER) -d $(INSTALLED)/share/bash-completion/completions $(INSTALLED)/share/zsh/site-functions
	$(INSTALLER) -m 644 boards/fairlock/completion.bash $(INSTALLED)/share/bash-completion/completions/fairlock
	$(INSTALLER) -m 644 boards/fairlock/_fairlock $(INSTALLED)/share/zsh/site-functions/_fairlock

.PHONY: uninstall
uninstall: ## remove what install put there
	rm -f $(INSTALLED)/bin/fairlock $(INSTALLED)/lib/liblock.a $(INSTALLED)/lib/pkgconfig/fairlock*.pc
	rm -f $(INSTALLED)/share/bash-completion/completions/fairlock $(INSTALLED)/share/zsh/site-functions/_fairlock
	rm -f $(INSTALLED)/share/man/man1/fairlock.1 $(addprefix $(INSTALLED)/include/fairlock/,$(notdir $(HEADERS)) port_openssl.h)
	rm -f $(addprefix $(INSTALLED)/lib/cmake/fairlock/,$(notdir $(CMAKE_FILES)))
	-rmdir $(INSTALLED)/include/fairlock $(INSTALLED)/lib/cmake/fairlock 2>/dev/null || true
