#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The package for Node while the server is killed, stopped, cut off or not there, clients are killed, and by TLS.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import {
  build,
  cClient,
  Client,
  fairlock,
  folder,
  Peer,
  Proxy,
  run,
  Server,
  sleep,
  start,
  test,
  until,
} from './lab.mjs'

const certificates = `${build}/tls/certificates`
const script = (url, body) =>
  start(process.execPath, [
    '--input-type=module',
    '-e',
    `
  import { createRequire } from 'node:module'
  const { Client } = createRequire('${folder}/')('${folder}/index.js')
  const client = new Client('${url}', { waiterMs: 2000, leaseMs: 2000 })
  ${body}`,
  ])

// A release whose answer a cut has cost: it was carried out, or the lease ends the hold.
const released = (hold) =>
  hold.release().catch((error) => {
    if (error.code !== 'FAIRLOCK_UNKNOWN') throw error
  })

test('without a server, calls say so', async () => {
  const client = new Client('redis://127.0.0.1:1', { waiterMs: 2000 })
  const fails = (promise) =>
    assert.rejects(promise, (error) => {
      assert.ok(error instanceof fairlock.ConnectionError, error.stack)
      assert.equal(error.code, 'FAIRLOCK_UNREACHABLE')
      assert.equal(error.cause.code, 'ECONNREFUSED')
      return true
    })
  await fails(client.connect())
  await fails(client.lock('a', { wait: 0 }))
  await fails(client.lock('a', { wait: 100 }))
  const began = performance.now()
  await fails(client.lock('a')) // after offlineMs
  assert.ok(performance.now() - began >= 3900, 'too early')
  await assert.rejects(client.lock('a', { signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' })
  await client.close()
})

test('a client connects when the server comes', async () => {
  const server = await Server.start()
  await server.kill()
  const client = new Client(server.url)
  const wait = client.lock('b')
  await sleep(300)
  await server.run()
  await (await wait).release()
  await client.close()
})

test('when the server is killed, holds are lost, and waits go on', async () => {
  const server = await Server.start()
  const client = new Client(server.url, { leaseMs: 2000 })
  const hold = await client.lock('c')
  const lost = new Promise((resolve) => hold.on('lost', resolve))
  const other = new Client(server.url)
  const wait = other.lock('c')
  await until(async () => (await server.raw.queue('c')).length === 1, 'a place')
  await server.kill()
  await server.run()
  await lost
  const next = await wait
  assert.ok(next.token > hold.token)
  await next.release()
  await Promise.all([client.close(), other.close()])
})

test('a server that is stopped for a while costs no hold', async () => {
  const server = await Server.start()
  const client = new Client(server.url)
  const hold = await client.lock('d')
  const wait = client.lock('d')
  const release = client.lock('e').then((one) => {
    server.signal('SIGSTOP')
    return one.release()
  })
  await sleep(4000) // longer than an answer may take
  assert.equal(hold.lost, false)
  server.signal('SIGCONT')
  await release
  await hold.release()
  await (await wait).release()
  await client.close()
  await server.raw.free('d')
})

test('a hold ends in time while the server is stopped', async () => {
  const server = await Server.start()
  const client = new Client(server.url, { leaseMs: 1000 })
  const hold = await client.lock('f')
  const began = performance.now()
  server.signal('SIGSTOP')
  await new Promise((resolve) => hold.on('lost', resolve))
  assert.ok(performance.now() - began < 10000, 'long after its lease')
  assert.equal(hold.signal.aborted, true)
  await assert.rejects(hold.release(), fairlock.LostError)
  server.signal('SIGCONT')
  await client.close()
})

test('cut connections lose nothing', async () => {
  const server = await Server.start()
  const proxies = await Promise.all([1, 2, 3].map(() => Proxy.start(server.port)))
  const clients = proxies.map((proxy) => new Client(proxy.url))
  let [inside, last, goes] = [0, 0n, true]
  const turns = clients.flatMap((client) =>
    [1, 2, 3].map(async () => {
      for (let i = 0; i < 40; i++) {
        const hold = await client.lock('g')
        assert.equal(++inside, 1)
        assert.ok(hold.token > last)
        last = hold.token
        if (i % 8 === 0) await sleep(5)
        inside--
        await released(hold)
      }
    }),
  )
  const cuts = (async () => {
    for (let i = 0; goes; i++) {
      await sleep(30 + Math.random() * 100)
      proxies[i % 3].cut()
    }
  })()
  await Promise.all(turns)
  goes = false
  await cuts
  const made = proxies.reduce((sum, proxy) => sum + proxy.connections, 0)
  console.log(`# ${made} connections`)
  assert.ok(made > 6)
  await Promise.all(clients.map((client) => client.close()))
  proxies.forEach((proxy) => proxy.end())
  await server.raw.free('g')
})

test('a silent connection is given up', async () => {
  const server = await Server.start()
  const proxy = await Proxy.start(server.port)
  const client = new Client(proxy.url)
  const hold = await client.lock('m')
  proxy.mute()
  const other = await client.lock('n')
  assert.equal(proxy.connections, 2)
  assert.equal(hold.lost, false)
  await Promise.all([released(hold), released(other)])
  await client.close()
  proxy.end()
})

test('an answer that came while the loop was blocked is in time', async () => {
  const server = await Server.start()
  const proxy = await Proxy.start(server.port)
  const child = start(process.execPath, [
    '-e',
    `
    const { Client } = require('${folder}')
    const client = new Client('${proxy.url}')
    client.connect().then(async () => {
      const wait = client.lock('o')
      await null
      await null // so that it is asked for
      const end = Date.now() + 4000 // longer than an answer may take
      while (Date.now() < end);
      await (await wait).release()
      process.exit(0)
    })`,
  ])
  assert.equal(await child.ended, 0)
  assert.equal(proxy.connections, 1)
  proxy.end()
})

test('two hundred aborts, with cuts, leave no hold', async () => {
  const server = await Server.start()
  const proxy = await Proxy.start(server.port)
  const client = new Client(proxy.url)
  const holder = new Client(server.url)
  for (let i = 0; i < 200; i++) {
    const hold = await holder.lock('h')
    const controller = new AbortController()
    const wait = client.lock('h', { signal: controller.signal }).then(released, () => {})
    if (i % 2 === 0) await new Promise(setImmediate)
    const release = hold.release()
    if (i % 10 === 0) proxy.cut()
    await sleep(Math.random())
    controller.abort()
    await Promise.all([release, wait])
  }
  await server.raw.free('h')
  await Promise.all([client.close(), holder.close()])
  proxy.end()
})

test('killed clients hold nobody up for long', async () => {
  const server = await Server.start()
  const client = new Client(server.url, { waiterMs: 2000 })
  const dies = script(
    server.url,
    "globalThis.hold = await client.lock('i'); console.log('held'); setInterval(() => {}, 1000)",
  )
  await new Promise((resolve) => dies.stdout.once('data', resolve))
  const waits = script(server.url, "await client.lock('i')")
  await until(async () => (await server.raw.queue('i')).length === 1, 'the first in line')
  const wait = client.lock('i')
  await until(async () => (await server.raw.queue('i')).length === 2, 'the second')
  waits.kill('SIGKILL')
  dies.kill('SIGKILL')
  const hold = await wait
  await hold.release()
  await client.close()
  await server.raw.free('i')
})

test('a stopped client loses its hold, and sees that when it goes on', async () => {
  const server = await Server.start()
  const client = new Client(server.url)
  const stops = script(
    server.url,
    `
    const hold = await client.lock('j')
    console.log('held')
    setInterval(() => { if (hold.lost) { console.log(hold.remaining); process.exit(0) } }, 10)`,
  )
  await new Promise((resolve) => stops.stdout.once('data', resolve))
  stops.kill('SIGSTOP')
  const hold = await client.lock('j')
  stops.kill('SIGCONT')
  const said = await new Promise((resolve) => stops.stdout.once('data', resolve))
  assert.equal(String(said), '0\n')
  await hold.release()
  await client.close()
})

test('beside clients in C, with cuts, two never hold at once', async () => {
  const server = await Server.start()
  const peers = await Promise.all([1, 2].map(() => Peer.start(cClient, server.port)))
  const proxy = await Proxy.start(server.port)
  const client = new Client(proxy.url)
  const monotonic = () => process.hrtime.bigint() / 1000n // as CLOCK_MONOTONIC of the others
  peers.forEach((peer) => peer.say('contend k 4000 3 6'))
  const holds = []
  const end = performance.now() + 4000
  const turns = [1, 2].map(async () => {
    while (performance.now() < end) {
      const hold = await client.lock('k')
      const begun = monotonic()
      await sleep(3)
      const ended = monotonic()
      if (!hold.lost) holds.push([begun, ended, hold.token])
      await released(hold)
      await sleep(Math.random() * 6)
    }
  })
  const cuts = (async () => {
    while (performance.now() < end) {
      await sleep(300)
      proxy.cut()
    }
  })()
  let [byC, line] = [0, '']
  for (const peer of peers) {
    while ((line = await peer.hear()) !== 'done') {
      const [what, , begun, ended, token] = line.split(' ')
      if (what !== 'hold') continue
      holds.push([BigInt(begun), BigInt(ended), BigInt(token)])
      byC++
    }
  }
  await Promise.all([...turns, cuts])
  holds.sort(([a], [b]) => (a < b ? -1 : 1))
  console.log(`# ${byC} holds in C, ${holds.length - byC} in Node`)
  assert.ok(byC > 10 && holds.length - byC > 10)
  for (let i = 1; i < holds.length; i++) {
    assert.ok(holds[i][0] >= holds[i - 1][1], 'two hold at once')
    assert.ok(holds[i][2] > holds[i - 1][2], 'a token falls')
  }
  peers.forEach((peer) => peer.child.kill('SIGKILL'))
  await client.close()
  proxy.end()
})

test('TLS', async () => {
  const read = (name) => fs.readFileSync(`${certificates}/${name}`)
  const ca = read('ca.crt')
  const server = await Server.secure('server', true, certificates)
  const own = { ca, cert: read('client.crt'), key: read('client.key') }
  const client = new Client(server.safeUrl, { tls: own })
  await client.connect()
  await client.using('l', (hold) => assert.ok(hold.remaining > 0))
  const hold = await client.lock('l')
  const wait = client.lock('l')
  await hold.release()
  await (await wait).release()
  await Promise.all(Array.from({ length: 100 }, () => client.using('l', () => {})))
  await client.close()
  const untrusted = async (place, tls) => {
    const other = new Client(place, { tls })
    await assert.rejects(other.connect(), (error) => {
      assert.equal(error.code, 'FAIRLOCK_UNTRUSTED', error.stack)
      return error instanceof fairlock.ConnectionError && error.cause !== undefined
    })
    await assert.rejects(other.lock('l', { wait: 0 }), { code: 'FAIRLOCK_UNTRUSTED' })
    await other.close()
  }
  await untrusted(server.safeUrl, { ...own, ca: undefined })
  await untrusted(server.safeUrl, { ca }) // none of ours
  await untrusted(server.safeUrl, { ca, cert: read('stranger.crt'), key: read('stranger.key') })
  await untrusted(server.safeUrl, { ...own, servername: 'elsewhere.example' })
  for (const name of ['expired', 'elsewhere']) {
    const wrong = await Server.secure(name, false, certificates)
    await untrusted(wrong.safeUrl, own)
  }
  assert.throws(() => new Client(server.safeUrl, { tls: { cert: 'no certificate' } }))
})

await run()
