// SPDX-License-Identifier: Apache-2.0
'use strict'
// Servers by URL, as the command `fairlock` has them. No message shows any of the URL, which may have a password.

function wrong(why) {
  return Object.assign(new TypeError(`the server's URL is not usable: ${why}`), { code: 'ERR_INVALID_URL' })
}

function decode(what, text) {
  let decoded
  try {
    decoded = decodeURIComponent(text)
  } catch {
    throw wrong(`its ${what} has a '%' that begins no character`)
  }
  if (decoded.includes('\0')) throw wrong(`its ${what} has a NUL`)
  return decoded
}

function database(text) {
  if (!/^\d{1,9}$/.test(text)) throw wrong('its database is not a number')
  return Number(text)
}

// The last '@' ends user and password. Returns what is there, and the rest.
function login(text) {
  const at = text.lastIndexOf('@')
  if (at < 0) return [{}, text]
  const colon = text.slice(0, at).indexOf(':')
  const user = decode('user', text.slice(0, colon < 0 ? at : colon))
  const there = { user: user === '' ? undefined : user }
  if (colon >= 0) there.password = decode('password', text.slice(colon + 1, at))
  return [there, text.slice(at + 1)]
}

function parsePath(rest) {
  const [who, place] = login(rest)
  const [path, query] = place.split(/\?(.*)/s)
  if (!path.startsWith('/') || path.length < 2) throw wrong('it names no absolute path: unix:///run/redis/redis.sock')
  if (query !== undefined && !query.startsWith('db=')) throw wrong('only ?db=NUMBER may follow its path')
  return {
    ...who,
    database: query === undefined ? 0 : database(query.slice(3)),
    place: { path: decode('path', path) },
    secure: false,
  }
}

function parse(url) {
  if (typeof url !== 'string' && !(url instanceof URL)) throw wrong('it is no string')
  const [, scheme, rest] = /^([a-z0-9+.-]+):\/\/(.*)$/is.exec(String(url)) ?? []
  if (/^(redis|valkey)s?\+(sentinel|cluster)$/i.test(scheme ?? '')) {
    throw Object.assign(
      wrong('Sentinels and clusters are not supported by this package: name one server, redis://host'),
      {
        code: 'FAIRLOCK_UNSUPPORTED',
      },
    )
  }
  if (scheme?.toLowerCase() === 'unix') return parsePath(rest)
  const kind = /^(redis|valkey)(s?)$/i.exec(scheme ?? '')
  if (kind === null) throw wrong('it does not begin with redis://, rediss:// or unix://')
  const end = rest.search(/[/?#]/)
  const [who, place] = login(end < 0 ? rest : rest.slice(0, end))
  const tail = end < 0 ? '' : rest.slice(end)
  if (/[?#]/.test(tail)) throw wrong("it has a '?' or '#': a database is written /1, and TLS rediss://")
  if (tail.includes('@')) throw wrong("a '/' in a password is written %2F")
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/s.exec(place) ?? []
  if (bracketed === undefined && plain === undefined)
    throw wrong('an IPv6 address has to be in brackets: redis://[::1]:6379')
  const host = decode('host', bracketed ?? plain)
  if (host === '') throw wrong('it names no host')
  if (host.includes(',')) throw wrong('it names several hosts')
  const number = port === undefined ? 6379 : Number(/^\d{1,5}$/.test(port) ? port : 0)
  if (number < 1 || number > 65535) throw wrong('its port is not a number from 1 to 65535')
  return {
    ...who,
    database: tail.length > 1 ? database(tail.slice(1)) : 0,
    place: { host, port: number },
    secure: kind[2] !== '',
  }
}

module.exports = { parse }
