// A contender in JavaScript: contender.js fairlock|redlock|redis-semaphore PORT. It speaks the lines of
// ../README.md.
'use strict'
const readline = require('readline')

const [LOCK, LEASE_MS, HOLD_MS, PAUSE_MS] = ['sixteen-byte-nam', 30000, 3, 6]
const now = () => process.hrtime.bigint()
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const [library, port] = process.argv.slice(2)

// Each: what waits until it is connected, its version, and a function that acquires and returns one that releases.
const libraries = {
  fairlock() {
    const { Client, version } = require(`${process.env.BUILD}/node/package`)
    const client = new Client(`redis://127.0.0.1:${port}`)
    const acquire = async () => {
      const hold = await client.lock(LOCK)
      return () => hold.release()
    }
    return { connect: () => client.connect(), version, acquire }
  },
  redlock() {
    const redis = new (require('ioredis'))(Number(port))
    const redlock = new (require('redlock'))([redis], { retryCount: -1 }) // by default it gives up after 10 tries
    const acquire = async () => {
      const lock = await redlock.lock(LOCK, LEASE_MS)
      return () => lock.unlock()
    }
    return { connect: () => redis.ping(), version: require('redlock/package.json').version, acquire }
  },
  'redis-semaphore'() {
    const redis = new (require('ioredis'))(Number(port))
    const { Mutex } = require('redis-semaphore')
    const options = { lockTimeout: LEASE_MS, acquireTimeout: 100 * LEASE_MS } // by default it gives up after 10 s
    const acquire = async () => {
      const mutex = new Mutex(redis, LOCK, options)
      await mutex.acquire()
      return () => mutex.release()
    }
    return { connect: () => redis.ping(), version: require('redis-semaphore/package.json').version, acquire }
  },
}
const { connect, version, acquire } = libraries[library]()

function answer(numbers) {
  process.stdout.write('done 0\n')
  process.stdout.write(numbers.join(' ') + '\n')
}

async function pairs(count) {
  const took = []
  for (let i = 0; i < count; i++) {
    const start = now()
    const release = await acquire()
    await release()
    took.push(now() - start)
  }
  answer(took)
}

async function contend(count) {
  const events = []
  for (let i = 0; i < count; i++) {
    events.push(now())
    const release = await acquire()
    events.push(now())
    await sleep(HOLD_MS)
    events.push(now())
    await release()
    await sleep(Math.random() * PAUSE_MS)
  }
  answer(events)
}

async function main() {
  await connect()
  process.stdout.write(`ready ${now()} ${version}\n`)
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, count] = line.split(' ')
    await { pairs, contend }[verb](Number(count))
  }
  process.exit(0)
}

main()
