// SPDX-License-Identifier: Apache-2.0
'use strict'
const { text, wasm } = require('./core.js')

/** All errors of locks: `code` is FAIRLOCK_ and the status's name, as in C. */
class FairlockError extends Error {
  constructor(message, code, options) {
    super(message, options)
    this.code = code
  }

  get name() {
    return this.constructor.name
  }
}

/** Somebody else holds the lock or is first in line: of a wait of 0. */
class BusyError extends FairlockError {}

/** The wait has ended without the lock. */
class TimeoutError extends FairlockError {}

/** The hold had ended before it was released: others may hold already. */
class LostError extends FairlockError {}

/** There is no useful answer from the server: it is away, starts, or its certificate is not trusted. */
class ConnectionError extends FairlockError {}

/** The server refuses this user. */
class DeniedError extends FairlockError {}

/** The server refuses the request: a replica, out of memory, too old, and the like. */
class ServerError extends FairlockError {}

/** The client was closed. */
class ClosedError extends FairlockError {}

const CLASSES = {
  BUSY: BusyError,
  TIMEOUT: TimeoutError,
  LOST: LostError,
  UNKNOWN: ConnectionError,
  UNREACHABLE: ConnectionError,
  UNAVAILABLE: ConnectionError,
  UNTRUSTED: ConnectionError,
  PROTOCOL: ConnectionError,
  DENIED: DeniedError,
  UNSUPPORTED: ServerError,
  READONLY: ServerError,
  OOM: ServerError,
  MISCONF: ServerError,
  UNSYNCED: ServerError,
  REFUSED: ServerError,
  WRONG_SHARD: ServerError,
  OUTDATED: ServerError,
}

// Those for which the last error of the connection is the cause, and those that a text of the server explains.
const BY_CONNECTION = new Set(['UNREACHABLE', 'UNTRUSTED', 'UNKNOWN', 'PROTOCOL'])
const BY_SERVER = new Set(['DENIED', 'UNSUPPORTED', 'UNAVAILABLE', 'READONLY', 'OOM', 'MISCONF', 'REFUSED', 'OUTDATED'])

/** The error for a status: `what` is what was being done. */
function errorOf(status, what, engine) {
  const name = text(wasm.status_name(status))
  const cause = BY_CONNECTION.has(name) ? engine?.lastError : undefined
  const detail = cause ? cause.message : BY_SERVER.has(name) && engine?.core ? engine.errorText : ''
  const message = `${what}: ${text(wasm.status_text(status))}${detail ? `: ${detail}` : ''}`
  const class_ = CLASSES[name] ?? FairlockError
  if (name !== 'INVALID' && name !== 'TOO_LONG') {
    return new class_(message, `FAIRLOCK_${name}`, cause ? { cause } : undefined)
  }
  return Object.assign(new RangeError(message), { code: `FAIRLOCK_${name}` })
}

module.exports = {
  BusyError,
  ClosedError,
  ConnectionError,
  DeniedError,
  FairlockError,
  LostError,
  ServerError,
  TimeoutError,
  errorOf,
}
