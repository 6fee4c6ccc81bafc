// SPDX-License-Identifier: Apache-2.0

//go:build !go1.20

package fairlock

import "context"

func withCause(parent context.Context) (context.Context, func(error)) {
	ctx, cancel := context.WithCancel(parent)
	return ctx, func(error) { cancel() }
}

func causeOf(ctx context.Context) error { return ctx.Err() }
