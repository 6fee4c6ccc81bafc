// SPDX-License-Identifier: Apache-2.0
'use strict'
// fairlock.wasm: the lock's engine, compiled from C. It does no I/O, reads no clock, and imports nothing.
// All clients of a thread share one instance, whose memory grows with the number of locks in use.
const fs = require('node:fs')
const path = require('node:path')

const module_ = new WebAssembly.Module(fs.readFileSync(path.join(__dirname, 'fairlock.wasm')))
const wasm = new WebAssembly.Instance(module_, {}).exports

let bytes = new Uint8Array(wasm.memory.buffer)
let view = new DataView(wasm.memory.buffer)

// When the memory grows, the views of it are detached.
function refresh() {
  if (bytes.length > 0) return
  bytes = new Uint8Array(wasm.memory.buffer)
  view = new DataView(wasm.memory.buffer)
}

function memory() {
  refresh()
  return bytes
}

// Copies bytes there for the time of one call.
function withBytes(data, call) {
  const at = wasm.allocate(data.length)
  if (at === 0) throw new RangeError('out of memory for locks')
  memory().set(data, at)
  try {
    return call(at, data.length)
  } finally {
    wasm.free(at)
  }
}

function text(at) {
  const there = memory()
  return Buffer.from(there.buffer, at, there.indexOf(0, at) - at).toString()
}

// An event of the queue, or undefined: see boards/core/core.h.
function next(core) {
  const at = wasm.next(core)
  if (at === 0) return undefined
  refresh()
  const size = view.getUint32(at + 12, true)
  return {
    kind: view.getUint32(at, true),
    key: view.getUint32(at + 4, true),
    status: view.getInt32(at + 8, true),
    token: view.getBigUint64(at + 16, true),
    words: size > 0 ? Buffer.from(bytes.subarray(view.getUint32(at + 24, true)).subarray(0, size)) : undefined,
  }
}

const TEXTS = ['clientId', 'user', 'password', 'clientName']
const NUMBERS = [
  'database',
  'leaseMs',
  'waiterMs',
  'claimMs',
  'responseMs',
  'connectMs',
  'offlineMs',
  'nameMax',
  'listen',
]

// Returns { core, status }.
function create(options) {
  const texts = TEXTS.map((name) => (options[name] == null ? null : Buffer.from(`${options[name]}\0`)))
  const numbers = NUMBERS.map((name) => Number(options[name] ?? 0))
  const struct = (TEXTS.length + NUMBERS.length + 1) * 4
  return withBytes(Buffer.concat([Buffer.alloc(struct), ...texts.filter(Boolean)]), (at) => {
    let room = at + struct
    refresh()
    texts.forEach((one, i) => {
      view.setUint32(at + 4 * i, one ? room : 0, true)
      room += one ? one.length : 0
    })
    numbers.forEach((number, i) => view.setUint32(at + 4 * (TEXTS.length + i), number, true))
    const core = wasm.create(at)
    refresh()
    return { core, status: view.getInt32(at + struct - 4, true) }
  })
}

module.exports = { create, memory, next, text, wasm, withBytes }
