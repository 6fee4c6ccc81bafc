// A contender in JavaScript: contender.js PORT, with node-redlock. It speaks the lines of
// ../README.md.
'use strict'
const Redis = require('ioredis')
const Redlock = require('redlock')
const readline = require('readline')

const [LOCK, LEASE_MS, HOLD_MS, PAUSE_MS] = ['sixteen-byte-nam', 30000, 3, 6]
const now = () => process.hrtime.bigint()
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const redis = new Redis(Number(process.argv[2]))
const redlock = new Redlock([redis], { retryCount: -1 }) // by default it gives up after 10 tries

function answer(numbers) {
  process.stdout.write('done 0\n')
  process.stdout.write(numbers.join(' ') + '\n')
}

async function pairs(count) {
  const took = []
  for (let i = 0; i < count; i++) {
    const start = now()
    const lock = await redlock.lock(LOCK, LEASE_MS)
    await lock.unlock()
    took.push(now() - start)
  }
  answer(took)
}

async function contend(count) {
  const events = []
  for (let i = 0; i < count; i++) {
    events.push(now())
    const lock = await redlock.lock(LOCK, LEASE_MS)
    events.push(now())
    await sleep(HOLD_MS)
    events.push(now())
    await lock.unlock()
    await sleep(Math.random() * PAUSE_MS)
  }
  answer(events)
}

async function main() {
  await redis.ping()
  process.stdout.write(`ready ${now()} ${require('redlock/package.json').version}\n`)
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, count] = line.split(' ')
    await { pairs, contend }[verb](Number(count))
  }
  process.exit(0)
}

main()
