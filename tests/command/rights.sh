# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# The rights that lock/PRODUCTION.md gives a user, as arguments of ACL SETUSER: of a user "lock",
# whose password is pw, for locks whose names begin with "a".
rights_page=lock/PRODUCTION.md

# rights: those of every user
rights() {
  sed -n "/^redis-cli ACL SETUSER locks /{s/^redis-cli ACL SETUSER locks/lock/;s/job:/a/g;s/PASSWORD/pw/;s/'//g;p;q}" $rights_page
}

# more_rights BEGINNING: what the table adds, of the row whose rights begin so
more_rights() {
  sed -n "s/^| .* | \`\($1[^\`]*\)\`.*/\1/p" $rights_page | tr -d "\\\\"
}
