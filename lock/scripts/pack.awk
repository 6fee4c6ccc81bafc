# SPDX-License-Identifier: Apache-2.0
# Packs text for flash by byte pairs. The pair of bytes that occurs most often is replaced by a code
# of its own, a byte that is no character of ours, then the next pair, which may hold codes, until
# there is nothing to gain or there are no codes left.
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

# Sets first, second to the most frequent pair, of several that which gets there first; returns how
# often it occurs.
function find_pair(  i, j, pair, count, most) {
  most = 0
  j = 1
  for (i = 1; i < last[counted_pieces]; i++) {
    if (i == last[j]) {
      j++
      continue
    }
    if (waiting(packed[i], packed[i + 1]) > depth) continue
    pair = packed[i] " " packed[i + 1]
    if (++count[pair] > most) {
      most = count[pair]
      first = packed[i]
      second = packed[i + 1]
    }
  }
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

function add_code(code) {
  left[code] = first
  right[code] = second
  text[code] = text[first] text[second]
  waits[code] = waiting(first, second)
  if (waits[code] > deepest) deepest = waits[code]
}

# A byte or code in a C string.
function escaped(code) {
  return code in left ? sprintf("\\%03o", code) : text[code] ~ /["\\]/ ? "\\" text[code] : shown(code)
}

# What it stands for.
function shown(code,  line) {
  line = text[code]
  gsub(/\n/, "\\n", line)
  return line
}

# In C.
function number(code) {
  return code in left ? sprintf("0%o", code) : text[code] ~ /['\\]/ ? "'\\" text[code] "'" : "'" shown(code) "'"
}

BEGIN {
  counted = 1
  for (i = 32; i < 127; i++) {
    text[i] = sprintf("%c", i)
    byte[text[i]] = i
    waits[i] = 0
  }
  text[10] = "\n"
  byte["\n"] = 10
  waits[10] = 0
  for (i = 128; i < 256; i++) codes[count++] = i
  for (i = 1; i < 32; i++) if (i != 10) codes[count++] = i
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
  for (used = 0; used < count && find_pair() > 2; used++) { # each costs two bytes, and saves one where it occurs
    replace_pair(codes[used])
    add_code(codes[used])
  }
  printf "_Static_assert(FAIRLOCK_UNPACK_DEPTH >= %d, \"the bytes that wait\");\n\n", deepest
  print "const PORT_FLASH uint8_t fairlock_script_pairs[FAIRLOCK_PAIRS][2] = {"
  for (i = 128; i < 128 + 160; i++) {
    code = i % 256
    if (code in left) printf "    {%s, %s}, /* \\%03o: \"%s\" */\n", number(left[code]), number(right[code]), code, shown(code)
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
