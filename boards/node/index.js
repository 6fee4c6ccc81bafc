// SPDX-License-Identifier: Apache-2.0
'use strict'
const { Client, Hold } = require('./lib/client.js')
const { errorOf, ...errors } = require('./lib/errors.js')
const { version } = require('./package.json')

module.exports = { Client, Hold, ...errors, version }
