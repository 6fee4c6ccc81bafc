# SPDX-License-Identifier: Apache-2.0
# Packs text for flash by byte pairs. The pair of bytes that occurs most often is replaced by a code
# of its own, a byte that is no character of ours, then the next pair, which may hold codes, until
# there is nothing to gain or there are no codes left. Then the text is put together anew from as few
# codes as possible, and codes that occur seldom in it make room for others.
#
#     awk -v depth=DEPTH -f pack.awk FILE... [counted=0 FILE...]
#
# prints, in C, the pairs and a string of each FILE, under the name of that. A FILE after counted=0
# has no say in which pairs are replaced. All text is ASCII.
#
# The second half of a pair has to wait while the first is unpacked; at most DEPTH bytes ever wait.

# The byte or code at the end of the text.
function append(char) {
  if (!(char in byte)) {
    print FILENAME ":" FNR ": not ASCII: " $0 >"/dev/stderr"
    failed = 1
    exit 1
  }
  packed[++size] = byte[char]
}

function waiting(first, second) {
  return waits[first] + 1 > waits[second] ? waits[first] + 1 : waits[second]
}

# Sets first, second to the most frequent pair, of several that of the newest codes; returns how often
# it occurs.
function find_pair(  i, j, pair, times, most) {
  most = 0
  j = 1
  for (i = 1; i < last[counted_pieces]; i++) {
    if (i == last[j]) {
      j++
      continue
    }
    if (waiting(packed[i], packed[i + 1]) <= depth) times[packed[i] * NEWEST + packed[i + 1]]++
    if (packed[i] == packed[i + 1] && packed[i] == packed[i + 2] && i + 2 <= last[j]) i++
  }
  for (pair in times) {
    pair += 0
    if (times[pair] < most || (times[pair] == most && pair < newest)) continue
    most = times[pair]
    newest = pair
  }
  first = int(newest / NEWEST)
  second = newest % NEWEST
  return most
}

function replace_pair(code,  from, to, i) {
  to = 0
  i = 1
  for (from = 1; from <= size; from++) {
    packed[++to] = packed[from]
    if (packed[from] == first && from < last[i] && packed[from + 1] == second) {
      packed[to] = code
      from++
    }
    if (from == last[i]) last[i++] = to
  }
  size = to
}

# Each code costs two bytes, and saves one where it occurs.
function add_codes() {
  for (; used < free && find_pair() > 2; used++) {
    replace_pair(++codes)
    left[codes] = first
    right[codes] = second
    text[codes] = text[first] text[second]
    waits[codes] = waiting(first, second)
  }
}

# Puts a piece together from as few codes and characters as possible.
function pack_piece(line,  i, width, word, fewest, step) {
  fewest[length(line) + 1] = 0
  for (i = length(line); i > 0; i--) {
    step[i] = byte[substr(line, i, 1)]
    fewest[i] = fewest[i + 1] + 1
    for (width = 2; width <= widest && i + width <= length(line) + 1; width++) {
      word = substr(line, i, width)
      if (!(word in code_of) || fewest[i + width] + 1 > fewest[i]) continue
      step[i] = code_of[word]
      fewest[i] = fewest[i + width] + 1
    }
  }
  for (i = 1; i <= length(line); i += length(text[step[i]])) repacked[++size] = step[i]
}

function pack_anew(  code, i, at, line) {
  split("", code_of)
  widest = size = 0
  for (code in left) {
    code_of[text[code]] = code
    if (length(text[code]) > widest) widest = length(text[code])
  }
  at = 1
  for (i = 1; i <= pieces; i++) {
    for (line = ""; at <= last[i]; at++) line = line text[packed[at]]
    pack_piece(line)
    last[i] = size
  }
  for (i = 1; i <= size; i++) packed[i] = repacked[i]
}

# Gives up codes that no other needs, and that occur less often than those which take their places.
function drop_codes(  i, code, rarest, uses, needed) {
  for (i = 1; i <= last[counted_pieces]; i++) uses[packed[i]]++
  for (code in left) {
    needed[left[code]]++
    needed[right[code]]++
  }
  do {
    rarest = 0
    for (code = FIRST; code <= codes; code++)
      if (code in left && !needed[code] && uses[code] < SELDOM && (!rarest || uses[code] < uses[rarest])) rarest = code
    if (!rarest) return
    uses[left[rarest]] += uses[rarest]
    uses[right[rarest]] += uses[rarest]
    needed[left[rarest]]--
    needed[right[rarest]]--
    delete left[rarest]
    used--
  } while (1)
}

# Each code gets a byte: those of which it is made get one before it.
function give_bytes(  i, code) {
  i = 0
  for (code = FIRST; code <= codes; code++) {
    if (!(code in left)) continue
    as_byte[code] = bytes[i]
    code_at[bytes[i++]] = code
    if (waits[code] > deepest) deepest = waits[code]
  }
}

# A byte or code in a C string.
function escaped(code) {
  return code in left ? sprintf("\\%03o", as_byte[code]) : text[code] ~ /["\\]/ ? "\\" text[code] : shown(code)
}

# What it stands for.
function shown(code,  line) {
  line = text[code]
  gsub(/\n/, "\\n", line)
  return line
}

# In C.
function number(code) {
  return code in left ? sprintf("0%o", as_byte[code]) : text[code] ~ /['\\]/ ? "'\\" text[code] "'" : "'" shown(code) "'"
}

BEGIN {
  counted = 1
  for (i = 32; i < 127; i++) {
    if (i == 33 || i == 34) continue # "!" and the double quote, which are codes
    text[i] = sprintf("%c", i)
    byte[text[i]] = i
    waits[i] = 0
  }
  text[10] = "\n"
  byte["\n"] = 10
  waits[10] = 0
  for (i = 127; i < 256; i++) bytes[free++] = i
  for (i = 1; i < 35; i++) if (i != 10 && i != 32) bytes[free++] = i
  FIRST = 256 # above all bytes
  NEWEST = 4096
  codes = FIRST - 1
  SELDOM = 6
}

FNR == 1 {
  piece[++pieces] = FILENAME
  sub(/.*\//, "", piece[pieces])
}

{
  for (i = 1; i <= length($0); i++) append(substr($0, i, 1))
  append("\n")
  last[pieces] = size
  if (counted) counted_pieces = pieces
}

END {
  if (failed) exit 1
  add_codes()
  pack_anew()
  drop_codes()
  pack_anew()
  add_codes()
  pack_anew()
  give_bytes()
  printf "_Static_assert(FAIRLOCK_UNPACK_DEPTH >= %d, \"the bytes that wait\");\n\n", deepest
  print "const PORT_FLASH uint8_t fairlock_script_pairs[FAIRLOCK_PAIRS][2] = {"
  for (i = 127; i < 127 + 164; i++) {
    code = code_at[i % 256]
    if (code) printf "    {%s, %s}, /* \\%03o: \"%s\" */\n", number(left[code]), number(right[code]), i % 256, shown(code)
    else printf "    {0, 0},\n"
  }
  print "};"
  at = 1
  for (i = 1; i <= pieces; i++) {
    printf "\nstatic const PORT_FLASH uint8_t %s[] =\n", piece[i]
    while (at <= last[i]) {
      string = line = ""
      do {
        string = string escaped(packed[at])
        line = line shown(packed[at])
      } while (at++ < last[i] && length(line) < 70)
      printf "    \"%s\" /* %s */\n", string, line
    }
    print "    ;"
  }
}
