# SPDX-License-Identifier: Apache-2.0
# The worst stack along gcc's call graphs, calls through pointers included:
#
#   awk -f stack.awk -v roots="NAME..." [-v without="FILE.c..."] [-v whole=1] [-v image=1] [-v check=1] \
#     CALLS.txt... [NAMES.taken] [NAMES.linked] [IMAGE.map] FILE.ci...
#
# from the top folder, because the source is looked at. The graphs are those of -fcallgraph-info=su.
# Prints "call NAME BYTES" for each root, and "outside NAME BYTES" for what has no frame here: how
# deep the stack is where it is called. What is wrong is told on stderr, and fails: a frame whose size
# is not fixed, recursion, a call through a pointer that no list has.
#
# lock/calls.txt describes the lists. The options:
#   without  files of functions that are not called through a pointer, as the program does not use them
#   whole    the graphs are all that the lists are about: whatever a list names has to exist, and each
#            call through a pointer has to be listed, whether a root reaches it or not
#   check    only whether what the lists name exists; the graphs may be those of several programs
#   image    the graphs are all of a program: what has no frame fails, unless a list has it, and the
#            compiler's own functions, which no graph shows, are added, by the map's members of libgcc
# .taken: functions whose address is taken, "FILE.c NAME" a line; each has to be a target somewhere.
# .linked: the functions that are in the program, one a line, static ones as FILE.c:NAME where their file
# is known; others are not called through pointers.

function bad(text) {
  print "stack: " text | "cat >&2"
  failed = 1
}

function trim(text) {
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return text
}

# The name as the lists have it: static functions as FILE.c:NAME, without the folder.
function short(title) {
  sub(/^.*\//, "", title)
  return title
}

FILENAME ~ /\.txt$/ {
  if (/^#/ || NF == 0) next
  fields = split($0, field, "|")
  if (fields != 3) {
    bad(FILENAME ": three fields, please: " $0)
    next
  }
  key = trim(field[1]) " " trim(field[2])
  if (trim(field[2]) == "frame") frame_of[trim(field[1])] = trim(field[3]) + 0
  else if (key in targets) bad(FILENAME ": twice: " key)
  else {
    targets[key] = trim(field[3])
    list_of[key] = FILENAME
  }
  next
}

FILENAME ~ /\.taken$/ {
  taken[$1 ":" $2] = $2
  next
}

FILENAME ~ /\.linked$/ {
  linked[$1] = 1
  some_linked = 1
  next
}

FILENAME ~ /\.map$/ {
  while (match($0, /libgcc\.a\([^)]*\)/)) {
    own_of_compiler[substr($0, RSTART, RLENGTH)] = 1
    $0 = substr($0, RSTART + RLENGTH)
  }
  next
}

/^node:/ {
  split($0, field, "\"")
  title = field[2]
  if (match(field[4], /[0-9]+ bytes \([^)]*\)/)) {
    text = substr(field[4], RSTART, RLENGTH)
    if (!check && ((title in own) || ((short(title) in full) && full[short(title)] != title)))
      bad("two functions are called " short(title))
    own[title] = text + 0
    if (text !~ /\(static\)/) bad(title ": a frame whose size is not fixed: " text)
    full[short(title)] = title
  }
  next
}

/^edge:/ {
  split($0, field, "\"")
  if (field[4] == "__indirect_call") {
    key = named(field[6], field[2])
    found[key] = field[6]
    if (!((field[2], key) in seen)) pointers[field[2]] = pointers[field[2]] "\n" key
    seen[field[2], key] = 1
  } else if (!((field[2], field[4]) in seen)) {
    seen[field[2], field[4]] = 1
    callees[field[2]] = callees[field[2]] "\n" field[4]
  }
  next
}

# The call at FILE:LINE:COLUMN as the lists name it: "FILE.c:FUNCTION POINTER", both as written in the
# source, whatever the compiler has put where. The function is what begins at the line's beginning. What
# is inline in a header counts as a function of the file that uses it.
function named(place, caller,  part, file, text, name) {
  split(place, part, ":")
  file = part[1]
  if (!(file in lines)) {
    lines[file] = 0
    while ((getline text <file) > 0) {
      source[file, ++lines[file]] = text
      if (text ~ /^[a-z][^;]*\(/ && text !~ /;$/) {
        name = text
        sub(/\(.*/, "", name)
        sub(/^.*[ *]/, "", name)
      }
      inside[file, lines[file]] = name
    }
    close(file)
  }
  text = substr(source[file, part[2]], part[3])
  sub(/\(.*/, "", text)
  sub(/^.*[>.]/, "", text)
  name = inside[file, part[2]]
  if (file ~ /\.h$/) {
    file = caller
    sub(/:[^:]*$/, "", file)
  }
  return short(file) ":" name " " text
}

# Whether a function is one that the program does not have.
function absent(title,  n, i, file, name) {
  name = short(title)
  n = split(without, file, " ")
  for (i = 1; i <= n; i++) if (index(name, file[i] ":") == 1) return 1
  if (name in linked) return 0
  sub(/^.*:/, "", name)
  return some_linked && !(name in linked)
}

# What a call may reach, a line each: of what is here, or, in the library, of what is the caller's.
function reached(key,  all, n, i, word, target, list) {
  if (!(key in targets)) {
    if (image || whole) missing[key] = 1
    return ""
  }
  n = split(targets[key], word, " ")
  for (i = 1; i <= n; i++) {
    target = word[i]
    if (target == "-") continue
    if (target ~ /^(caller|port):/) {
      if (image) list = list reached(target " any")
      else list = list "\n" target
    } else if ((target in full) && !absent(full[target])) list = list "\n" full[target]
  }
  return list
}

function all_callees(title,  n, i, key, list) {
  if (title in resolved) return resolved[title]
  list = callees[title]
  n = split(pointers[title], key, "\n")
  for (i = 2; i <= n; i++) list = list reached(key[i])
  return resolved[title] = list
}

function frame(title) {
  if (title in own) return own[title]
  if (title in frame_of) return frame_of[title]
  if (image) unknown[title] = 1
  return 0
}

# The deepest that the stack gets from here on.
function deepest(title,  list, n, i, depth, most) {
  if (title in worst) return worst[title]
  if (title in busy) {
    if (!(title in told)) bad("recursion: " title path(title))
    told[title] = 1
    return 0
  }
  busy[title] = 1
  trail[++level] = title
  n = split(all_callees(title), list, "\n")
  for (i = 2; i <= n; i++) {
    depth = deepest(list[i])
    if (depth > most) most = depth
  }
  level--
  delete busy[title]
  if (!(title in own)) outside[title] = 1
  return worst[title] = frame(title) + most
}

function path(title,  i, text) {
  for (i = level; i > 0 && trail[i] != title; i--) text = " < " trail[i] text
  return text
}

# How deep the stack is where `what` is called; -1: not from here.
function depth_of(what, title,  list, n, i, depth, most) {
  if (title == what) return 0
  if ((what, title) in depths) return depths[what, title]
  depths[what, title] = -1
  most = -1
  n = split(all_callees(title), list, "\n")
  for (i = 2; i <= n; i++) {
    depth = depth_of(what, list[i])
    if (depth > most) most = depth
  }
  return depths[what, title] = most < 0 ? -1 : frame(title) + most
}

END {
  count = split(roots, root, " ")
  for (i = 1; i <= count; i++) {
    title = full[root[i]]
    if (title == "") bad("no function is called " root[i])
    else print "call", root[i], deepest(title) + 0
  }
  if (whole || check) {
    for (key in targets) {
      if (!(key in found) && key !~ /^(caller|port):[a-z]* any$/) bad(list_of[key] ": no such call any more: " key)
      n = split(targets[key], word, " ")
      for (i = 1; i <= n; i++) {
        is_target[word[i]] = 1
        if (word[i] !~ /^(caller|port):/ && word[i] != "-" && !(word[i] in full))
          bad(list_of[key] ": no such function: " word[i])
      }
    }
  }
  if (whole) {
    for (key in found) if (!(key in targets)) missing[key] = 1
    for (name in taken) {
      known = name in full ? name : taken[name]
      if ((known in full) && !(known in is_target)) bad("its address is taken, and no list has it as a target: " known)
    }
  }
  for (key in missing) bad("a call through a pointer that no list has: " key " (" found[key] ")")
  for (title in unknown) bad("its frame is not known: " title)
  if (image) {
    for (name in own_of_compiler) {
      if (!(name in frame_of)) bad("its frame is not known: " name)
      compiler += frame_of[name]
    }
    print "compiler", compiler + 0
  } else if (!failed && !check) {
    for (name in outside) {
      most = -1
      for (i = 1; i <= count; i++) {
        depth = depth_of(name, full[root[i]])
        if (depth > most) most = depth
      }
      print "outside", name, most
    }
  }
  exit failed
}
