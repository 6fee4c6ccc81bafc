// A sharer in JavaScript: sharer.js PORT, with redis-semaphore. It speaks the lines of ../README.md.
'use strict'
const Redis = require('ioredis')
const { Semaphore } = require('redis-semaphore')
const readline = require('readline')

const [LEASE_MS, HOLD_MS, PAUSE_MS, LIMIT] = [10000, 20, 6, 4]
const now = () => process.hrtime.bigint()
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const redis = new Redis(Number(process.argv[2]))
// By default it gives up after 10 s.
const options = { lockTimeout: LEASE_MS, acquireTimeout: 100 * LEASE_MS }
const create = () => new Semaphore(redis, 'permits', LIMIT, options)
const held = []
let contenders = 1

function answer(numbers) {
  process.stdout.write('done 0\n')
  process.stdout.write(numbers.join(' ') + '\n')
}

async function pairs(count) {
  const semaphore = create()
  const took = []
  for (let i = 0; i < count; i++) {
    const start = now()
    await semaphore.acquire()
    await semaphore.release()
    took.push(now() - start)
  }
  answer(took)
}

// One contender: turns for so long, and at least one.
async function turns(ms) {
  const semaphore = create()
  const events = []
  const end = now() + BigInt(ms) * 1000000n
  do {
    events.push(now())
    await semaphore.acquire()
    events.push(now())
    await sleep(HOLD_MS)
    events.push(now())
    await semaphore.release()
    await sleep(Math.random() * PAUSE_MS)
  } while (now() < end)
  return events
}

async function share(ms) {
  answer((await Promise.all(Array.from({ length: contenders }, () => turns(ms)))).flat())
}

async function hold(count) {
  for (let i = 0; i < count; i++) {
    held.push(create())
    await held[i].acquire()
  }
  answer([])
}

async function end() {
  while (held.length > 0) await held.pop().release()
  answer([])
}

async function main() {
  await redis.ping()
  process.stdout.write(`ready ${now()} ${require('redis-semaphore/package.json').version}\n`)
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, count] = line.split(' ')
    if (verb === 'contenders') contenders = Number(count)
    else await { pairs, share, hold, end }[verb](Number(count))
  }
  process.exit(0)
}

main()
