// SPDX-License-Identifier: Apache-2.0
'use strict'
// One connection to a server, and the handles that use it: carries the core's bytes, and tells it the time.
const net = require('node:net')
const { performance } = require('node:perf_hooks')
const tls = require('node:tls')
const { now } = require('./clock.js')
const { create, memory, next, text, wasm, withBytes } = require('./core.js')

const PENDING = 1
const OK = 0
const OOM = -14
const UNREACHABLE = -9
const UNTRUSTED = -22

// enum fairlock_want, fairlock_core_kind
const CONNECT = 1
const CLOSE = 2
const [ENDED, LOST, ASKED] = [1, 2, 3]

const LONGEST_TIMER = 0x7fffffff

// Handles that are done are kept for this long, so many at most: who locks the same name again then needs no new
// subscription for it.
const IDLE_MS = 5000
const MOST_IDLE = 256

// TLS has failed because a certificate or key, theirs or ours, is not accepted.
const untrusted = (error) => /CERT|SELF_SIGNED|UNABLE_TO_|UNKNOWN_CA|HOSTNAME|BAD_CERTIFICATE/.test(error.code ?? '')

/** A view of a lock: one holder. Its callbacks must not throw. */
class Handle {
  constructor(engine, name, limit, key) {
    this.engine = engine
    this.key = key
    this.lock = withBytes(name, (at, size) => wasm.lock(engine.core, at, size, limit, key))
    this.done = null // called with the status of the operation under way
    this.onLost = null // (reason): 0: it has ended on the server, 1: its lease ran out here
    this.onAsked = null // (words)
    this.onClosed = null // () the client is closed while this one is in use
    this.isReleasing = false
    this.idleSince = 0
  }

  #begin(status, done) {
    if (status === PENDING) {
      this.done = done
      this.engine.pending++
    } else {
      done(status)
    }
    this.engine.wake()
  }

  acquire(wait, lease, done) {
    this.#begin(wasm.acquire(this.lock, wait, lease, now()), done)
  }

  release(done) {
    this.isReleasing = true
    this.#begin(wasm.release(this.lock, now()), done)
  }

  end(status) {
    const done = this.done
    this.done = null
    if (done === null) return
    this.engine.pending--
    done(status)
  }

  get token() {
    return this.lock ? wasm.token(this.lock, now()) : 0n
  }

  get remaining() {
    return this.lock ? wasm.remaining(this.lock, now()) >>> 0 : 0
  }

  get id() {
    return text(wasm.id(this.lock))
  }

  /** Gives it up, whatever it is doing: its place or its hold ends in the background. */
  drop() {
    if (!this.lock) return
    if (this.done !== null) this.engine.pending--
    this.done = null
    wasm.drop(this.lock, now())
    this.lock = 0
    this.engine.handles.delete(this.key)
    this.engine.wake()
  }
}

class Engine {
  #socket = null
  #isOpen = false // the socket is connected, and the core knows
  #isFull = false // until it is drained
  #timer = null
  #due = 0
  #keepsAlive = true
  #isAwake = false
  #nextKey = 0
  #connects = [] // who waits for a connection: functions of (status)
  #whenLeft = null
  #idle = new Map() // name and limit to handles that are done, the oldest first
  #idleCount = 0
  #idleTimer = null

  handles = new Map()
  pending = 0 // operations under way
  lastError = undefined // of the connection
  isClosing = false

  /** place: { host, port } or { path }; secure: options of tls.connect(), or null */
  constructor(place, secure, options) {
    this.place = place
    this.secure = secure && { ...secure, secureContext: secure.secureContext ?? tls.createSecureContext(secure) }
    const { core, status } = create(options)
    this.core = core
    this.status = status
  }

  /** limit: -1: exclusive, 0: shared, or at most so many. Returns a handle, or a status. */
  open(name, limit) {
    const idle = this.#idle.size > 0 ? this.#idle.get(`${limit} ${name.latin1Slice()}`)?.pop() : undefined
    if (idle !== undefined) {
      this.#idleCount--
      return idle
    }
    const handle = new Handle(this, name, limit, ++this.#nextKey >>> 0)
    if (handle.lock === 0) return wasm.status(this.core)
    this.handles.set(handle.key, handle)
    return handle
  }

  /** The handle is done with: it neither holds nor waits. */
  putBack(handle, name, limit) {
    if (this.isClosing || this.#idleCount >= MOST_IDLE || handle.lock === 0) return handle.drop()
    handle.isReleasing = false
    handle.onLost = handle.onAsked = handle.onClosed = null
    handle.idleSince = performance.now()
    const key = `${limit} ${name.latin1Slice()}`
    const list = this.#idle.get(key)
    if (list === undefined) this.#idle.set(key, [handle])
    else list.push(handle)
    this.#idleCount++
    this.#idleTimer ??= setTimeout(() => this.#dropIdle(), IDLE_MS).unref()
  }

  #dropIdle() {
    this.#idleTimer = null
    const now_ = performance.now()
    for (const [key, list] of this.#idle) {
      while (list.length > 0 && now_ - list[0].idleSince >= IDLE_MS) {
        list.shift().drop()
        this.#idleCount--
      }
      if (list.length === 0) this.#idle.delete(key)
    }
    if (this.#idleCount > 0) this.#idleTimer = setTimeout(() => this.#dropIdle(), IDLE_MS).unref()
  }

  /** Services the connection soon: once for all that is begun in the same turn of the loop. */
  wake() {
    if (this.#isAwake) return
    this.#isAwake = true
    queueMicrotask(() => {
      this.#isAwake = false
      this.#serve()
    })
  }

  /** done: with 0, or why there is no connection */
  connect(done) {
    if (wasm.ready(this.core)) return done(OK)
    this.#connects.push(done)
    wasm.connect(this.core, now())
    this.wake()
  }

  get errorText() {
    return text(wasm.error(this.core))
  }

  get connected() {
    return this.core !== 0 && wasm.ready(this.core) === 1
  }

  #leave(handle) {
    const tell = handle.onClosed
    handle.drop()
    tell?.()
  }

  /** Gives up all handles, and closes when the server knows, or after so many ms. */
  close(timeout, done) {
    this.isClosing = true
    clearTimeout(this.#idleTimer)
    this.#idle.clear()
    for (const handle of [...this.handles.values()]) {
      if (!handle.isReleasing) this.#leave(handle)
    }
    const timer = setTimeout(() => this.#whenLeft?.(), timeout)
    this.#whenLeft = () => {
      clearTimeout(timer)
      this.#whenLeft = null
      for (const handle of [...this.handles.values()]) this.#leave(handle)
      this.#end()
      done()
    }
    this.#serve()
  }

  #end() {
    clearTimeout(this.#timer)
    this.#timer = null
    const socket = this.#socket
    this.#socket = null
    this.#isOpen = false
    socket?.destroy()
    wasm.destroy(this.core)
    this.core = 0
    this.#tellConnects(UNREACHABLE)
  }

  #tellConnects(status) {
    const waiting = this.#connects
    this.#connects = []
    for (const done of waiting) done(status)
  }

  #serve() {
    if (this.core === 0) return
    let wants = wasm.wants(this.core, now())
    if (wants & CLOSE) {
      this.#closed(UNREACHABLE)
      wants = wasm.wants(this.core, now())
    }
    if (wants & CONNECT && this.#socket === null) this.#open()
    if (this.#isOpen) this.#send()
    this.#read()
    if (this.core === 0) return // a listener has closed the client
    if (this.#connects.length > 0 && wasm.ready(this.core)) this.#tellConnects(OK)
    const leaving = wasm.leaving(this.core)
    if (this.#whenLeft !== null && leaving === 0 && this.handles.size === 0) return this.#whenLeft()
    this.#keepAlive(this.pending > 0 || leaving > 0 || this.#connects.length > 0)
    this.#setTimer()
  }

  // What the core has to tell.
  #read() {
    for (let event; (event = next(this.core)) !== undefined;) {
      const handle = this.handles.get(event.key)
      if (handle === undefined) continue
      if (event.kind === ENDED) handle.end(event.status)
      else if (event.kind === LOST) handle.onLost?.(event.status)
      else if (event.kind === ASKED) handle.onAsked?.(event.words)
      if (this.core === 0) return
    }
  }

  #send() {
    const t = now() // once: a new time would be a tick, which looks at each lock that is due
    while (!this.#isFull) {
      const size = wasm.output(this.core, t)
      if (size === 0) return
      const at = wasm.output_at(this.core)
      // a copy: the socket may keep it for longer than the core does
      this.#isFull = !this.#socket.write(Buffer.from(memory().subarray(at, at + size)))
      wasm.sent(this.core, size)
    }
  }

  #receive(data) {
    for (let done = 0; done < data.length;) {
      const size = Math.min(wasm.input(this.core), data.length - done)
      if (size === 0) break // it wants to close
      memory().set(data.subarray(done, done + size), wasm.input_at(this.core))
      wasm.received(this.core, size, now())
      done += size
    }
    this.#serve()
  }

  #open() {
    wasm.opening(this.core, now())
    const options = { ...this.place, autoSelectFamily: true }
    let socket
    try {
      socket = this.secure ? tls.connect({ ...options, ...this.secure }) : net.connect(options)
    } catch (error) {
      this.lastError = error // options that Node refuses
      this.#closed(UNREACHABLE)
      return
    }
    const ours = (function_) => (argument) => {
      if (socket === this.#socket) function_(argument)
    }
    this.#socket = socket
    this.#isFull = false
    if (!this.#keepsAlive) socket.unref()
    socket.setNoDelay(true)
    socket.setKeepAlive(true, 60000)
    socket.on(
      this.secure ? 'secureConnect' : 'connect',
      ours(() => {
        this.#isOpen = true
        wasm.opened(this.core, now())
        this.#serve()
      }),
    )
    socket.on(
      'data',
      ours((data) => this.#receive(data)),
    )
    socket.on(
      'drain',
      ours(() => {
        this.#isFull = false
        this.#serve()
      }),
    )
    let status = UNREACHABLE
    socket.on(
      'error',
      ours((error) => {
        this.lastError = error
        if (this.secure && untrusted(error)) status = UNTRUSTED
      }),
    )
    socket.on(
      'close',
      ours(() => {
        this.#closed(status)
        this.#serve()
      }),
    )
  }

  // The connection has ended, or could not be made.
  #closed(status) {
    const socket = this.#socket
    this.#socket = null
    this.#isOpen = false
    socket?.destroy()
    wasm.closed(this.core, status, now())
    if (this.#connects.length > 0) this.#tellConnects(wasm.server_status(this.core) || status)
  }

  // While nothing is under way, connection and timer do not keep the process alive.
  #keepAlive(keeps) {
    if (keeps === this.#keepsAlive) return
    this.#keepsAlive = keeps
    if (keeps) {
      this.#socket?.ref()
      this.#timer?.ref()
    } else {
      this.#socket?.unref()
      this.#timer?.unref()
    }
  }

  // A timer that comes too early does no harm.
  #setTimer() {
    const t = now()
    const wait = wasm.deadline(this.core, t) >>> 0
    if (this.#timer !== null && ((this.#due - t) | 0) <= wait) return
    clearTimeout(this.#timer)
    this.#due = (t + wait) >>> 0
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        setImmediate(() => this.#pass())
      },
      Math.min(wait, LONGEST_TIMER),
    )
    if (!this.#keepsAlive) this.#timer.unref()
  }

  // The loop reads sockets between timers and immediates. So what had come while the loop was blocked has been
  // received by now, and an answer that is still missing is late.
  #pass() {
    if (this.core === 0) return
    if (this.#isOpen) wasm.received(this.core, 0, now())
    this.#serve()
  }
}

module.exports = { Engine, Handle, OK, OOM, PENDING, UNREACHABLE, UNTRUSTED }
