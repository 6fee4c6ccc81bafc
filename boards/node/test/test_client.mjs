#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The package for Node with a real server that works: what each call does, beside clients in C.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import net from 'node:net'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import {
  build,
  cClient,
  Client,
  collect,
  fairlock,
  folder,
  Peer,
  run,
  scratch,
  Server,
  sleep,
  start,
  test,
  until,
} from './lab.mjs'

const server = await Server.start('--unixsocket', `${scratch}/socket`)
const { url, raw } = server
const client = new Client(url, { clientId: 'tests' })
const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')
const rejects = (promise, class_, code) =>
  assert.rejects(promise, (error) => {
    assert.ok(error instanceof class_, `${error.stack}`)
    assert.equal(error.code, code)
    return true
  })

const script = (body) =>
  start(process.execPath, [
    '--input-type=module',
    '-e',
    `
  import { createRequire } from 'node:module'
  const { Client } = createRequire('${folder}/')('${folder}/index.js')
  const client = new Client('${url}')
  ${body}`,
  ])

test('a hold has a name, a token and a lease', async () => {
  const hold = await client.lock('a')
  assert.equal(hold.name, 'a')
  assert.equal(typeof hold.token, 'bigint')
  assert.ok(hold.remaining > 20000 && hold.remaining <= 30000, `${hold.remaining}`)
  assert.equal(hold.lost, false)
  assert.match((await raw.call('HKEYS', 'a'))[0], /^tests\./)
  await hold.release()
  assert.equal(hold.remaining, 0)
  assert.equal(hold.lost, false)
  assert.equal(await raw.call('EXISTS', 'a'), 0)
  const next = await client.lock('a')
  assert.ok(next.token > hold.token)
  await next.release()
  await next.release() // the same promise
})

test('a lock that is used again keeps its subscription', async () => {
  const other = new Client(url, { clientName: 'again' })
  const subscriptions = async () => Number(/name=again .* sub=(\d+)/.exec(await raw.call('CLIENT', 'LIST'))[1])
  const ids = new Set()
  for (let i = 0; i < 10; i++) {
    const hold = await other.lock('again')
    ids.add((await raw.call('HKEYS', 'again'))[0])
    await hold.release()
    assert.equal(hold.remaining, 0)
  }
  assert.equal(ids.size, 1)
  assert.equal(await subscriptions(), 1)
  await Promise.all(Array.from({ length: 300 }, (_, i) => other.using(`again:${i}`, () => {})))
  assert.ok((await subscriptions()) <= 256)
  await until(async () => (await subscriptions()) === 0, 'the end of idle subscriptions')
  await other.close()
})

test('a name is a string or bytes', async () => {
  const bytes = new Uint8Array([0, 255, 10, 123])
  const hold = await client.lock(bytes)
  assert.equal(await client.tryLock(bytes), null)
  await hold.release()
  const umlaut = await client.lock('tür')
  assert.equal(await raw.call('EXISTS', 'tür'), 1)
  await umlaut.release()
  const longest = await client.lock('x'.repeat(4096))
  await longest.release()
})

test('a try is refused, and a wait ends', async () => {
  const hold = await client.lock('b')
  assert.equal(await client.tryLock('b'), null)
  await rejects(client.lock('b', { wait: 0 }), fairlock.BusyError, 'FAIRLOCK_BUSY')
  const began = performance.now()
  await rejects(client.lock('b', { wait: 200 }), fairlock.TimeoutError, 'FAIRLOCK_TIMEOUT')
  assert.ok(performance.now() - began >= 199)
  await hold.release()
  const second = await client.tryLock('b')
  await second.release()
})

test('whoever asks first is first, also beside C', async () => {
  const first = await client.lock('order')
  const peers = await Promise.all([1, 2, 3].map(() => Peer.start(cClient, server.port)))
  const order = []
  const turns = []
  for (let i = 0; i < 6; i++) {
    const peer = peers[(i - 1) / 2]
    if (peer) {
      peer.say('acquire order 60000 0')
      turns.push(
        peer.hear().then((line) => {
          order.push([i, BigInt(line.split(' ')[1])])
          peer.say('release order')
        }),
      )
    } else {
      turns.push(
        client.lock('order').then((hold) => {
          order.push([i, hold.token])
          return hold.release()
        }),
      )
    }
    await until(async () => (await raw.queue('order')).length === i + 1, 'a place in the queue')
  }
  await first.release()
  await Promise.all(turns)
  assert.deepEqual(
    order.map(([i]) => i),
    [0, 1, 2, 3, 4, 5],
  )
  assert.ok(order.every(([, token], i) => token > (i > 0 ? order[i - 1][1] : first.token)))
  peers.forEach((peer) => peer.child.kill('SIGKILL'))
  await raw.free('order')
})

test('a hundred locks at a time, and a hundred for one lock', async () => {
  const holds = await Promise.all(Array.from({ length: 100 }, (_, i) => client.lock(`many:${i}`)))
  assert.equal(new Set(holds.map((hold) => hold.token)).size, 100)
  await Promise.all(holds.map((hold) => hold.release()))
  const tokens = []
  let inside = 0
  await Promise.all(
    Array.from({ length: 100 }, () =>
      client.using('one', async (hold) => {
        assert.equal(++inside, 1)
        tokens.push(hold.token)
        await sleep(Math.random() * 2)
        inside--
      }),
    ),
  )
  assert.ok(tokens.every((token, i) => i === 0 || token > tokens[i - 1]))
  await raw.free('one')
})

test('thousands of locks at a time', async () => {
  const names = Array.from({ length: 5000 }, (_, i) => `fleet:${i}:${'x'.repeat(i % 300)}`)
  const holds = await Promise.all(names.map((name) => client.lock(name)))
  assert.ok(holds.every((hold) => hold.remaining > 0))
  await Promise.all(holds.map((hold) => hold.release()))
  assert.equal(await raw.call('EXISTS', ...names), 0)
})

// The processor's time for `count` locks at once, their release and the end of their client, `rounds` times.
async function timeOf(count, rounds) {
  const began = process.cpuUsage()
  for (let round = 0; round < rounds; round++) {
    const other = new Client(url)
    const holds = await Promise.all(Array.from({ length: count }, (_, i) => other.lock(`linear:${i}`)))
    await Promise.all(holds.map((hold) => hold.release()))
    await other.close()
  }
  return process.cpuUsage(began).user
}

test('ten times as many locks take ten times as long, and not a hundred times', async () => {
  const few = await timeOf(1000, 5)
  const many = await timeOf(10000, 1)
  console.log(`# 10000 locks take ${((5 * many) / few).toFixed(1)} times as long as 1000`)
  assert.ok(many < 8 * few, `${many} us, and five times 1000: ${few} us`)
})

test('an aborted wait leaves the queue', async () => {
  const hold = await client.lock('c')
  const controller = new AbortController()
  const reason = new Error('no longer')
  const wait = client.lock('c', { signal: controller.signal })
  await until(async () => (await raw.queue('c')).length === 1, 'a place')
  controller.abort(reason)
  await assert.rejects(wait, reason)
  await until(async () => (await raw.queue('c')).length === 0, 'no place')
  await assert.rejects(client.lock('c', { signal: controller.signal }), reason)
  await assert.rejects(client.lock('c', { signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' })
  await hold.release()
  await raw.free('c')
})

test('two hundred aborts around a grant leave no hold', async () => {
  let [granted, aborted] = [0, 0]
  for (let i = 0; i < 200; i++) {
    const hold = await client.lock('d')
    const controller = new AbortController()
    const wait = client.lock('d', { signal: controller.signal }).then(
      (next) => {
        granted++
        return next.release()
      },
      () => aborted++,
    )
    if (i % 2 === 0) await until(async () => (await raw.queue('d')).length === 1, 'a place')
    const release = hold.release()
    const end = performance.now() + Math.random()
    while (performance.now() < end) await new Promise(setImmediate)
    controller.abort()
    await Promise.all([release, wait])
  }
  assert.equal(granted + aborted, 200)
  console.log(`# ${granted} granted, ${aborted} aborted`)
  await raw.free('d')
})

test('a lost hold says so', async () => {
  const short = new Client(url, { leaseMs: 600 })
  const hold = await short.lock('e')
  const { signal } = hold
  const told = new Promise((resolve) => hold.once('lost', resolve))
  await raw.call('DEL', 'e')
  const error = await told
  assert.ok(error instanceof fairlock.LostError)
  assert.equal(signal.aborted, true)
  assert.equal(signal.reason, error)
  assert.equal(hold.lost, true)
  assert.equal(hold.remaining, 0)
  await rejects(hold.release(), fairlock.LostError, 'FAIRLOCK_LOST')
  await rejects(
    short.using('e', () => raw.call('DEL', 'e')),
    fairlock.LostError,
    'FAIRLOCK_LOST',
  )
  await short.close()
})

test('a lease is renewed, or not if it is fixed', async () => {
  const short = new Client(url, { leaseMs: 500 })
  const [renewed, fixed] = await Promise.all([short.lock('f'), short.lock('g', { lease: 500 })])
  await sleep(1500)
  assert.ok(renewed.remaining > 0)
  assert.equal(renewed.lost, false)
  assert.equal(fixed.lost, true)
  await renewed.release()
  await rejects(fixed.release(), fairlock.LostError, 'FAIRLOCK_LOST')
  await short.close()
})

test('after a blocked loop, the hold is lost at once', async () => {
  const short = new Client(url, { leaseMs: 500 })
  const hold = await short.lock('h')
  const told = new Promise((resolve) => hold.once('lost', resolve))
  const end = performance.now() + 700
  while (performance.now() < end);
  assert.equal(hold.remaining, 0)
  assert.equal(hold.lost, true)
  await told
  await assert.rejects(hold.release(), fairlock.LostError)
  // and one whose lease has not ended is held
  const long = new Client(url, { leaseMs: 20000 })
  const other = await long.lock('h')
  const later = performance.now() + 3000 // longer than an answer may take
  while (performance.now() < later);
  await sleep(100)
  assert.equal(other.lost, false)
  await other.release()
  await Promise.all([short.close(), long.close()])
})

test('a hold does not outlive the sleep of the machine', async () => {
  const child = script(`
    const os = (await import('node:os')).default
    const [wall, up] = [Date.now, os.uptime]
    let slept = 0
    Date.now = () => wall() + slept
    const hold = await client.lock('sleeps')
    Date.now = () => wall() + 3600000 // the clock is set
    if (hold.remaining === 0) process.exit(3)
    slept = 40000
    Date.now = () => wall() + slept
    os.uptime = () => up() + slept / 1000
    process.exit(hold.remaining === 0 && hold.lost ? 0 : 4)`)
  assert.equal(await child.ended, 0)
  await raw.call('DEL', 'sleeps')
})

test('the signal aborts with the release', async () => {
  const hold = await client.lock('i')
  const { signal } = hold
  assert.equal(signal.aborted, false)
  await hold.release()
  assert.equal(signal.aborted, true)
  assert.equal(hold.signal, signal)
  const other = await client.lock('i')
  await other.release()
  assert.equal(other.signal.aborted, true)
})

test('using returns what its function does, and passes its error on', async () => {
  assert.equal(await client.using('j', async (hold) => typeof hold.token), 'bigint')
  assert.equal(await client.using('j', { wait: 100, shared: true }, () => 7), 7)
  await assert.rejects(
    client.using('j', () => {
      throw new Error('mine')
    }),
    /mine/,
  )
  await raw.free('j')
})

test('asyncDispose releases', async () => {
  const hold = await client.lock('k')
  await hold[asyncDispose]()
  assert.equal(await raw.call('EXISTS', 'k'), 0)
})

test('a lock is shared up to a limit', async () => {
  const limit = 3
  const holds = await Promise.all([1, 2, 3].map(() => client.lock('l', { limit })))
  assert.equal(await client.tryLock('l', { limit }), null)
  assert.equal(await client.tryLock('l'), null)
  const next = client.lock('l', { limit })
  await holds[0].release()
  await Promise.all([(await next).release(), holds[1].release(), holds[2].release()])
  const readers = await Promise.all(Array.from({ length: 20 }, () => client.lock('l', { shared: true })))
  await Promise.all(readers.map((hold) => hold.release()))
  await raw.free('l')
})

// In a function of its own, so that nothing keeps the hold.
async function drop(name, options = {}, use = () => {}) {
  use(await client.lock(name, options))
}

async function collectAll() {
  for (let i = 0; i < 10; i++) {
    collect()
    await sleep(10)
  }
}

test('a hold that is garbage collected is released, with a warning', async () => {
  const warnings = []
  process.on('warning', (warning) => warnings.push(warning))
  await drop('m')
  await until(async () => {
    await collectAll()
    return (await raw.call('EXISTS', 'm')) === 0
  }, 'the end of a dropped hold')
  await until(() => warnings.length > 0, 'a warning')
  assert.equal(warnings[0].code, 'FAIRLOCK_DROPPED')
  assert.match(warnings[0].message, /"m"/)
  // but not while somebody listens, or has its signal
  const told = []
  const signals = []
  await drop('n', {}, (hold) => hold.on('lost', () => told.push('n')))
  await drop('o', {}, (hold) => signals.push(hold.signal))
  await collectAll()
  assert.equal(await raw.call('EXISTS', 'n', 'o'), 2)
  await raw.call('DEL', 'n', 'o')
  const short = new Client(url, { leaseMs: 600 })
  await short.lock('p').then((hold) => hold.on('lost', () => told.push('p')))
  await raw.call('DEL', 'p')
  await until(() => told.includes('p'), 'a loss that a listener hears')
  await short.close()
})

test('a client that is garbage collected is closed', async () => {
  const connected = async () => / name=dropped /.test(await raw.call('CLIENT', 'LIST'))
  const use = async () => {
    const dropped = new Client(url, { clientName: 'dropped' })
    await dropped.using('dropped', () => {})
    return dropped.lock('dropped')
  }
  const holds = [await use()]
  await collectAll()
  assert.ok(await connected(), 'a hold keeps its client')
  await holds.pop().release()
  await until(async () => {
    await collectAll()
    return !(await connected())
  }, 'the end of its connection')
  assert.equal(await raw.call('EXISTS', 'dropped'), 0)
})

test('a holder is asked', async () => {
  const listening = new Client(url, { listen: true })
  const hold = await listening.lock('q')
  const asked = []
  hold.on('asked', (words) => asked.push(words))
  await promisify(execFile)(`${build}/fairlock`, ['break', '--ask', 'q'], {
    env: { ...process.env, FAIRLOCK_URL: url },
  })
  await until(() => asked.length === 1, 'an asking')
  const [id] = await raw.call('HKEYS', 'q')
  await raw.call('PUBLISH', `redisson_lock__channel:{q}:${id}`, `${hold.token} operator an \u00fcpdate`)
  await until(() => asked.length === 2, 'an asking with words')
  assert.equal(asked[1], 'operator an \u00fcpdate')
  await hold.release()
  await listening.close()
})

test('arguments out of their range are refused', async () => {
  await assert.rejects(client.lock(''), { name: 'RangeError', code: 'FAIRLOCK_INVALID' })
  await assert.rejects(client.lock('{x}'), { code: 'FAIRLOCK_INVALID' })
  await assert.rejects(client.lock('x'.repeat(4097)), { code: 'FAIRLOCK_TOO_LONG' })
  await assert.rejects(client.lock(7), { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })
  for (const options of [
    { wait: -1 },
    { wait: NaN },
    { lease: 0 },
    { lease: 99 },
    { limit: 0 },
    { limit: 1.5 },
    { limit: 1001 },
  ]) {
    await assert.rejects(client.lock('x', options), { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' })
  }
  await assert.rejects(client.lock('x', { wait: '1' }), { name: 'TypeError' })
  assert.throws(() => new Client(url, { tls: {} }), { name: 'TypeError' })
  assert.throws(() => new Client(url, { waiterMs: 1 }), { name: 'RangeError', code: 'FAIRLOCK_INVALID' })
  assert.throws(() => new Client(url, { clientId: 'a:b' }), { code: 'FAIRLOCK_INVALID' })
  assert.throws(() => new Client(url, { leaseMs: 'long' }), { name: 'TypeError' })
  for (const name of ['user', 'password', 'clientId', 'clientName']) {
    assert.throws(() => new Client(url, { [name]: 7 }), { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })
    assert.throws(() => new Client(url, { [name]: 'a\0b' }), { name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' })
  }
})

test('null stands for an option that is not given', async () => {
  const names = ['user', 'password', 'clientId', 'clientName', 'leaseMs', 'waiterMs', 'claimMs', 'offlineMs', 'tls']
  const other = new Client(url, Object.fromEntries(names.map((name) => [name, null])))
  await other.using('null', async (hold) => {
    assert.ok(hold.remaining > 20000)
    assert.doesNotMatch((await raw.call('HKEYS', 'null'))[0], /null/)
  })
  await other.close()
})

test('a wrong timeout of close does not keep the client open for ever', async () => {
  const other = new Client(url)
  await other.connect()
  for (const timeout of [NaN, -1, Infinity]) {
    await assert.rejects(other.close({ timeout }), { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' })
  }
  await assert.rejects(other.close({ timeout: '1' }), { name: 'TypeError' })
  await other.using('still', () => {})
  await other.close({ timeout: 1000 })
  await other.close()
  await assert.rejects(other.lock('still'), fairlock.ClosedError)
})

test('a wait that ends before there is a connection', async () => {
  const silent = net.createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => silent.on('listening', resolve))
  const other = new Client(`redis://127.0.0.1:${silent.address().port}`)
  for (const wait of [1, 200]) {
    await rejects(other.lock('early', { wait }), fairlock.ConnectionError, 'FAIRLOCK_UNREACHABLE')
  }
  await other.close()
  silent.close()
})

test('URLs', async () => {
  for (const wrong of [
    '',
    'localhost:6379',
    'http://x',
    'redis://',
    'redis://:0',
    'redis://h:0',
    'redis://h:70000',
    'redis://h:x',
    'redis://::1',
    'redis://a,b',
    'redis://h/x',
    'redis://h?db=1',
    'unix://relative',
    'unix:///s?x=1',
    'redis://u%:p@h',
    'redis://u:p%00@h',
    'redis://h\0',
    'unix:///a%00b',
    7,
  ]) {
    assert.throws(() => new Client(wrong), { name: 'TypeError', code: 'ERR_INVALID_URL' }, `${wrong}`)
  }
  for (const unsupported of ['redis+sentinel://h/service', 'rediss+cluster://h', 'valkey+cluster://a,b']) {
    assert.throws(() => new Client(unsupported), { name: 'TypeError', code: 'FAIRLOCK_UNSUPPORTED' })
  }
  try {
    new Client('redis://user:secret@h:x')
  } catch (error) {
    assert.doesNotMatch(error.message, /secret/)
  }
  await raw.call('ACL', 'SETUSER', 'door', 'on', '>p@ss/w%', '~*', '&*', '+@all')
  const places = [
    `redis://door:p@ss%2Fw%25@127.0.0.1:${server.port}`,
    `valkey://localhost:${server.port}/3`,
    new URL(url),
    `unix://${server.words[1]}`,
    `unix://${server.words[1]}?db=3`,
  ]
  for (const place of places) {
    const other = new Client(place, { clientName: 'named' })
    await other.using('url', async () => assert.match(await raw.call('CLIENT', 'LIST'), /name=named/))
    await other.close()
  }
  const three = new Client(`${url}/3`)
  const hold = await three.lock('in3')
  await raw.call('SELECT', 3)
  assert.equal(await raw.call('EXISTS', 'in3'), 1)
  await raw.call('SELECT', 0)
  await hold.release()
  await three.close()
})

test('whom the server refuses is told', async () => {
  for (const [place, options] of [
    [url.replace('//', '//door:wrong@'), {}],
    [url, { user: 'nobody', password: 'x' }],
  ]) {
    const other = new Client(place, options)
    await rejects(other.connect(), fairlock.DeniedError, 'FAIRLOCK_DENIED')
    await assert.rejects(
      other.lock('x'),
      (error) => error instanceof fairlock.DeniedError && /WRONGPASS/.test(error.message),
    )
    await other.close()
  }
  await raw.call('ACL', 'SETUSER', 'poor', 'on', '>p', '~nothing', '&*', '+@all')
  const poor = new Client(url.replace('//', '//poor:p@'))
  await poor.connect()
  assert.equal(poor.connected, true)
  await assert.rejects(poor.lock('x'), (error) => error.code === 'FAIRLOCK_DENIED' && /NOPERM/.test(error.message))
  await poor.close()
})

test('close ends waits and holds', async () => {
  const other = new Client(url)
  const hold = await other.lock('r')
  const { signal } = hold
  const wait = other.lock('r')
  const listed = other.lock('s').then((one) => new Promise((resolve) => one.on('lost', resolve)))
  await until(async () => (await raw.queue('r')).length === 1, 'a place')
  const released = await other.lock('t')
  const release = released.release() // goes on
  const closing = other.close()
  await rejects(wait, fairlock.ClosedError, 'FAIRLOCK_CLOSED')
  await closing
  await release
  assert.equal(signal.aborted, true)
  assert.equal(hold.lost, true)
  assert.equal(hold.remaining, 0)
  assert.ok((await listed) instanceof fairlock.ClosedError)
  await rejects(hold.release(), fairlock.ClosedError, 'FAIRLOCK_CLOSED')
  await rejects(other.lock('r'), fairlock.ClosedError, 'FAIRLOCK_CLOSED')
  await rejects(other.connect(), fairlock.ClosedError, 'FAIRLOCK_CLOSED')
  await other.close()
  assert.equal(await raw.call('EXISTS', 'r', 's', 't'), 0)
  await new Client(url).close()
})

test('a listener may close the client', async () => {
  const other = new Client(url, { leaseMs: 600 })
  const holds = await Promise.all(['r', 's', 't'].map((name) => other.lock(name)))
  const closed = new Promise((resolve) => {
    holds[0].signal.addEventListener('abort', () => {
      resolve(other.close())
      rejects(other.lock('u'), fairlock.ClosedError, 'FAIRLOCK_CLOSED')
    })
  })
  await raw.call('DEL', 'r')
  await closed
  assert.equal(await raw.call('EXISTS', 'r', 's', 't', 'u'), 0)
})

test('a program ends when nothing is under way', async () => {
  assert.equal(await script("await client.lock('u').then((hold) => hold.release())").ended, 0)
  assert.equal(await script("globalThis.hold = await client.lock('v')").ended, 0)
  assert.equal(await script('await client.connect()').ended, 0)
  await raw.call('DEL', 'v')
  const hold = await client.lock('u')
  const waits = script(
    "await client.lock('u', { wait: 300 }).catch((error) => process.exit(error.code === 'FAIRLOCK_TIMEOUT' ? 3 : 4))",
  )
  assert.equal(await waits.ended, 3)
  await hold.release()
})

test('threads have clients of their own', async () => {
  const code = `const { Client } = require('${folder}')
    const client = new Client('${url}')
    const { parentPort } = require('node:worker_threads')
    ;(async () => {
      for (let i = 0; i < 50; i++) await client.using('w', (hold) => parentPort.postMessage(hold.token))
      await client.close()
    })()`
  const tokens = new Set()
  await Promise.all(
    [1, 2, 3].map(
      () =>
        new Promise((resolve, reject) => {
          const worker = new Worker(code, { eval: true })
          worker
            .on('message', (token) => tokens.add(token))
            .on('error', reject)
            .on('exit', resolve)
        }),
    ),
  )
  assert.equal(tokens.size, 150)
  await raw.free('w')
})

test('an error that a listener throws is not lost, and breaks nothing', async () => {
  const child = script(`
    process.on('uncaughtException', async (error) => {
      await client.using('x', () => {})
      process.exit(error.message === 'mine' ? 5 : 6)
    })
    const short = new Client('${url}', { leaseMs: 600 })
    const hold = await short.lock('y')
    hold.on('lost', () => { throw new Error('mine') })
    await client.lock('y', { wait: 5000 }).catch(() => {})`)
  await until(async () => (await raw.queue('y')).length === 1, 'a place')
  await raw.call('DEL', 'y')
  assert.equal(await child.ended, 5)
})

await run()
