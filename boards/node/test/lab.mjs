// SPDX-License-Identifier: Apache-2.0
// What the suites of this folder share: a private server, a raw connection to it, programs, a proxy, and tests
// that run one after the other and print "ok NAME" or "not ok NAME". All that was started ends with the suite.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import vm from 'node:vm'
import v8 from 'node:v8'

export { sleep }
export const build = path.resolve(process.env.BUILD ?? 'build')
export const folder = path.resolve(process.env.PACKAGE ?? `${build}/node/package`)
export const fairlock = createRequire(import.meta.url)(`${folder}/index.js`)
export const { Client } = fairlock

const SOON_MS = 60000 // for what will come, unless something is broken
const started = new Set()
export const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'node-'))

process.on('exit', () => {
  for (const child of started) child.kill('SIGKILL')
  fs.rmSync(scratch, { recursive: true, force: true })
})
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => process.exit(1))

export function start(command, words, options = {}) {
  const child = spawn(command, words, { stdio: ['pipe', 'pipe', 'inherit'], ...options })
  started.add(child)
  child.ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(signal ?? code)))
  child.ended.then(() => started.delete(child))
  return child
}

export async function until(condition, what) {
  const end = performance.now() + SOON_MS
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > end) throw new Error(`this never came: ${what}`)
    await sleep(5)
  }
}

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.on('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** A connection that sends commands: RESP2, no pushes. */
export class Raw {
  #waiting = []
  #kept = Buffer.alloc(0)

  constructor(port) {
    this.socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('error', () => {})
    this.socket.on('close', () =>
      this.#waiting.splice(0).forEach(({ reject }) => reject(new Error('the server is away'))),
    )
    this.socket.on('data', (data) => {
      this.#kept = Buffer.concat([this.#kept, data])
      for (;;) {
        const reader = { at: 0 }
        const value = this.#parse(reader)
        if (value === undefined) return
        this.#kept = this.#kept.subarray(reader.at)
        const { resolve, reject } = this.#waiting.shift()
        if (value instanceof Error) reject(value)
        else resolve(value)
      }
    })
  }

  #parse(reader) {
    const end = this.#kept.indexOf('\r\n', reader.at)
    if (end < 0) return undefined
    const line = this.#kept.toString('utf8', reader.at + 1, end)
    const type = String.fromCharCode(this.#kept[reader.at])
    reader.at = end + 2
    if (type === '+') return line
    if (type === '-') return new Error(line)
    if (type === ':') return Number(line)
    const size = Number(line)
    if (size < 0) return null
    if (type === '$') {
      reader.at += size + 2
      return reader.at > this.#kept.length
        ? undefined
        : this.#kept.toString('utf8', reader.at - size - 2, reader.at - 2)
    }
    const values = []
    for (let i = 0; i < size; i++) {
      const value = this.#parse(reader)
      if (value === undefined) return undefined
      values.push(value)
    }
    return values
  }

  call(...words) {
    const parts = words.map((word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.socket.write(`*${words.length}\r\n${parts.join('')}`)
    })
  }

  queue(name) {
    return this.call('LRANGE', `redisson_lock_queue:{${name}}`, 0, -1)
  }

  /** Waits until nobody holds or waits. */
  async free(name) {
    await until(async () => (await this.call('EXISTS', name, `redisson_lock_queue:{${name}}`)) === 0, `${name} free`)
  }
}

/** A redis-server of the test's own. */
export class Server {
  static async start(...words) {
    const server = new Server()
    server.port = await freePort()
    server.words = words
    await server.run()
    return server
  }

  async run() {
    const words = [
      '--port',
      this.port,
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--dir',
      scratch,
      '--loglevel',
      'warning',
      ...this.words,
    ]
    this.child = start(`${build}/redis-server`, words, { stdio: ['ignore', 'ignore', 'inherit'] })
    await until(
      () =>
        new Promise((resolve) => {
          const socket = net.connect(this.port, '127.0.0.1')
          socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
          socket.on('connect', () => socket.destroy())
        }),
      'a server',
    )
    this.raw = new Raw(this.port)
  }

  /** One that also speaks TLS, by a certificate of that name. asks: for the client's. */
  static async secure(name, asks, certificates) {
    const port = await freePort()
    const server = await Server.start(
      '--tls-port',
      port,
      '--tls-cert-file',
      `${certificates}/${name}.crt`,
      '--tls-key-file',
      `${certificates}/${name}.key`,
      '--tls-ca-cert-file',
      `${certificates}/ca.crt`,
      '--tls-auth-clients',
      asks ? 'yes' : 'no',
    )
    server.safeUrl = `rediss://127.0.0.1:${port}`
    return server
  }

  signal(name) {
    this.child.kill(name)
  }

  async kill() {
    this.signal('SIGKILL')
    await this.child.ended
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`
  }
}

/** Stands between a client and its server. */
export class Proxy {
  sockets = new Set()
  connections = 0

  static async start(port) {
    const proxy = new Proxy()
    proxy.server = net.createServer((client) => {
      proxy.connections++
      const server = net.connect({ port, host: '127.0.0.1', noDelay: true })
      for (const [from, to] of [
        [client, server],
        [server, client],
      ]) {
        proxy.sockets.add(from)
        from.on('error', () => {})
        from.on('close', () => {
          proxy.sockets.delete(from)
          to.destroy()
        })
        from.on('data', (data) => to.write(data))
      }
    })
    proxy.server.listen(0, '127.0.0.1')
    await new Promise((resolve) => proxy.server.on('listening', resolve))
    proxy.url = `redis://127.0.0.1:${proxy.server.address().port}`
    return proxy
  }

  /** From now on, nothing passes on the connections that there are. */
  mute() {
    for (const socket of this.sockets) socket.pause()
  }

  cut() {
    for (const socket of this.sockets) socket.resetAndDestroy?.() ?? socket.destroy()
  }

  end() {
    this.server.close()
    this.cut()
  }
}

/** A program that is driven by lines: tests/interop/RELEASES.md. */
export class Peer {
  #lines = []
  #waiting = []

  static async start(words, port) {
    const peer = new Peer()
    peer.child = start(words[0], [...words.slice(1), '127.0.0.1', String(port), '5000', '30000'])
    let kept = ''
    peer.child.stdout.on('data', (data) => {
      const lines = (kept + data).split('\n')
      kept = lines.pop()
      for (const line of lines) {
        if (peer.#waiting.length > 0) peer.#waiting.shift()(line)
        else peer.#lines.push(line)
      }
    })
    if ((await peer.hear()) !== 'ready') throw new Error(`${words} is not ready`)
    return peer
  }

  say(line) {
    this.child.stdin.write(`${line}\n`)
  }

  hear() {
    return this.#lines.length > 0
      ? Promise.resolve(this.#lines.shift())
      : new Promise((resolve) => this.#waiting.push(resolve))
  }
}

export const cClient = [`${build}/compat/this/client`]

v8.setFlagsFromString('--expose-gc')
export const collect = vm.runInNewContext('gc')

const tests = []
export function test(name, function_) {
  tests.push({ name, function_ })
}

/** Runs them, or those whose names have one of the program's arguments. */
export async function run() {
  const wanted = process.argv.slice(2)
  const suite = path.basename(process.argv[1], '.mjs')
  let bad = 0
  for (const { name, function_ } of tests) {
    if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue
    try {
      await function_()
      console.log(`ok ${suite}: ${name}`)
    } catch (error) {
      bad++
      console.log(`# ${String(error.stack).replace(/\n/g, '\n# ')}`)
      console.log(`not ok ${suite}: ${name}`)
    }
  }
  process.exit(bad > 0 ? 1 : 0)
}

process.on('unhandledRejection', (error) => {
  console.log(`# unhandled: ${error.stack}\nnot ok no rejection is unhandled`)
  process.exit(1)
})
