# SPDX-License-Identifier: Apache-2.0
# Reads a picture that timeline.c drew, as xmllint --format lays it out: an element a line. Says on
# standard error what of it breaks the rules of the lock, or is drawn where its data does not say;
# the exit status says whether anything does. The holds go to the file `history`. On standard output goes the structure: each element
# with its class and its text, without the places, times and tokens.

function fault(what) {
  print "fault: " what >"/dev/stderr"
  faults++
}

# An attribute of the element in this line; "" if it has none of that name.
function attribute(name) {
  if (!match($0, " " name "=\"[^\"]*\"")) return ""
  return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
}

function text() {
  return match($0, />[^<]*</) ? substr($0, RSTART + 1, RLENGTH - 2) : ""
}

# Places are rounded to 0.1, and so are the two that give the scale.
function near(a, b) {
  return a - b < 0.21 && b - a < 0.21
}

# What the bar of this line shows goes to from[] and until[]; it has to be in its row, and as long
# as its time.
function take_bar(from, until) {
  from[row] = attribute("data-from") + 0
  until[row] = attribute("data-until") + 0
  x[++bars] = attribute("x")
  width[bars] = attribute("width")
  bar_from[bars] = from[row]
  bar_until[bars] = until[row]
  bar_of[bars] = row
  if (until[row] < from[row]) fault(row ": a bar ends before it begins")
  if (y[row] == "") y[row] = attribute("y")
  if (y[row] != attribute("y")) fault(row ": a bar is not in its row")
}

BEGIN { row = "" }

/<script|<image|<foreignObject|<a |href=|url\(|@import| on[a-z]+=/ { fault("something from outside, or that acts") }
/http/ && !/xmlns="http:\/\/www.w3.org\/2000\/svg"/ { fault("something from outside, or that acts") }

{ class = attribute("class") }

/<svg / {
  split(attribute("viewBox"), box, " ")
  if (box[3] > 900) fault("wider than 900")
}

/<\/g>/ { row = "" }

/<g / && class == "row" {
  row = attribute("data-contender")
  names[++rows] = row
  arrival[row] = attribute("data-arrival") + 0
  limit[row] = attribute("data-limit") + 0
  if (limit[row] > most) most = limit[row]
}

row != "" && class == "waits" {
  waits[row]++
  take_bar(wait_from, wait_until)
}

row != "" && (class == "holds" || class == "shares") {
  holds[row]++
  if ((class == "shares") != (limit[row] > 0)) fault(row ": it is drawn as if it " class)
  turn[row] = attribute("data-turn")
  token[row] = attribute("data-token")
  take_bar(hold_from, hold_until)
}

row != "" && class == "lease" {
  leases[row]++
  take_bar(lease_from, lease_until)
}

row != "" && class == "crash" {
  crashes[row]++
  crash[row] = attribute("data-at") + 0
}

row != "" && class == "turn" && text() !~ "^(turn )?" turn[row] "$" { fault(row ": the turn written is not that of its data") }
row != "" && class == "end token" {
  tokens[row]++
  if (text() != token[row]) fault(row ": the token written is not that of its data")
}
row != "" && class == "end arrival" && text() != arrival[row] "" {
  fault(row ": the arrival written is not that of its data")
}

class == "verdict" { verdict = text() }

class == "grid" || class ~ /tick/ { next }

{
  match($0, /<[\/a-z]+/)
  print row, substr($0, RSTART, RLENGTH), class, class ~ /token|turn/ && row != "" ? "" : text()
}

# One who waited was granted the lock, or was killed.
function check_row(name) {
  if (waits[name] != 1) fault(name ": it does not wait once")
  if (holds[name] + 0 > 1) fault(name ": it holds more than once")
  if (crashes[name] + 0 > 1 || leases[name] + 0 > 1) fault(name ": it is killed more than once")
  if (tokens[name] + 0 != holds[name] + 0) fault(name ": it has a hold and no token, or a token and no hold")
  if (!holds[name] && !crashes[name]) fault(name ": it neither held nor was killed")
  if (!holds[name] && crashes[name] && crash[name] != wait_until[name]) fault(name ": it waits on after its death")
  if (holds[name] && wait_until[name] != hold_from[name]) fault(name ": it does not hold when its wait is over")
  if (holds[name] + leases[name] == 2 && (lease_from[name] != crash[name] || lease_until[name] != hold_until[name]))
    fault(name ": what is left of its lease is not from its death to the end of its hold")
  if (holds[name] && crashes[name] && !leases[name]) fault(name ": it was killed as holder, and left no lease")
}

# How many of those with a place in of[] do not come after this one.
function rank(name, of,    other, count) {
  for (other in of) count += of[other] + 0 <= of[name] + 0
  return count
}

# The holds go to the judge of histories, which says whether all of them can be.
function check_holds(    i, name, count) {
  for (i = 1; i <= rows; i++) {
    name = names[i]
    if (arrival[name] != rank(name, wait_from)) fault(name ": it asked as number " rank(name, wait_from) ", and did not arrive as that")
    if (!holds[name]) continue
    count++
    if (turn[name] != rank(name, token)) fault(name ": its turn is not number " rank(name, token))
    if (token[name] !~ /^[1-9][0-9]*$/) fault(name ": its token is no number")
    print 0, i, (limit[name] ? limit[name] : -1), token[name], wait_from[name], wait_from[name], hold_from[name], hold_until[name] >history
  }
  if (count < 2) fault("there are not two holds, and so no order")
}

# Two bars give the scale, the first's beginning and the last's end; all others have to fit it.
function check_places(    i, first, last, scale) {
  first = last = 1
  for (i = 2; i <= bars; i++) {
    if (bar_from[i] < bar_from[first]) first = i
    if (bar_until[i] > bar_until[last]) last = i
  }
  if (bar_until[last] <= bar_from[first]) {
    fault("no time passes")
    return
  }
  scale = (x[last] + width[last] - x[first]) / (bar_until[last] - bar_from[first])
  for (i = 1; i <= bars; i++) {
    if (!near(x[i], x[first] + (bar_from[i] - bar_from[first]) * scale) ||
      !near(width[i], (bar_until[i] - bar_from[i]) * scale)) fault(bar_of[i] ": a bar is not where its time says")
  }
}

END {
  if (rows != 8) fault("there are " rows + 0 " contenders, not 8")
  for (i = 1; i <= rows; i++) check_row(names[i])
  for (i = 1; i <= rows; i++) {
    for (j = 1; j < i; j++) if (y[names[i]] == y[names[j]]) fault(names[i] ": it is in the row of " names[j])
  }
  check_holds()
  check_places()
  wanted = most > 0 ? "order kept, at most " most " at a time, the writer alone" : "order kept, one holder at a time"
  if (verdict != wanted) fault("the verdict is: " verdict)
  exit faults > 0
}
