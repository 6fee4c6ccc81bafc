// SPDX-License-Identifier: Apache-2.0
'use strict'
// The clock by which leases are measured: milliseconds, modulo 2^32. performance.now() may stand still while
// the machine sleeps, and a hold that ended in its sleep must not be believed in. So when the wall clock has
// gone further than that one, the system's uptime, which goes on, tells a sleep from a clock that was set.
const os = require('node:os')
const { performance } = require('node:perf_hooks')

const NOTICED_MS = 500
let slept = 0 // ms, rather too many: the uptime has whole seconds
let ahead = Date.now() - performance.now()
let up = os.uptime() * 1000 - performance.now()

function now() {
  const time = performance.now()
  const wall = Date.now() - time
  if (wall - ahead > NOTICED_MS || wall < ahead) {
    ahead = wall
    const missed = os.uptime() * 1000 - time - up
    if (missed > 1000) {
      up += missed
      slept += missed + 1000
    }
  }
  return (time + slept) >>> 0
}

module.exports = { now }
