# SPDX-License-Identifier: Apache-2.0
# Shortens Lua sources for flash: no comments, no indentation, no spaces that Lua does not need, and
# local names of one or two letters, the same in every file. Lines stay, so that an error message
# leads to its place.
#
#     awk -v mode=names -f shorten.awk [program=NAME FILE...]...   prints "long short" for each local name
#     awk -v mode=names -v outer=NAMES -f shorten.awk ...          the same, for what comes behind files
#                                                                  whose names are those: keeps them.
#     awk -v mode=text -v names=NAMES -f shorten.awk FILE          prints FILE shortened, by that list
#
# With given=before, the words of a FILE count, but its names are given elsewhere; with given=behind, it
# comes behind others, and only the names of these are given here; given= ends that.
#
# A program is its files in the order in which they are put together. Few letters pack better than
# many: two names have the same one if, in each program, the last use of the one comes before the
# first of the other. So whatever either means where it is used, the other is not used there.
#
# It knows as much Lua as our scripts use: single quoted strings without escapes, comments that go
# to the end of the line, names after "local", in a function's parameters and before "in" or "=" of
# a for.

function declare(name) {
  if (given == "behind") own[program, name] = 1
  if (given) return
  if (name !~ /^[A-Za-z_][A-Za-z0-9_]*$/ || name in declared) return
  declared[name] = 1
  order[++count] = name
}

# Where the words of a line, outside of strings, stand in their program.
function note_words(line,  parts, n, i, code, word) {
  n = split(line, parts, "'")
  for (i = 1; i <= n; i += 2) {
    code = parts[i]
    while (match(code, /[A-Za-z_][A-Za-z0-9_]*/)) {
      word = substr(code, RSTART, RLENGTH)
      if (!((program, word) in first)) first[program, word] = NR + i / 100
      latest[program, word] = NR + (i + 1) / 100
      if (!given) uses[word]++
      used[word] = 1
      code = substr(code, RSTART + RLENGTH)
    }
  }
}

function meet(a, b,  p) {
  for (p in programs)
    if (!((p, a) in own) && !((p, b) in own) && (p, a) in first && (p, b) in first && first[p, a] <= latest[p, b] && first[p, b] <= latest[p, a]) return 1
  return 0
}

# The most used come first, and choose.
function sort_names(  i, j, name) {
  for (i = 2; i <= count; i++) {
    name = order[i]
    for (j = i - 1; j > 0 && uses[order[j]] < uses[name]; j--) order[j + 1] = order[j]
    order[j + 1] = name
  }
}

# Each name gets the first letter that no name has which it meets.
function name_all(  i, j, n) {
  sort_names()
  keep_outer()
  for (i = 1; i <= count; i++) {
    n = 0
    while (letters(n) in taken) n++
    for (j = 1; j < i; j++) {
      if (short[order[j]] == letters(n) && meet(order[i], order[j])) {
        do n++
        while (letters(n) in taken)
        j = 0
      }
    }
    short[order[i]] = letters(n)
    print order[i], short[order[i]]
  }
}

# What is used here and has a letter elsewhere keeps it, and nothing else has that. Two of those that
# have the same one, because they did not meet there, must not meet here.
function keep_outer(  name, other) {
  for (name in used) {
    if (!(name in outside) || name in declared) continue
    for (other in kept) {
      if (outside[other] == outside[name] && meet(name, other)) {
        print name " and " other " have the same letter" >"/dev/stderr"
        exit 1
      }
    }
    kept[name] = 1
    taken[outside[name]] = 1
    print name, outside[name]
  }
}

# In this order, of many that were tried, the text of acquire and release packs best.
function letters(n,  alphabet) {
  alphabet = "hWmtaApSLEZGHljDUVdsKvgPBxTrcQzqIYfbynoJieXwuNOFkMCR"
  return n < 52 ? substr(alphabet, n + 1, 1) : "a" substr(alphabet, n - 51, 1)
}

function declare_list(list,  parts, n, i) {
  gsub(/ /, "", list)
  n = split(list, parts, ",")
  for (i = 1; i <= n; i++) declare(parts[i])
}

function declarations(line) {
  if (match(line, /^local function [A-Za-z_]+/)) declare(substr(line, 16, RLENGTH - 15))
  else if (match(line, /^local [A-Za-z_, ]+/)) declare_list(substr(line, 7, RLENGTH - 6))
  if (match(line, /^for [A-Za-z_, ]+ (=|in) /)) {
    line = substr(line, 5, RLENGTH - 4)
    sub(/ (=|in) $/, "", line)
    declare_list(line)
  } else if (match(line, /function [A-Za-z_]+\([A-Za-z_, ]*\)/)) {
    line = substr(line, RSTART, RLENGTH - 1)
    sub(/.*\(/, "", line)
    declare_list(line)
  }
}

# A piece of a line outside of strings.
function shortened(code,  result, word, before) {
  result = ""
  while (match(code, /[A-Za-z_][A-Za-z0-9_]*/)) {
    before = substr(code, 1, RSTART - 1)
    word = substr(code, RSTART, RLENGTH)
    result = result before
    # ".name" is a field, not a local, unless the dots are "..", which joins strings
    if (result !~ /(^|[^.])\.$/ && word in short) word = short[word]
    result = result word
    code = substr(code, RSTART + RLENGTH)
  }
  result = result code
  while (match(result, / [^A-Za-z0-9_ ]/) || match(result, /[^A-Za-z0-9_ ] /)) {
    word = substr(result, RSTART, RLENGTH)
    gsub(/ /, "", word)
    result = substr(result, 1, RSTART - 1) word substr(result, RSTART + RLENGTH)
  }
  return result
}

BEGIN {
  while (outer != "" && (getline pair < outer) > 0) {
    split(pair, words, " ")
    outside[words[1]] = words[2]
  }
  while (mode == "text" && (getline pair < names) > 0) {
    split(pair, words, " ")
    short[words[1]] = words[2]
  }
}

{
  sub(/[ \t]*--.*$/, "")
  sub(/^[ \t]+/, "")
  if ($0 == "") next
  if (mode == "names") {
    programs[program] = 1
    declarations($0)
    note_words($0)
    next
  }
  n = split($0, parts, "'")
  line = ""
  for (i = 1; i <= n; i++) line = line (i % 2 ? shortened(parts[i]) : "'" parts[i] "'")
  print line
}

END {
  if (mode == "names") name_all()
}
