// SPDX-License-Identifier: Apache-2.0

//go:build go1.20

package fairlock

import "context"

func withCause(parent context.Context) (context.Context, func(error)) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, cancel
}

func causeOf(ctx context.Context) error { return context.Cause(ctx) }
