// SPDX-License-Identifier: Apache-2.0
'use strict'
const { EventEmitter } = require('node:events')
const net = require('node:net')
const { Engine, OK } = require('./engine.js')
const { ClosedError, LostError, errorOf } = require('./errors.js')
const { parse } = require('./url.js')

const FOREVER = 0xffffffff
const RENEW = 0x7e7e7e7e
const LONGEST_MS = 0x3fffffff
const BUSY = -1
const LOST = -4

// Node has it since 18.18 and 20.
const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')

function number(name, value, least, most) {
  if (typeof value !== 'number') {
    throw Object.assign(new TypeError(`${name} is not a number`), { code: 'ERR_INVALID_ARG_TYPE' })
  }
  if (!(value >= least && value <= most)) {
    throw Object.assign(new RangeError(`${name} is ${value}, not ${least} to ${most}`), { code: 'ERR_OUT_OF_RANGE' })
  }
  return Math.ceil(value)
}

function bytesOf(name) {
  if (typeof name === 'string') return Buffer.from(name)
  if (name instanceof Uint8Array) return Buffer.from(name) // a copy
  throw Object.assign(new TypeError('the name of a lock is neither a string nor a Uint8Array'), {
    code: 'ERR_INVALID_ARG_TYPE',
  })
}

// In C a text ends at its first NUL.
function textOf(name, value) {
  if (typeof value !== 'string') {
    throw Object.assign(new TypeError(`${name} is not a string`), { code: 'ERR_INVALID_ARG_TYPE' })
  }
  if (value.includes('\0')) {
    throw Object.assign(new TypeError(`${name} has a NUL`), { code: 'ERR_INVALID_ARG_VALUE' })
  }
  return value
}

function limitOf({ limit, shared }) {
  if (limit === undefined) return shared ? 0 : -1
  if (number('limit', limit, 1, 1000) === limit) return limit
  throw Object.assign(new RangeError(`limit is ${limit}, not a whole number`), { code: 'ERR_OUT_OF_RANGE' })
}

// A hold that nobody can reach any more cannot be released, so it is here.
const dropped = new FinalizationRegistry(({ handle, name }) => {
  if (!handle.lock) return
  process.emitWarning(`a hold of the lock ${quoted(name)} was not released before it was garbage collected`, {
    type: 'FairlockWarning',
    code: 'FAIRLOCK_DROPPED',
  })
  handle.drop()
})

// And a client that nobody can reach is closed: it has neither waits nor holds, which know it.
const forgotten = new FinalizationRegistry((engine) =>
  setImmediate(() => engine.isClosing || engine.close(2000, () => {})),
)

// Of a hold, for the client alone.
const [lose, ask, quit] = [Symbol('lose'), Symbol('ask'), Symbol('quit')]

const quoted = (name) => JSON.stringify(typeof name === 'string' ? name : Buffer.from(name).toString())
const closed = () => new ClosedError('the client was closed', 'FAIRLOCK_CLOSED')
const released = (name) => new LostError(`the lock ${quoted(name)} was released`, 'FAIRLOCK_NOT_HELD')

// The handle knows its hold weakly, so that this function must not be within a scope that has the hold.
function watch(handle) {
  handle.onLost = (reason) => handle.self.deref()?.[lose](reason)
  handle.onAsked = (words) => handle.self.deref()?.[ask](words)
  handle.onClosed = () => handle.self.deref()?.[quit]()
}

class Hold extends EventEmitter {
  #handle
  #released = null // the promise of release()
  #controller = null
  #ended = null // the error, if it has ended before
  #putBack

  constructor(handle, name, token, putBack) {
    super()
    this.#handle = handle
    this.#putBack = putBack
    this.name = name
    this.token = token
    handle.self = new WeakRef(this)
    handle.kept = null
    watch(handle)
    dropped.register(this, { handle, name }, handle)
  }

  get remaining() {
    return this.#released === null ? this.#handle.remaining : 0
  }

  get lost() {
    return this.#ended !== null || (this.#released === null && this.#handle.remaining === 0)
  }

  get signal() {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      this.#keep()
      if (this.#ended !== null) this.#controller.abort(this.#ended)
      else if (this.#released !== null) this.#controller.abort(released(this.name))
    }
    return this.#controller.signal
  }

  on(event, listener) {
    this.#keep()
    return super.on(event, listener)
  }

  addListener(event, listener) {
    return this.on(event, listener)
  }

  prependListener(event, listener) {
    this.#keep()
    return super.prependListener(event, listener)
  }

  // Who listens, or has the signal, relies on the hold, and need not keep it besides.
  #keep() {
    if (this.#released === null && this.#ended === null) this.#handle.kept = this
  }

  #end(error) {
    this.#ended = error
    this.#handle.kept = null
    if (this.#released !== null) return // which tells
    process.nextTick(() => this.emit('lost', error))
    this.#controller?.abort(error)
  }

  [lose](reason) {
    const why = reason === 1 ? 'its lease ran out' : 'it has ended on the server'
    if (this.#ended === null)
      this.#end(new LostError(`the lock ${quoted(this.name)} was lost: ${why}`, 'FAIRLOCK_LOST'))
  }

  [quit]() {
    if (this.#ended === null) this.#end(closed())
  }

  [ask](words) {
    if (this.#released === null) process.nextTick(() => this.emit('asked', words?.toString() ?? ''))
  }

  #release(resolve, reject) {
    const handle = this.#handle
    dropped.unregister(handle)
    handle.kept = null
    if (handle.lock === 0) return reject(this.#ended)
    handle.onClosed = () => reject(closed())
    handle.release((status) => {
      if (status === OK) this.#putBack(handle)
      else handle.drop()
      if (status === OK) resolve()
      else if (status === LOST && this.#ended !== null) reject(this.#ended)
      else reject(errorOf(status, `release of ${quoted(this.name)}`, handle.engine))
    })
    this.#controller?.abort(this.#ended ?? released(this.name))
  }

  release() {
    this.#released ??= new Promise((resolve, reject) => this.#release(resolve, reject))
    return this.#released
  }

  [asyncDispose]() {
    return this.release()
  }
}

class Client {
  #engine
  #closing = null // the promise of close()

  constructor(url = 'redis://127.0.0.1:6379', options = {}) {
    const { place, secure, user, password, database } = parse(url)
    if (options.tls != null && !secure) {
      throw Object.assign(new TypeError('options for TLS need a URL that begins with rediss://'), {
        code: 'ERR_INVALID_ARG_VALUE',
      })
    }
    const tlsOptions = secure ? { ...(net.isIP(place.host) ? {} : { servername: place.host }), ...options.tls } : null
    const settings = { database, user, password }
    for (const name of ['leaseMs', 'waiterMs', 'claimMs', 'responseMs', 'connectMs']) {
      settings[name] = options[name] == null ? 0 : number(name, options[name], 1, LONGEST_MS)
    }
    const { offlineMs } = options
    if (offlineMs != null)
      settings.offlineMs = offlineMs === Infinity ? FOREVER : number('offlineMs', offlineMs, 1, LONGEST_MS)
    for (const name of ['user', 'password', 'clientId', 'clientName']) {
      if (options[name] != null) settings[name] = textOf(name, options[name])
    }
    settings.listen = options.listen ? 1 : 0
    this.#engine = new Engine(place, tlsOptions, settings)
    if (this.#engine.status !== OK) throw errorOf(this.#engine.status, 'the client')
    forgotten.register(this, this.#engine)
  }

  get connected() {
    return this.#engine.connected
  }

  connect() {
    return new Promise((resolve, reject) => {
      if (this.#engine.isClosing) return reject(closed())
      this.#engine.connect((status) => {
        if (status === OK) resolve()
        else reject(this.#engine.isClosing ? closed() : errorOf(status, 'connect', this.#engine))
      })
    })
  }

  lock(name, options = {}) {
    return new Promise((resolve, reject) => this.#acquire(name, options, resolve, reject))
  }

  async tryLock(name, options = {}) {
    try {
      return await this.lock(name, { ...options, wait: 0 })
    } catch (error) {
      if (error.code === 'FAIRLOCK_BUSY') return null
      throw error
    }
  }

  async using(name, options, callback = options) {
    const hold = await this.lock(name, typeof options === 'function' ? {} : options)
    let result
    try {
      result = await callback(hold)
    } catch (error) {
      await hold.release().catch(() => {}) // what the callback says counts more
      throw error
    }
    await hold.release()
    return result
  }

  #acquire(name, options, resolve, reject) {
    const { wait = Infinity, lease, signal } = options
    const waitMs = wait === Infinity ? FOREVER : number('wait', wait, 0, LONGEST_MS)
    const leaseMs = lease === undefined ? RENEW : number('lease', lease, 100, LONGEST_MS)
    const bytes = bytesOf(name)
    const limit = limitOf(options)
    if (this.#engine.isClosing) return reject(closed())
    if (signal?.aborted) return reject(signal.reason)
    const putBack = (done) => this.#engine.putBack(done, bytes, limit)
    const handle = this.#engine.open(bytes, limit)
    if (typeof handle === 'number') return reject(errorOf(handle, `lock ${quoted(name)}`))
    const onAbort = () => {
      handle.drop()
      reject(signal.reason)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    handle.onClosed = () => {
      signal?.removeEventListener('abort', onAbort)
      reject(closed())
    }
    handle.acquire(waitMs, leaseMs, (status) => {
      signal?.removeEventListener('abort', onAbort)
      const token = status === OK ? handle.token : 0n
      if (token !== 0n) return resolve(new Hold(handle, name, token, putBack))
      if (status === BUSY) putBack(handle)
      else handle.drop()
      reject(errorOf(status === OK ? LOST : status, `lock ${quoted(name)}`, this.#engine))
    })
  }

  async close({ timeout = 2000 } = {}) {
    const most = number('timeout', timeout, 0, LONGEST_MS)
    this.#closing ??= new Promise((resolve) => this.#engine.close(most, resolve))
    return this.#closing
  }

  [asyncDispose]() {
    return this.close()
  }
}

module.exports = { Client, Hold }
