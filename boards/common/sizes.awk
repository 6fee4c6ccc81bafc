# SPDX-License-Identifier: Apache-2.0
# Adds up what an image holds of each part, from the linker's map: awk -f sizes.awk -v row=NAME
# IMAGE.map Prints: row codec engine scripts client port lwip tls other flash ram

function hex(text,  i, n) {
  text = tolower(substr(text, 3))
  for (i = 1; i <= length(text); i++) n = 16 * n + index("0123456789abcdef", substr(text, i, 1)) - 1
  return n + 0
}

# Which part a file belongs to.
function part(file) {
  if (file ~ /lwip\.a\(/) return "lwip"
  if (file ~ /(bearssl|mbedtls)\.a\(/ || file ~ /\/mbedtls\.o$/) return "tls"
  if (file ~ /single\.a\((decode|encode)\.o/) return "codec"
  if (file ~ /single\.a\((engine|handle|turns|schedule|pipeline|request|reply|inspect|topology|events)\.o/) return "engine"
  if (file ~ /(single\.a\((scripts|texts)|\/hashes)\.o/) return "scripts"
  if (file ~ /single\.a\((client|status)\.o/) return "client"
  if (file ~ /single\.a\((tcp|seeds|uart|modem|families|threads)\.o/) return "port"
  return "other"
}

# The map: " .text.name 0xaddress 0xsize file", the first word on a line of its own if it is long.
FILENAME ~ /\.map$/ {
  if (/^Linker script and memory map/) started = 1
  if (!started) next
  if (/^\.[a-zA-Z]/) output = $1
  if (/^ \.[a-zA-Z]/ && NF == 1) {
    name = $1
    getline
    $0 = " " name " " $0
  }
  if (!/^ / || $2 !~ /^0x/ || $3 !~ /^0x/) next
  if (output == ".text" || output == ".data") flash[part($4)] += hex($3)
  if (output == ".text" || output == ".data") total += hex($3)
  if (output == ".data" || output == ".bss" || output == ".noinit" || output == ".stack") ram += hex($3)
  next
}

END {
  print row, flash["codec"] + 0, flash["engine"] + 0, flash["scripts"] + 0, flash["client"] + 0, flash["port"] + 0, \
    flash["lwip"] + 0, flash["tls"] + 0, flash["other"] + 0, total, ram
}
