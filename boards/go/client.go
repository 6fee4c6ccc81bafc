// SPDX-License-Identifier: Apache-2.0

package fairlock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options are what a Client need not be told. The zero value is right for most.
type Options struct {
	User, Password string // instead of those of the URL

	// ClientID is how the ids of its holders begin, for people who look at the queue: printable, no colon, at most
	// 40 characters. By default they are random.
	ClientID string

	// ClientName is what CLIENT LIST shows. No spaces.
	ClientName string

	// Lease is for how long the server keeps a hold whose program has died; while the program lives, the hold is
	// renewed. 30 s by default, 100 ms to 12 days.
	Lease time.Duration

	// WaiterTimeout is the silence after which a waiter loses its place, and a dead one no longer holds up those
	// behind it. Every two fifths of it, a waiter sends a heartbeat. 5 s by default, 2 s to 10 min.
	WaiterTimeout time.Duration

	// ClaimTimeout is how soon a waiter has to confirm that it has been handed the lock; otherwise the next one gets
	// it. WaiterTimeout by default, and 1 s at least.
	ClaimTimeout time.Duration

	// ResponseTimeout is when a connection counts as dead that does not answer: two fifths of WaiterTimeout by default.
	ResponseTimeout time.Duration

	// ConnectTimeout is for one attempt to connect, TLS included: WaiterTimeout by default.
	ConnectTimeout time.Duration

	// OfflineTimeout is after how long without a useful answer an operation fails: twice WaiterTimeout by default.
	// Negative: only the operation's context ends it.
	OfflineTimeout time.Duration

	// Listen makes holders hear when somebody asks them to release: Hold.Asked. It costs a subscription for each.
	Listen bool

	// TLS is for rediss://. Without a ServerName, the URL's host is that. nil: a certificate that the system trusts.
	TLS *tls.Config

	// Dial makes connections, instead of a net.Dialer: network is "tcp" or "unix".
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Client is one connection to one server, which is made when it is needed, and made again when it breaks, and any
// number of locks. It is safe for concurrent use; most programs need one. It has three goroutines at most, however many
// locks wait or are held.
type Client struct {
	server *server
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	tls    *tls.Config

	mutex   sync.Mutex // of all that follows
	clock   clock
	core    *core // nil: closed
	handles map[uint32]*handle
	lastKey uint32
	idle    idleLocks

	conn       net.Conn
	socket     *socket     // of conn; nil: not known
	rest       chan []byte // what conn's writer has to write
	isWriting  bool        // conn's writer
	output     []byte
	attempt    context.CancelFunc
	attempts   int
	lastErr    error // of a connection
	connecting []chan error

	timer   *time.Timer
	isArmed bool
	due     uint32
	isLate  bool // what is due then is an answer

	isClosing bool
	closed    chan struct{}
}

// How long Close waits until the server knows.
const closePatience = 2 * time.Second

const keepAlive = time.Minute

// New returns a client for redis://[user[:password]@]host[:port][/database], the same with rediss:// for TLS, or
// unix:///path[?db=number]. It connects to nothing yet: Connect does, and so does the first lock.
func New(url string, options Options) (*Client, error) {
	server, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	if options.TLS != nil && !server.isSecure {
		return nil, errors.New("fairlock: options for TLS need a URL that begins with rediss://")
	}
	engine, err := options.forEngine(server)
	if err != nil {
		return nil, err
	}
	core, status := newCore(engine)
	if core == nil {
		return nil, fmt.Errorf("fairlock: options of the client: %w", status)
	}
	c := &Client{server: server, core: core, dial: options.Dial, handles: map[uint32]*handle{}, closed: make(chan struct{})}
	if c.dial == nil {
		c.dial = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	}
	if server.isSecure {
		c.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		if options.TLS != nil {
			c.tls = options.TLS.Clone()
		}
		if c.tls.ServerName == "" {
			c.tls.ServerName = server.host
		}
	}
	c.timer = time.AfterFunc(time.Hour, c.onTime)
	c.timer.Stop()
	return c, nil
}

func (o *Options) forEngine(s *server) (*coreOptions, error) {
	engine := &coreOptions{texts: [4]string{o.ClientID, s.user, s.password, o.ClientName}}
	if o.User != "" {
		engine.texts[1] = o.User
	}
	if o.Password != "" {
		engine.texts[2] = o.Password
	}
	for _, text := range engine.texts {
		if strings.IndexByte(text, 0) >= 0 {
			return nil, fmt.Errorf("fairlock: options of the client: a text has a NUL: %w", ErrInvalid)
		}
	}
	engine.numbers[0] = s.database
	for i, duration := range []time.Duration{
		o.Lease, o.WaiterTimeout, o.ClaimTimeout, o.ResponseTimeout, o.ConnectTimeout, o.OfflineTimeout,
	} {
		isOffline := i == 5
		if isOffline && duration < 0 {
			engine.numbers[1+i] = forever
			continue
		}
		if duration == 0 {
			continue
		}
		ms, err := milliseconds(duration)
		if err != nil {
			return nil, fmt.Errorf("fairlock: options of the client: %w", err)
		}
		engine.numbers[1+i] = ms
	}
	if o.Listen {
		engine.numbers[8] = 1
	}
	return engine, nil
}

const longest = 1<<30 - 1 // ms that a duration may have: 12.4 days

// milliseconds rounds up, so that no limit is shorter than what was asked for.
func milliseconds(duration time.Duration) (uint32, error) {
	ms := int64((duration + time.Millisecond - 1) / time.Millisecond)
	if ms < 1 || ms > longest {
		return 0, fmt.Errorf("%v is not a duration of 1 ms to 12.4 days: %w", duration, ErrInvalid)
	}
	return uint32(ms), nil
}

func quoted(name string) string { return strconv.Quote(name) }

// Connect sees to it that there is a connection, and that the server takes this user, by one attempt. No other method
// needs it, but without it a wrong password comes to light with the first lock only.
func (c *Client) Connect(ctx context.Context) error {
	c.mutex.Lock()
	if c.isClosing {
		c.mutex.Unlock()
		return &Error{Op: "connect", Err: ErrClosed}
	}
	done := make(chan error, 1)
	c.connecting = append(c.connecting, done)
	c.core.connect(c.core.at, c.clock.now())
	c.serve()
	c.mutex.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errorOfContext("connect", "", ctx)
	}
}

// Close ends all waits and holds, and then the connection, when the server knows, or after 2 s: what it has not been
// told by then ends with its lease. Waits end with ErrClosed. It returns nil, also when called again.
func (c *Client) Close() error {
	c.mutex.Lock()
	if !c.isClosing {
		c.isClosing = true
		for _, h := range c.handles {
			if !h.isReleasing {
				h.quit()
			}
		}
		c.dropIdle(time.Now().Add(time.Hour))
		c.serve()
	}
	c.mutex.Unlock()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-c.closed:
	case <-patience.C:
		c.mutex.Lock()
		c.end()
		c.mutex.Unlock()
	}
	return nil
}

// All below is called with the mutex, unless said.

// end ends what is left of the client.
func (c *Client) end() {
	if c.core == nil {
		return
	}
	for _, h := range c.handles {
		h.quit()
	}
	c.cut()
	c.timer.Stop()
	if c.idle.timer != nil {
		c.idle.timer.Stop()
	}
	c.core = nil
	c.tellConnecting(ErrClosed)
	close(c.closed)
}

// cut closes the connection, or ends the attempt to open one.
func (c *Client) cut() {
	if c.attempt != nil {
		c.attempt()
		c.attempt = nil
	}
	c.attempts++
	if c.conn != nil {
		if c.tls != nil {
			go c.conn.Close() // which says so, and may have to wait for that
		} else {
			c.conn.Close()
		}
		close(c.rest)
		c.conn, c.socket, c.isWriting = nil, nil, false
	}
}

// broken tells the engine that there is no connection.
func (c *Client) broken(status Status) {
	c.cut()
	c.core.closed(c.core.at, uint32(int32(status)), c.clock.now())
	if why := Status(int32(c.core.serverStatus(c.core.at))); why != 0 {
		status = why
	}
	c.tellConnecting(status)
}

func (c *Client) tellConnecting(why error) {
	for _, done := range c.connecting {
		status, isStatus := why.(Status)
		switch {
		case !isStatus:
			done <- &Error{Op: "connect", Err: why}
		case status == ok:
			done <- nil
		default:
			done <- c.errorOf("connect", "", status)
		}
	}
	c.connecting = nil
}

func (c *Client) serverText() string {
	if c.core == nil {
		return ""
	}
	return c.core.text(c.core.error(c.core.at))
}

// serve does what is due, after each operation and each event of the connection.
func (c *Client) serve() {
	if c.core == nil {
		return
	}
	now := c.clock.now()
	wants := c.core.wants(c.core.at, now)
	if wants&wantClose != 0 {
		c.broken(ErrUnreachable)
		now = c.clock.now()
		wants = c.core.wants(c.core.at, now)
	}
	if wants&wantConnect != 0 && c.conn == nil && c.attempt == nil {
		c.open(now)
	}
	c.send(now)
	c.readEvents()
	if len(c.connecting) > 0 && c.core.ready(c.core.at) != 0 {
		c.tellConnecting(Status(ok))
	}
	if c.isClosing && len(c.handles) == 0 && c.core.leaving(c.core.at) == 0 {
		c.end()
		return
	}
	c.arm(now)
}

func (c *Client) readEvents() {
	for {
		e, isThere := c.core.nextEvent()
		if !isThere {
			return
		}
		h := c.handles[e.key]
		if h == nil {
			continue
		}
		switch e.kind {
		case eventEnded:
			h.token = e.token
			h.ended <- e.status
		case eventLost:
			h.lose()
		case eventAsked:
			h.ask(e.words)
		}
	}
}

// If this program was stopped, the answer to a request may have come in time, and be unread still. Its reader gets this
// long before the answer counts as late.
const grace = 20 // ms

// send writes what there is to send, as far as there is room for it; the rest is left to the connection's writer, so that
// nobody has to wait for a server that does not read. The engine is told before that it was sent: an answer may come
// before the call that writes has returned.
func (c *Client) send(now uint32) {
	for c.conn != nil && !c.isWriting {
		n := c.core.takeOutput(c.output, now)
		if n == 0 {
			return
		}
		if written := c.socket.writeNow(c.output[:n]); written < n {
			c.isWriting = true
			c.rest <- c.output[written:n]
		}
	}
}

// arm sets the timer. One that comes too early does no harm.
func (c *Client) arm(now uint32) {
	wait := c.core.deadline(c.core.at, now)
	// All that can be done at once was done. So what is due is an answer.
	isLate := wait == 0
	if isLate {
		wait = grace
	}
	if c.isArmed && c.isLate == isLate && int32(c.due-now) <= int32(wait) {
		return
	}
	c.isArmed, c.isLate, c.due = true, isLate, now+wait
	c.timer.Reset(time.Duration(wait) * time.Millisecond)
}

// onTime is called by the timer, without the mutex.
func (c *Client) onTime() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.core == nil {
		return
	}
	now := c.clock.now()
	if c.isLate && int32(c.due-now) <= 0 && c.conn != nil && !c.socket.hasUnread() {
		c.core.received(c.core.at, 0, now)
	}
	c.isArmed = false
	c.serve()
}

// open begins to open a connection.
func (c *Client) open(now uint32) {
	c.core.opening(c.core.at, now)
	ctx, cancel := context.WithCancel(context.Background())
	c.attempt = cancel
	attempt := c.attempts
	go func() {
		conn, err := c.connect(ctx)
		cancel()
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if c.core == nil || attempt != c.attempts {
			if err == nil {
				conn.Close()
			}
			return
		}
		c.attempt = nil
		if err != nil {
			c.lastErr = err
			c.broken(statusOf(err))
		} else {
			c.lastErr = nil
			c.conn, c.socket, c.rest = conn, socketOf(conn), make(chan []byte, 1)
			c.output = make([]byte, bufferSize) // the former writer may still have the last one
			c.core.opened(c.core.at, c.clock.now())
			go c.read(conn)
			go c.write(conn, c.rest)
		}
		c.serve()
	}()
}

// connect opens a connection, without the mutex.
func (c *Client) connect(ctx context.Context) (net.Conn, error) {
	conn, err := c.dial(ctx, c.server.network, c.server.address)
	if err != nil || c.tls == nil {
		return conn, err
	}
	secure := tls.Client(conn, c.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// failed is called when reading from conn, or writing to it, has failed.
func (c *Client) failed(conn net.Conn, err error) {
	if c.conn != conn {
		return
	}
	c.lastErr = err
	c.broken(statusOf(err))
	c.serve()
}

// What is received or sent at a time, bytes.
const bufferSize = 4096

// read is a goroutine of a connection. It ends with that.
func (c *Client) read(conn net.Conn) {
	buffer := make([]byte, bufferSize)
	for {
		n, err := conn.Read(buffer)
		c.mutex.Lock()
		isOurs := c.conn == conn
		if isOurs && n > 0 {
			c.core.give(buffer[:n], c.clock.now())
			c.serve()
		}
		if err != nil {
			c.failed(conn, err)
		}
		c.mutex.Unlock()
		if !isOurs || err != nil {
			return
		}
	}
}

// write is a goroutine of a connection. It ends with that.
func (c *Client) write(conn net.Conn, rest chan []byte) {
	for data := range rest {
		_, err := conn.Write(data)
		c.mutex.Lock()
		if err != nil {
			c.failed(conn, err)
		} else if c.conn == conn {
			c.isWriting = false
			c.serve()
		}
		c.mutex.Unlock()
	}
}
