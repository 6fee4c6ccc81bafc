// SPDX-License-Identifier: Apache-2.0
import fairlock from './index.js'

export const {
  Client,
  Hold,
  BusyError,
  ClosedError,
  ConnectionError,
  DeniedError,
  FairlockError,
  LostError,
  ServerError,
  TimeoutError,
  version,
} = fairlock
