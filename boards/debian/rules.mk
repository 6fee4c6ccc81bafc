# SPDX-License-Identifier: Apache-2.0
# Debian packages: `fairlock`, the command with TLS, and `libfairlock-dev`, the library. They are
# made of the files here and all others of the project, in build/deb. The same files give the same
# bytes: the time in them is that of the commit, in a tarball of its files, or SOURCE_DATE_EPOCH.
DEB := $(BUILD)/deb
DEB_VERSION := $(subst -rc,~rc,$(VERSION))-1
DEB_TREE := $(DEB)/fairlock-$(VERSION)
$(call needs,deb,build-essential debhelper openssl-library)

.PHONY: deb
deb: ## make Debian packages of the command and of the library in build/deb
	@rm -rf $(DEB) && mkdir -p $(DEB_TREE)
	@sh tests/tools/sources.sh '*' | tar -cf - -T - | tar -xf - -C $(DEB_TREE)
	@cp -R $(DEB_TREE)/boards/debian $(DEB_TREE)/debian
	@time=$${SOURCE_DATE_EPOCH:-$$(if [ -e .git ]; then git log -1 --format=%ct; else stat -c %Y LICENSE; fi)}; \
	printf '%s\n' 'fairlock ($(DEB_VERSION)) unstable; urgency=medium' '' '  * See Changes in README.md.' '' \
	  " -- $$(sed -n 's/^Maintainer: //p' boards/debian/control)  $$(date -R -u -d "@$$time")" >$(DEB_TREE)/debian/changelog
	@cd $(DEB_TREE) && env -i PATH="$$PATH" LC_ALL=C.UTF-8 DEB_BUILD_OPTIONS="noautodbgsym $$DEB_BUILD_OPTIONS" \
	  dpkg-buildpackage -b -nc -us -uc -jauto
	@ls -l $(DEB)/*.deb
