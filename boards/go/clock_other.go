// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package fairlock

import "time"

// A clock counts milliseconds, and goes on while the machine sleeps. Go's own may stand still then. So when the time of
// day has gone further than that, it has slept, or somebody has set the time: a hold that may have ended is not
// believed in.
type clock struct {
	began, last time.Time
	slept       time.Duration
}

const noticed = 500 * time.Millisecond

func (c *clock) now() uint32 {
	time := time.Now()
	if c.began.IsZero() {
		c.began, c.last = time, time
	}
	ahead := time.Round(0).Sub(c.last.Round(0)) - time.Sub(c.last)
	if ahead > noticed {
		c.slept += ahead
	}
	c.last = time
	return uint32((time.Sub(c.began) + c.slept).Milliseconds())
}
