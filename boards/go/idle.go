// SPDX-License-Identifier: Apache-2.0

package fairlock

import "time"

// Locks of the engine that are done are kept for a while: who locks the same name again then needs no new subscription
// for it.
const (
	idleTime = 5 * time.Second
	mostIdle = 256
)

// A kind of handle: those of one kind stand in for each other.
type kind struct {
	name  string
	limit int // -1: exclusive, 0: shared
}

// An address is that of a lock of the engine, and the key that its events have.
type address struct{ lock, key uint32 }

type idleLock struct {
	address
	since time.Time
}

// idleLocks is its client's mutex's. The zero value is empty.
type idleLocks struct {
	locks map[kind][]idleLock // the oldest first
	count int
	timer *time.Timer
}

func (i *idleLocks) take(of kind) (address, bool) {
	locks := i.locks[of]
	if len(locks) == 0 {
		return address{}, false
	}
	last := locks[len(locks)-1]
	i.set(of, locks[:len(locks)-1])
	i.count--
	return last.address, true
}

// put returns false if there are too many.
func (i *idleLocks) put(of kind, at address) bool {
	if i.count >= mostIdle {
		return false
	}
	if i.locks == nil {
		i.locks = map[kind][]idleLock{}
	}
	i.locks[of] = append(i.locks[of], idleLock{at, time.Now()})
	i.count++
	return true
}

func (i *idleLocks) set(of kind, locks []idleLock) {
	if len(locks) == 0 {
		delete(i.locks, of)
	} else {
		i.locks[of] = locks
	}
}

// drop takes out those that came before, and calls f with each.
func (i *idleLocks) drop(before time.Time, f func(lock uint32)) {
	for of, locks := range i.locks {
		for len(locks) > 0 && locks[0].since.Before(before) {
			f(locks[0].lock)
			locks = locks[1:]
			i.count--
		}
		i.set(of, locks)
	}
}

// onIdle is called by the timer, without the mutex.
func (c *Client) onIdle() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.idle.timer = nil
	if c.core == nil {
		return
	}
	c.dropIdle(time.Now().Add(-idleTime))
	if c.idle.count > 0 {
		c.idle.timer = time.AfterFunc(idleTime, c.onIdle)
	}
	c.serve()
}

// dropIdle is called with the mutex.
func (c *Client) dropIdle(before time.Time) {
	c.idle.drop(before, func(lock uint32) { c.core.drop(lock, c.clock.now()) })
}
