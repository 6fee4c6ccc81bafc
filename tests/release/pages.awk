# SPDX-License-Identifier: Apache-2.0
# What the code blocks of a page say: awk -v want=commands|c|cmake|kinds -f pages.awk PAGE commands:
# each line of the blocks without a kind, less the comment behind it; lines that are indented go on
# with the one before. c, cmake: the blocks of that kind. kinds: each block's kind, and whether it
# was ended.
/^```/ {
  if (inside) {
    end_command()
    inside = 0
    next
  }
  inside = 1
  kind = substr($0, 4)
  if (want == "kinds") print kind
  next
}
!inside { next }
want == kind { print }
want == "commands" && kind == "" {
  go_on = /^ /
  sub(/^ +/, "")
  sub(/  +#.*/, "")
  if (go_on) command = command " " $0
  else {
    end_command()
    command = $0
  }
}
END {
  if (inside) print "a block without an end"
}
function end_command() {
  if (command != "") print command
  command = ""
}
