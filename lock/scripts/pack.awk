# Packs text for flash by byte pairs. The pair of bytes that occurs most often is replaced by a code
# of its own, a byte from 128 up, then the next pair, which may hold codes, until there is nothing
# to gain or there are no codes left.
#
#     awk -v depth=DEPTH -f pack.awk FILE... [counted=0 FILE...]
#
# prints, in C, the pairs and a string of each FILE, under the name of that. A FILE after counted=0
# has no say in which pairs are replaced. No code stands for bytes of two lines, so that each line
# of text is a line of the string. All text is ASCII.
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
function find_pair(  i, pair, count, most) {
  most = 0
  for (i = 1; i < counted_size; i++) {
    if (packed[i] in ends_line || waiting(packed[i], packed[i + 1]) > depth) continue
    pair = packed[i] " " packed[i + 1]
    if (++count[pair] > most) {
      most = count[pair]
      first = packed[i]
      second = packed[i + 1]
    }
  }
  return most
}

function replace_pair(code,  from, to, counted_to) {
  to = 0
  for (from = 1; from <= size; from++) {
    packed[++to] = packed[from]
    if (packed[from] == first && from < size && packed[from + 1] == second) {
      packed[to] = code
      from++
    }
    if (from <= counted_size) counted_to = to
  }
  size = to
  counted_size = counted_to
}

function add_code(code) {
  left[code] = first
  right[code] = second
  text[code] = text[first] text[second]
  waits[code] = waiting(first, second)
  if (waits[code] > deepest) deepest = waits[code]
  if (second in ends_line) ends_line[code]
}

# A byte or code in a C string.
function escaped(code) {
  return code >= 128 ? sprintf("\\%o", code) : text[code] ~ /["\\]/ ? "\\" text[code] : shown(code)
}

# What it stands for.
function shown(code,  line) {
  line = text[code]
  return sub(/\n$/, "", line) ? line "\\n" : line
}

# In C.
function number(code) {
  return code >= 128 ? sprintf("0%o", code) : text[code] ~ /['\\]/ ? "'\\" text[code] "'" : "'" shown(code) "'"
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
  ends_line[10]
}

FNR == 1 {
  piece[++pieces] = FILENAME
  sub(/.*\//, "", piece[pieces])
}

{
  for (i = 1; i <= length($0); i++) append(substr($0, i, 1))
  append("\n")
  lines[pieces]++
  if (counted) counted_size = size
}

END {
  if (failed) exit 1
  for (codes = 128; codes < 256 && find_pair() > 2; codes++) { # each costs two bytes, and saves one where it occurs
    replace_pair(codes)
    add_code(codes)
  }
  printf "_Static_assert(FAIRLOCK_UNPACK_DEPTH >= %d, \"the bytes that wait\");\n\n", deepest
  print "const uint8_t fairlock_pairs[256 - FAIRLOCK_FIRST_CODE][2] = {"
  for (i = 128; i < codes; i++) {
    printf "    {%s, %s}, /* \\%o: \"%s\" */\n", number(left[i]), number(right[i]), i, shown(i)
  }
  print "};"
  at = 1
  for (i = 1; i <= pieces; i++) {
    printf "\nstatic const uint8_t %s[] =\n", piece[i]
    while (lines[i]-- > 0) {
      string = line = ""
      do {
        string = string escaped(packed[at])
        line = line text[packed[at]]
      } while (!(packed[at++] in ends_line))
      sub(/\n$/, "", line)
      printf "    \"%s\" /* %s */\n", string, line
    }
    print "    ;"
  }
}
