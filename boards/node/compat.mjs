// SPDX-License-Identifier: Apache-2.0
// The package for Node as a program that is driven by lines, which tests/interop/RELEASES.md describes:
//   make compat CLIENT="node boards/node/compat.mjs"
// And by one line more, "work NAME LIMIT", for test_mixed.py, which tests/interop/client.c explains.
// PACKAGE: the folder of the package; by default that which `make node` makes.
import { createRequire } from 'node:module'
import path from 'node:path'
import readline from 'node:readline'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const folder = path.resolve(process.env.PACKAGE ?? path.join(here, '../../build/node/package'))
const require = createRequire(import.meta.url)
const { Client } = require(folder)
const { Engine } = require(path.join(folder, 'lib/engine.js'))

const [host, port, waiterMs, leaseMs] = process.argv.slice(2)
const engine = new Engine({ host, port: Number(port) }, null, {
  waiterMs: Number(waiterMs ?? 0),
  leaseMs: Number(leaseMs ?? 0),
})
const ANSWERS = { '-1': 'busy', '-2': 'timeout', '-4': 'lost', '-5': 'not-held' }

const handles = new Map()
function handleOf(name, limit) {
  const key = `${limit} ${name}`
  if (!handles.has(key)) handles.set(key, engine.open(Buffer.from(name), limit))
  return handles.get(key)
}

const say = (line) => process.stdout.write(`${line}\n`)
const answer = (status, good) => say(status === 0 ? good() : (ANSWERS[status] ?? `error ${status}`))

function acquire(handle, wait, lease) {
  if (typeof handle === 'number') return answer(handle)
  const leaseOr = Number(lease) === 0 ? 0x7e7e7e7e : Number(lease)
  return new Promise((resolve) => handle.acquire(Number(wait), leaseOr, resolve)).then((status) =>
    answer(status, () => `held ${handle.token}`),
  )
}

const release = (handle) =>
  new Promise((resolve) => handle.release(resolve)).then((status) => answer(status, () => 'released'))

// One of two locks after the other, the second often shared, and now and then for 4 s, until another line comes.
let stops = false
const nowUs = () => process.hrtime.bigint() / 1000n
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// Tells until when it believed in its hold: the clock is read before the belief.
async function workIn(client, name, limit, ms) {
  const at = nowUs()
  const tell = (what, error) =>
    say(`${what} ${name} ${error === undefined ? 0 : error.code === 'FAIRLOCK_TIMEOUT' ? -2 : error.code}`)
  const hold = await client
    .lock(name, { wait: 120000, ...(limit > 0 ? { limit } : {}) })
    .catch((error) => tell('acquired', error))
  if (hold === undefined) return
  tell('acquired')
  const begun = nowUs()
  let seen = 0n
  for (let now = begun; seen === 0n || now < begun + BigInt(ms) * 1000n; now = nowUs()) {
    if (hold.remaining === 0) break
    seen = now
    await pause(1)
  }
  if (seen > 0n) say(`hold ${name} ${limit} ${at} ${begun} ${seen} ${hold.token}`)
  await hold.release().then(
    () => tell('released'),
    (error) => tell('released', error),
  )
}

async function work(name, limit) {
  const client = new Client(`redis://${host}:${port}`, { waiterMs: Number(waiterMs), leaseMs: Number(leaseMs) })
  const oneOf = (count) => Math.floor(Math.random() * count)
  while (!stops) {
    const isSecond = oneOf(2) === 1
    const isShared = isSecond && oneOf(4) > 0
    const ms = oneOf(200) === 0 ? 4000 : oneOf(20)
    await workIn(client, isSecond ? `${name}.shared` : name, isShared ? Number(limit) : 0, ms)
    await pause(oneOf(20))
  }
  say('done')
}

const verbs = {
  id: (name) => say(`id ${handleOf(name, -1).id}`),
  acquire: (name, wait, lease) => acquire(handleOf(name, -1), wait, lease),
  release: (name) => release(handleOf(name, -1)),
  holds: (name) => {
    const handle = handleOf(name, -1)
    say(handle.remaining > 0 ? `held ${handle.token}` : 'not-held')
  },
  'share-id': (name, limit) => say(`id ${handleOf(name, Number(limit)).id}`),
  share: (name, limit, wait, lease) => acquire(handleOf(name, Number(limit)), wait, lease),
  unshare: (name, limit) => release(handleOf(name, Number(limit))),
}

engine.connect(async (status) => {
  if (status !== 0) process.exit(1)
  say('ready')
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...words] = line.split(' ')
    if (verb === 'stop') stops = true
    else if (verb === 'work') void work(...words)
    else if (verbs[verb] === undefined) say('unsupported')
    else await verbs[verb](...words)
  }
  process.exit(0) // what it holds or waits for ends with its connection and its lease
})
