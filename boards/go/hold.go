// SPDX-License-Identifier: Apache-2.0

package fairlock

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// A LockOption says how a lock is acquired.
type LockOption func(*lockOptions)

type lockOptions struct {
	limit int
	lease time.Duration
}

// Lease makes a hold end after this time, and not be renewed: 100 ms to 12 days.
func Lease(lease time.Duration) LockOption {
	return func(o *lockOptions) {
		o.lease = lease
		if lease == 0 { // of a computation that went wrong
			o.lease = -1
		}
	}
}

// Shared shares the lock with any number of others that do so: it is a fair read lock. Those who want it alone wait in
// the same queue.
func Shared() LockOption {
	return func(o *lockOptions) { o.limit = 0 }
}

// Limit shares the lock with others, up to so many holders, 1 to 1000: it is a fair semaphore.
func Limit(holders int) LockOption {
	return func(o *lockOptions) {
		o.limit = holders
		if holders <= 0 {
			o.limit = mostHolders + 1 // which the engine refuses
		}
	}
}

const mostHolders = 1000

// Lock waits in line for the lock called name, any 1 to 4096 bytes that are not wholly in braces, until it has it or ctx
// ends, and then has left the line, or leaves it in the background. Each call is a holder of its own, also in the same
// goroutine. The hold is renewed until it is released, unless there is a Lease.
func (c *Client) Lock(ctx context.Context, name string, options ...LockOption) (*Hold, error) {
	return c.acquire(ctx, name, forever, options)
}

// TryLock acquires the lock if that takes no wait, and passes nobody who waits. Otherwise it returns ErrBusy.
func (c *Client) TryLock(ctx context.Context, name string, options ...LockOption) (*Hold, error) {
	return c.acquire(ctx, name, 0, options)
}

func (c *Client) acquire(ctx context.Context, name string, wait uint32, options []LockOption) (*Hold, error) {
	o := lockOptions{limit: -1}
	for _, option := range options {
		option(&o)
	}
	lease := uint32(renewed)
	if o.lease != 0 {
		ms, err := milliseconds(o.lease)
		if err != nil {
			return nil, &Error{Op: "lock", Name: name, Err: fmt.Errorf("its lease: %w", err)}
		}
		lease = ms
	}
	if ctx.Err() != nil {
		return nil, errorOfContext("lock", name, ctx)
	}
	h, err := c.begin(name, o.limit, wait, lease)
	if err != nil {
		return nil, err
	}
	select {
	case status := <-h.ended:
		return h.hold(status)
	case <-h.isQuit:
		return nil, &Error{Op: "lock", Name: name, Err: ErrClosed}
	case <-ctx.Done():
		h.abandon()
		return nil, errorOfContext("lock", name, ctx)
	}
}

func (c *Client) begin(name string, limit int, wait, lease uint32) (*handle, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isClosing {
		return nil, &Error{Op: "lock", Name: name, Err: ErrClosed}
	}
	h, status := c.add(name, limit)
	if h == nil {
		return nil, c.errorOf("lock", name, status)
	}
	h.start(wait, lease)
	return h, nil
}

// A handle is a lock of the engine's, from the begin of an acquire to the end of a release. All of it is its client's
// mutex's, but the channels.
type handle struct {
	client *Client
	kind
	address
	token       uint64
	ended       chan Status   // the status of the operation under way
	isQuit      chan struct{} // closed: the client was closed
	isReleasing bool

	done  chan struct{} // closed when err is set: its hold has ended
	err   error
	asked chan string
	bound []bound // contexts that end with the hold
	keeps *Hold   // while somebody relies on the hold without having it
}

// add returns a new handle, or nil and a status. With the mutex.
func (c *Client) add(name string, limit int) (*handle, Status) {
	of := kind{name, limit}
	at, isThere := c.idle.take(of)
	if !isThere {
		c.lastKey++
		lock, status := c.core.add(name, limit, c.lastKey)
		if lock == 0 {
			return nil, status
		}
		at = address{lock, c.lastKey}
	}
	h := &handle{
		client: c, kind: of, address: at,
		ended: make(chan Status, 1), isQuit: make(chan struct{}), done: make(chan struct{}), asked: make(chan string, 1),
	}
	c.handles[h.key] = h
	return h, ok
}

// start begins an acquire, whose status comes from ended. With the mutex.
func (h *handle) start(wait, lease uint32) {
	c := h.client
	h.begun(Status(int32(c.core.acquire(h.lock, wait, lease, c.clock.now()))))
}

// startRelease begins a release, whose status comes from ended. With the mutex.
func (h *handle) startRelease() {
	c := h.client
	h.begun(Status(int32(c.core.release(h.lock, c.clock.now()))))
}

func (h *handle) begun(status Status) {
	if status != pending {
		h.ended <- status
	}
	h.client.serve()
}

// remaining is 0 if it is not held. With the mutex.
func (h *handle) remaining() time.Duration {
	c := h.client
	if c.core == nil || h.lock == 0 || h.isReleasing {
		return 0
	}
	return time.Duration(c.core.remaining(h.lock, c.clock.now())) * time.Millisecond
}

type bound struct {
	ctx context.Context
	end func(error)
}

// boundTo is the key by which a context that ends with a hold knows its parent.
type boundTo struct{ *handle }

// without is a context that lives on when the hold ends.
func (h *handle) without(ctx context.Context) (context.Context, context.CancelFunc) {
	parent, isBound := ctx.Value(boundTo{h}).(context.Context)
	if !isBound {
		return ctx, func() {}
	}
	if deadline, isThere := ctx.Deadline(); isThere {
		return context.WithDeadline(parent, deadline)
	}
	return parent, func() {}
}

// bind takes one more, and forgets those that have ended, when there are many. With the mutex.
func (h *handle) bind(one bound) {
	if len(h.bound) == cap(h.bound) {
		going := make([]bound, 0, 2*len(h.bound)+1)
		for _, b := range h.bound {
			if b.ctx.Err() == nil {
				going = append(going, b)
			}
		}
		h.bound = going
	}
	h.bound = append(h.bound, one)
}

// drop gives it up, whatever it is doing: its place or hold ends in the background. With the mutex.
func (h *handle) drop() {
	if h.lock == 0 {
		return
	}
	if h.client.core != nil {
		h.client.core.drop(h.lock, h.client.clock.now())
	}
	h.lock = 0
	delete(h.client.handles, h.key)
}

// putBack is for one that neither holds nor waits. With the mutex.
func (h *handle) putBack() {
	c := h.client
	if h.lock == 0 || c.isClosing || !c.idle.put(h.kind, h.address) {
		h.drop()
		c.serve()
		return
	}
	h.lock = 0
	delete(c.handles, h.key)
	if c.idle.timer == nil {
		c.idle.timer = time.AfterFunc(idleTime, c.onIdle)
	}
}

// finish ends the hold for those who watch it. With the mutex.
func (h *handle) finish(err error) {
	if h.err != nil {
		return
	}
	h.err = err
	close(h.done)
	for _, b := range h.bound {
		b.end(err)
	}
	h.bound, h.keeps = nil, nil
}

func (h *handle) lose() { h.finish(&Error{Op: "hold", Name: h.name, Err: ErrLost}) }

// quit is for a client that is closed. With the mutex.
func (h *handle) quit() {
	h.drop()
	h.finish(&Error{Op: "hold", Name: h.name, Err: ErrClosed})
	close(h.isQuit)
}

// ask leaves the words that came last. With the mutex.
func (h *handle) ask(words string) {
	select {
	case <-h.asked:
	default:
	}
	h.asked <- words
}

// abandon drops it, without the mutex.
func (h *handle) abandon() {
	h.client.mutex.Lock()
	defer h.client.mutex.Unlock()
	h.drop()
	h.client.serve()
}

// hold returns the hold if the acquire has succeeded.
func (h *handle) hold(status Status) (*Hold, error) {
	c := h.client
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if status != ok || h.err != nil {
		err := h.err // it has ended since
		if status != ok {
			err = c.errorOf("lock", h.name, status)
		}
		if status == ErrBusy {
			h.putBack()
		} else {
			h.drop()
		}
		c.serve()
		return nil, err
	}
	hold := &Hold{handle: h, token: h.token, id: c.core.text(c.core.id(h.lock))}
	runtime.SetFinalizer(hold, func(hold *Hold) { hold.handle.abandon() })
	return hold, nil
}

// A Hold is what Lock and TryLock return. It is safe for concurrent use.
//
// Keep it until Unlock. One that is garbage collected is released at that time, unless somebody has asked for a Context
// or Done of it.
type Hold struct {
	handle *handle
	token  uint64
	id     string
}

// Name returns the name of the lock.
func (h *Hold) Name() string { return h.handle.name }

// ID returns the id by which the command `fairlock status` shows the holder.
func (h *Hold) ID() string { return h.id }

// Token returns the fencing token, which is larger than all before it, and stays what it was when the hold has ended.
// What the lock protects can refuse a smaller one than the largest it has seen. It fits into an int64.
func (h *Hold) Token() uint64 { return h.token }

// Remaining returns for how long it is still safe to act as the holder, if nothing renews the hold; 0: not held.
func (h *Hold) Remaining() time.Duration {
	c := h.handle.client
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return h.handle.remaining()
}

// Done returns a channel that is closed when the hold ends: it is lost, or Unlock or Close has begun.
func (h *Hold) Done() <-chan struct{} {
	h.keep()
	return h.handle.done
}

// Err returns nil until Done is closed, and then ErrLost, ErrUnlocked or ErrClosed, for errors.Is.
func (h *Hold) Err() error {
	c := h.handle.client
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return h.handle.err
}

// Context returns a context that ends with parent or with the hold, whichever comes first, for the work that needs the
// lock. In the second case context.Cause says why, as Err does (Go 1.20).
func (h *Hold) Context(parent context.Context) context.Context {
	c := h.handle.client
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ctx, end := withCause(context.WithValue(parent, boundTo{h.handle}, parent))
	if h.handle.err != nil {
		end(h.handle.err)
	} else {
		h.handle.bind(bound{ctx, end})
		h.handle.keeps = h
	}
	return ctx
}

// Asked returns a channel with what is said to the holder by who wants the lock, such as `fairlock break --ask`: words
// that anybody may send who can use the server. Only the last of them are kept. It needs Options.Listen.
func (h *Hold) Asked() <-chan string {
	h.keep()
	return h.handle.asked
}

func (h *Hold) keep() {
	c := h.handle.client
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if h.handle.err == nil {
		h.handle.keeps = h
	}
}

// Unlock releases the lock, which goes to the next in line, and waits until the server knows or ctx ends; then, or if
// ctx has ended before, the release goes on in the background. It returns ErrLost if the hold had ended by itself
// before, and ErrNotHeld if Unlock was called before. ctx may be a Context of the hold, whose end by Unlock does not count.
func (h *Hold) Unlock(ctx context.Context) error {
	lock := h.handle
	c := lock.client
	runtime.SetFinalizer(h, nil)
	ctx, cancel := lock.without(ctx)
	defer cancel()
	c.mutex.Lock()
	if lock.isReleasing || lock.lock == 0 {
		err := &Error{Op: "unlock", Name: lock.name, Err: ErrNotHeld}
		if !lock.isReleasing {
			err.Err = ErrClosed
		}
		c.mutex.Unlock()
		return err
	}
	lock.isReleasing = true
	lock.finish(ErrUnlocked)
	lock.startRelease()
	c.mutex.Unlock()
	select {
	case status := <-lock.ended:
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if status == ok {
			lock.putBack()
			return nil
		}
		lock.drop()
		c.serve()
		return c.errorOf("unlock", lock.name, status)
	case <-lock.isQuit:
		return &Error{Op: "unlock", Name: lock.name, Err: ErrClosed}
	case <-ctx.Done():
		lock.abandon()
		return errorOfContext("unlock", lock.name, ctx)
	}
}
