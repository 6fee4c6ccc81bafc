// SPDX-License-Identifier: Apache-2.0
/// <reference types="node" />
import { EventEmitter } from 'node:events'
import { ConnectionOptions } from 'node:tls'

/** The name of a lock: UTF-8 or any bytes, 1 to 4096 of them, and not wholly in braces. */
export type Name = string | Uint8Array

/** null and undefined stand for what is not given. A text has no NUL. */
export interface ClientOptions {
  /** Instead of those of the URL. */
  user?: string | null | undefined
  password?: string | null | undefined
  /** The ids of its holds begin so, for people who look at the queue: printable, no colon, at most 40 characters. */
  clientId?: string | null | undefined
  /** Shown by CLIENT LIST; no spaces. */
  clientName?: string | null | undefined
  /** The lease that is renewed, ms: 100 to 1073741823; default 30000. */
  leaseMs?: number | null | undefined
  /** After so long a silence a waiter loses its place, ms: 2000 to 600000; default 5000. */
  waiterMs?: number | null | undefined
  /** A handover not confirmed within this goes to the next, ms: 1000 to `waiterMs`; default `waiterMs`. */
  claimMs?: number | null | undefined
  /** A later answer means a dead connection, ms; default two fifths of `waiterMs`. */
  responseMs?: number | null | undefined
  /** To connect, ms: at most 268435455; default `waiterMs`. */
  connectMs?: number | null | undefined
  /** An operation fails after so long without a useful answer, ms, or Infinity; default twice `waiterMs`. */
  offlineMs?: number | null | undefined
  /** Holders hear when somebody asks them to release (event `asked`); costs a subscription for each. */
  listen?: boolean | null | undefined
  /** For rediss://: options of tls.connect(), such as `ca`, `cert`, `key` and `servername`. */
  tls?: ConnectionOptions | null | undefined
}

export interface TryOptions {
  /** A fixed lease, ms, which is not renewed: 100 to 1073741823. Without it, `leaseMs` of the client, renewed. */
  lease?: number
  /** Shared with at most so many holders, 1 to 1000, this one included. */
  limit?: number
  /** Shared with any number of holders. */
  shared?: boolean
}

export interface LockOptions extends TryOptions {
  /** How long to wait in line, ms: at most 1073741823; default Infinity. 0: not at all. */
  wait?: number
  /** Ends the wait: the place in the queue is given up, and the promise rejects with `signal.reason`. */
  signal?: AbortSignal
}

/** One client: one connection to one server, which is made when it is needed, and any number of locks. */
export class Client {
  /**
   * redis://[user[:password]@]host[:port][/database], rediss:// for TLS, unix:///path[?db=number]; default
   * redis://127.0.0.1:6379. Connects to nothing yet. Throws TypeError or RangeError.
   */
  constructor(url?: string | URL, options?: ClientOptions)

  /** Whether it is connected, and the server has accepted it. */
  readonly connected: boolean

  /** Checks that the server can be reached and accepts us, by one attempt. Other calls connect by themselves. */
  connect(): Promise<void>

  /**
   * Waits in line for the lock. Rejects with TimeoutError, BusyError (`wait` 0), the reason of `signal`,
   * ConnectionError (also if `wait` ends before there is a connection), DeniedError, ServerError or ClosedError;
   * then nothing is held, and no place kept.
   */
  lock(name: Name, options?: LockOptions): Promise<Hold>

  /** Acquires the lock if that takes no wait, and passes nobody who waits; otherwise null. */
  tryLock(name: Name, options?: TryOptions): Promise<Hold | null>

  /** Holds the lock while `callback` runs. Rejects with LostError if the hold had ended before that. */
  using<T>(name: Name, callback: (hold: Hold) => T | PromiseLike<T>): Promise<T>
  using<T>(name: Name, options: LockOptions, callback: (hold: Hold) => T | PromiseLike<T>): Promise<T>

  /**
   * Ends all waits and holds, and then the connection, at the latest after `timeout` ms (2000): what the
   * server was not told by then ends with its lease. A client that is garbage collected is closed.
   */
  close(options?: { timeout?: number }): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * A hold. Keep it as long as the work goes on: one that is garbage collected is released, with a warning
 * (FAIRLOCK_DROPPED), unless somebody listens to it or has its signal.
 */
export class Hold extends EventEmitter {
  private constructor()
  readonly name: Name
  /** The fencing token, larger than all before it. What the lock protects can refuse a smaller one. */
  readonly token: bigint
  /** For how many ms it is still safe to act as the holder; 0: not held. */
  readonly remaining: number
  /** Whether the hold has ended without a release. */
  readonly lost: boolean
  /** Aborts when the hold ends: is lost, or begins to be released. */
  readonly signal: AbortSignal

  /**
   * Releases the lock, which goes to the next in line. Rejects with LostError if the hold had ended before;
   * with ConnectionError if no answer came: it was carried out (FAIRLOCK_UNKNOWN), or the lease ends the hold.
   * Calling it again returns the same promise.
   */
  release(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>

  /** `lost`: the hold has ended without a release. `asked`: somebody asks for it, in words that anybody may send. */
  on(event: 'lost', listener: (error: LostError | ClosedError) => void): this
  on(event: 'asked', listener: (words: string) => void): this
  once(event: 'lost', listener: (error: LostError | ClosedError) => void): this
  once(event: 'asked', listener: (words: string) => void): this
  off(event: 'lost', listener: (error: LostError | ClosedError) => void): this
  off(event: 'asked', listener: (words: string) => void): this
}

/** All errors of locks, but those of arguments: TypeError, and RangeError with a `code`. */
export class FairlockError extends Error {
  /** FAIRLOCK_ and the name of the status, as in C: FAIRLOCK_TIMEOUT, FAIRLOCK_LOST; or FAIRLOCK_CLOSED. */
  readonly code: string
}
/** Somebody else holds the lock or is first in line: of a wait of 0. */
export class BusyError extends FairlockError {}
/** The wait has ended without the lock. */
export class TimeoutError extends FairlockError {}
/** The hold has ended before it was released: others may hold already. */
export class LostError extends FairlockError {}
/** No useful answer of the server: it is away or starting, or a certificate is not trusted. */
export class ConnectionError extends FairlockError {}
/** The server refuses this user. */
export class DeniedError extends FairlockError {}
/** The server refuses the request: it is a replica, out of memory, too old, and the like. */
export class ServerError extends FairlockError {}
/** The client was closed. */
export class ClosedError extends FairlockError {}

export const version: string
