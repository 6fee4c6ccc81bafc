// SPDX-License-Identifier: Apache-2.0

package fairlock

import (
	"bytes"
	"encoding/binary"
	"sync"
)

// A core is the lock's engine for one client, and its locks. It does no I/O and reads no clock. machine has the
// functions of boards/core/core.h, which say what each does. It is used by one goroutine at a time.
type core struct {
	*machine
	at uint32
}

// What a core wants of its connection: bits.
const (
	wantConnect = 1
	wantClose   = 2
)

// Kinds of events.
const (
	eventEnded = 1
	eventLost  = 2
	eventAsked = 3
)

// Arguments of an acquire.
const (
	forever = 1<<32 - 1
	renewed = 0x7e7e7e7e
)

const (
	ok      = 0
	pending = 1
)

// An event is what has happened to the lock with this key.
type event struct {
	kind   uint32
	key    uint32
	status Status
	token  uint64
	words  string
}

type coreOptions struct {
	texts   [4]string // client id, user, password, client name; "": none
	numbers [9]uint32
}

// newCore returns nil, and the status that says why, if the engine does not take the options.
func newCore(options *coreOptions) (*core, Status) {
	const size = 4 * (len(options.texts) + len(options.numbers) + 1)
	m := newMachine()
	data := make([]byte, size)
	for i, text := range options.texts {
		if text == "" {
			continue
		}
		at, ok := m.place(append([]byte(text), 0))
		if !ok {
			return nil, ErrOOM
		}
		defer m.free(at)
		binary.LittleEndian.PutUint32(data[4*i:], at)
	}
	for i, number := range options.numbers {
		binary.LittleEndian.PutUint32(data[4*(len(options.texts)+i):], number)
	}
	at, ok := m.place(data)
	if !ok {
		return nil, ErrOOM
	}
	defer m.free(at)
	c := &core{m, m.create(at)}
	if c.at == 0 {
		return nil, Status(int32(m.get32(at + uint32(size) - 4)))
	}
	return c, 0
}

// place copies data into the machine, until it is freed.
func (m *machine) place(data []byte) (at uint32, ok bool) {
	at = m.allocate(uint32(len(data)))
	if at == 0 {
		return 0, false
	}
	copy(m.memory[at:], data)
	return at, true
}

// text copies what ends with a NUL.
func (m *machine) text(at uint32) string {
	part := m.memory[at:]
	return string(part[:bytes.IndexByte(part, 0)])
}

// add returns the address of a new lock, or 0 and a status. limit: -1: exclusive, 0: shared.
func (c *core) add(name string, limit int, key uint32) (uint32, Status) {
	at, ok := c.place([]byte(name))
	if !ok {
		return 0, ErrOOM
	}
	defer c.free(at)
	lock := c.lock(c.at, at, uint32(len(name)), uint32(int32(limit)), key)
	if lock == 0 {
		return 0, Status(int32(c.status(c.at)))
	}
	return lock, 0
}

func (c *core) nextEvent() (event, bool) {
	at := c.next(c.at)
	if at == 0 {
		return event{}, false
	}
	e := event{
		kind:   c.get32(at),
		key:    c.get32(at + 4),
		status: Status(int32(c.get32(at + 8))),
		token:  c.get64(at + 16),
	}
	if size := c.get32(at + 12); size > 0 {
		e.words = string(c.memory[c.get32(at+24):][:size])
	}
	return e, true
}

// takeOutput copies what is to be sent to buffer, and says how much that is.
func (c *core) takeOutput(buffer []byte, now uint32) int {
	size := c.output(c.at, now)
	if size == 0 {
		return 0
	}
	n := copy(buffer, c.memory[c.outputAt(c.at):][:size])
	c.sent(c.at, uint32(n))
	return n
}

// give has the core read data, unless it wants to close the connection.
func (c *core) give(data []byte, now uint32) {
	for len(data) > 0 {
		room := c.input(c.at)
		if room == 0 {
			return
		}
		n := copy(c.memory[c.inputAt(c.at):][:room], data)
		c.received(c.at, uint32(n), now)
		data = data[n:]
	}
}

// The texts of statuses are constants of the engine, and need no core.
var texts struct {
	sync.Mutex
	*machine
}

func textOf(get func(m *machine) uint32) string {
	texts.Lock()
	defer texts.Unlock()
	if texts.machine == nil {
		texts.machine = newMachine()
	}
	return texts.text(get(texts.machine))
}

// Version returns the version of the lock's engine.
func Version() string { return textOf((*machine).version) }
