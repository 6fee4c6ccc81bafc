# SPDX-License-Identifier: Apache-2.0
# Makes doxygen's comments of a header's plain ones, line by line, so that the numbers of lines stay:
# awk -f filter.awk HEADER
#
# The first comment is the file's. One above a line is for that line, and for those that follow it
# up to the next empty line; one behind a line is for that line, also if it goes on below it. Lines of
# a comment that are indented stay as they are laid out. What a comment calls private is left out: a
# whole struct, or the rest of one.

/^\/\* SPDX-License-Identifier: / {
  print ""
  next
}

# The lines from the one after the comment at their beginning.
function after_comment(i) {
  if (lines[1] !~ /^ *\/\*/) return 1
  for (i = 1; lines[i] !~ /\*\/$/; i++) text = text lines[i]
  text = text lines[i]
  return i + 1
}

# Whether these lines have two declarations or more.
function declares_several(from, i, several) {
  for (i = from; i <= count; i++) {
    if (lines[i] ~ /\{|^#(if|else|endif|include)/) return 0
    if (lines[i] ~ /;( *\/\*.*\*\/)?$/ || lines[i] ~ /^#define/) several++
  }
  return several > 1
}

# Whether line i, of a comment, is indented.
function indented(i) {
  return lines[i] ~ /^ *\*  +[^ ]/
}

function mark_layout(end, i, within) {
  for (i = 2; i < end; i++) {
    if (!indented(i)) {
      within = 0
      continue
    }
    if (!within) lines[i - 1] = lines[i - 1] " @verbatim"
    within = 1
    if (!indented(i + 1)) lines[i] = lines[i] " @endverbatim"
    sub(/\*/, " ", lines[i])
  }
}

# Prints what has come since the last empty line, or the last line with a brace.
function paragraph(i, from, hide, open) {
  if (count == 0) return
  text = ""
  from = after_comment()
  mark_layout(from - 1)
  if (!began) {
    sub(/^\/\*/, "/** @file", lines[1])
  } else if (from > 1 && declares_several(from)) {
    sub(/\/\*/, "/**@{*/ /**", lines[1])
    ending = "/**@}*/ " ending
  }
  if (from == 1 && in_enum && lines[1] !~ /\{$/) {
    # which doxygen 1.9 lets pass
    for (i = 1; i <= count; i++) {
      if (lines[i] ~ /\/\*/) open = 1
      else if (!open) lines[i] = lines[i] " /**< @has_no_comment */"
      if (lines[i] ~ /\*\/$/) open = 0
    }
  }
  in_enum = lines[count] ~ /^enum .*\{$/ || in_enum
  began = 1
  hide = lines[count] ~ /^struct .*\{$/ ? text ~ /[Pp]rivate/ : text ~ /(rest|All) is private/
  if (hide && !hidden) {
    hidden = 1
    i = text ~ /^ *\/\* the rest is private/ ? 1 : count
    if (i == 1) lines[1] = "/** @cond */ " lines[1]
    else lines[i] = lines[i] " /** @cond */"
  }
  for (i = 1; i <= count; i++) {
    sub(/^ *\/\*( |$)/, "/** ", lines[i])
    if (lines[i] ~ /[^ ] +\/\* /) sub(/\/\* /, "/**< ", lines[i])
    print lines[i]
  }
  count = 0
}

# A line that ends what came before.
function close_with(line) {
  paragraph()
  print ending line
  ending = ""
}

/^$/ { close_with(""); next }
/^};/ {
  paragraph()
  if (hidden) ending = ending "/** @endcond */ "
  hidden = in_enum = 0
  close_with($0)
  next
}
{ lines[++count] = $0 }
/^(struct|enum) .*\{$/ { paragraph() }
END { paragraph() }
