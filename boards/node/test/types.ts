// SPDX-License-Identifier: Apache-2.0
// What the declarations allow; @ts-expect-error: what they do not. test_package.sh compiles it as both kinds of
// module, and runs it with the server of its argument.
import { Client, FairlockError, LostError, TimeoutError, Hold, type LockOptions, version } from 'fairlock'

// Is not called.
export async function mistakes(client: Client): Promise<void> {
  new Client(new URL('rediss://localhost'), { tls: { servername: 'localhost', ca: 'a certificate' } })
  // @ts-expect-error: no such option
  await client.lock('types', { waits: 1 })
  // @ts-expect-error: a try has no wait
  const tried = await client.tryLock('types', { wait: 1 })
  // @ts-expect-error: it may be null
  await tried.release()
  // @ts-expect-error: a name is a string or bytes
  const hold = await client.lock(7)
  // @ts-expect-error: it does not change
  hold.token = 7n
  // @ts-expect-error: no such event
  hold.on('found', () => {})
  // @ts-expect-error: the client makes them
  new Hold()
}

async function work(): Promise<string> {
  const client = new Client(process.argv[2], { clientId: 'types', waiterMs: 5000 })
  await client.connect()
  const options: LockOptions = { wait: 1000, lease: 2000, signal: AbortSignal.timeout(5000) }
  const hold: Hold = await client.lock('types', options)
  const token: bigint = hold.token
  const left: number = hold.remaining
  hold.on('lost', (error) => console.error(error.code)).on('asked', (words) => console.error(words.trim()))
  const tried = await client.tryLock(new Uint8Array([1, 2]), { limit: 2 })
  if (tried === null) throw new Error('not held')
  await tried.release()
  const error: unknown = await client.lock('types', { wait: 1 }).catch((reason: unknown) => reason)
  if (!(error instanceof TimeoutError) || !(error instanceof FairlockError) || error instanceof LostError) throw error
  const code: string = error.code
  await hold.release()
  {
    await using second = await client.lock('types')
    if (second.lost) throw second.signal.reason
  }
  const seven: number = await client.using('types', { shared: true }, () => 7)
  const word: string = await client.using('types', async (one) => one.token.toString())
  await client.close()
  return `${code} ${seven} ${typeof token} ${typeof left} ${word.length > 0} ${version}`
}

void work().then((line) => console.log(line))
