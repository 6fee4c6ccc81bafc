// SPDX-License-Identifier: Apache-2.0

package fairlock

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The package as a program that is driven by lines, which tests/interop/RELEASES.md describes, work and contend of
// tests/interop/client.c included: the test's own program with the arguments HOST PORT [WAITER_MS [LEASE_MS]].
func TestMain(m *testing.M) {
	if len(os.Args) >= 3 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(drive(os.Args[1:]))
	}
	os.Exit(m.Run())
}

type driver struct {
	client  *Client
	handles map[string]*handle
	lines   chan string
}

func drive(arguments []string) int {
	options := Options{}
	for i, option := range []*time.Duration{&options.WaiterTimeout, &options.Lease} {
		if len(arguments) > 2+i {
			*option = milli(arguments[2+i])
		}
	}
	client, err := New("redis://"+arguments[0]+":"+arguments[1], options)
	if err == nil {
		err = client.Connect(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	d := &driver{client, map[string]*handle{}, make(chan string)}
	fmt.Println("ready")
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			d.lines <- lines.Text()
		}
		close(d.lines)
	}()
	for line := range d.lines {
		d.obey(strings.Split(line, " "))
	}
	return 0 // what it holds or waits for ends with its connection and its lease
}

func milli(text string) time.Duration { return time.Duration(integer(text)) * time.Millisecond }

func integer(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return number
}

func (d *driver) handle(name string, limit int) *handle {
	key := fmt.Sprint(limit, " ", name)
	if d.handles[key] == nil {
		d.client.mutex.Lock()
		defer d.client.mutex.Unlock()
		h, status := d.client.add(name, limit)
		if h == nil {
			panic(status) // obey() says so
		}
		d.handles[key] = h
	}
	return d.handles[key]
}

func (h *handle) tryAcquire(wait, lease int) Status {
	ms := uint32(lease)
	if lease == 0 {
		ms = renewed
	}
	h.client.mutex.Lock()
	h.start(uint32(wait), ms)
	h.client.mutex.Unlock()
	return <-h.ended
}

func (h *handle) tryRelease() Status {
	h.client.mutex.Lock()
	h.startRelease()
	h.client.mutex.Unlock()
	return <-h.ended
}

func (h *handle) remainingNow() time.Duration {
	h.client.mutex.Lock()
	defer h.client.mutex.Unlock()
	return h.remaining()
}

func (h *handle) tokenNow() uint64 {
	h.client.mutex.Lock()
	defer h.client.mutex.Unlock()
	return h.client.core.token(h.lock, h.client.clock.now())
}

func (h *handle) idNow() string {
	h.client.mutex.Lock()
	defer h.client.mutex.Unlock()
	return h.client.core.text(h.client.core.id(h.lock))
}

func (d *driver) obey(words []string) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case Status:
			fmt.Println("error", cause)
		default:
			panic(cause)
		}
	}()
	arguments := append(words[1:], "0", "0", "0", "0")
	switch name := arguments[0]; words[0] {
	case "id":
		fmt.Println("id", d.handle(name, -1).idNow())
	case "share-id":
		fmt.Println("id", d.handle(name, integer(arguments[1])).idNow())
	case "acquire":
		answerHeld(d.handle(name, -1), integer(arguments[1]), integer(arguments[2]))
	case "share":
		answerHeld(d.handle(name, integer(arguments[1])), integer(arguments[2]), integer(arguments[3]))
	case "release":
		answer(d.handle(name, -1).tryRelease(), "released")
	case "unshare":
		answer(d.handle(name, integer(arguments[1])).tryRelease(), "released")
	case "holds":
		if h := d.handle(name, -1); h.remainingNow() > 0 {
			fmt.Println("held", h.tokenNow())
		} else {
			fmt.Println("not-held")
		}
	case "contend":
		contend(d.handle(name, -1), milli(arguments[1]), milli(arguments[2]), integer(arguments[3]))
	case "work":
		d.work(name, integer(arguments[1]), arguments[2] != "0")
	default:
		fmt.Println("unsupported")
	}
}

func answerHeld(h *handle, wait, lease int) {
	status := h.tryAcquire(wait, lease)
	answer(status, fmt.Sprint("held ", h.tokenNow()))
}

func answer(status Status, good string) {
	answers := map[Status]string{0: good, ErrBusy: "busy", ErrTimeout: "timeout", ErrLost: "lost", ErrNotHeld: "not-held"}
	if text, isThere := answers[status]; isThere {
		fmt.Println(text)
	} else {
		fmt.Println("error", int(status))
	}
}

// monotonic is the clock that all programs of a contest share, us.
func monotonic() int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano() / 1000
}

func contend(h *handle, during, hold time.Duration, pauseMs int) {
	dice := rand.New(rand.NewSource(int64(os.Getpid())))
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for until := time.Now().Add(during); time.Now().Before(until); {
		asked := monotonic()
		status := h.tryAcquire(60000, 0)
		if status == ok {
			begun, token := monotonic(), h.tokenNow()
			time.Sleep(hold)
			ended := monotonic()
			status = h.tryRelease()
			fmt.Fprintln(out, "hold", asked, begun, ended, token)
		}
		if status != ok {
			fmt.Fprintln(out, "failed", asked, int(status))
		}
		if pauseMs > 0 {
			time.Sleep(time.Duration(dice.Int63n(int64(pauseMs) * int64(time.Millisecond))))
		}
	}
	fmt.Fprintln(out, "done")
	out.Flush()
}

// work holds one of two locks after the other, the second often shared, and now and then for 4 s, until a line comes. It
// tells what each acquire and release came to, and until when it believed in each hold.
func (d *driver) work(name string, limit int, isCareless bool) {
	dice := rand.New(rand.NewSource(int64(os.Getpid())))
	for {
		select {
		case <-d.lines:
			fmt.Println("done")
			return
		default:
		}
		hold := time.Duration(dice.Intn(20)) * time.Millisecond
		if dice.Intn(200) == 0 {
			hold = 4 * time.Second
		}
		one, as := name, -1
		if dice.Intn(2) == 1 {
			one = name + ".shared"
			if dice.Intn(4) > 0 {
				as = limit
			}
		}
		workIn(d.handle(one, as), one, as, hold, isCareless)
		time.Sleep(time.Duration(dice.Intn(20)) * time.Millisecond)
	}
}

func workIn(h *handle, name string, limit int, hold time.Duration, isCareless bool) {
	if limit < 0 {
		limit = 0
	}
	asked := monotonic()
	status := h.tryAcquire(120000, 0)
	fmt.Println("acquired", name, int(status))
	if status != ok {
		return
	}
	begun, seen, token := monotonic(), int64(0), h.tokenNow()
	for now := begun; seen == 0 || now < begun+hold.Microseconds(); now = monotonic() {
		if !isCareless && h.remainingNow() == 0 {
			break
		}
		seen = now
		time.Sleep(time.Millisecond)
	}
	if isCareless {
		seen = monotonic()
	}
	if seen != 0 {
		fmt.Println("hold", name, limit, asked, begun, seen, token)
	}
	fmt.Println("released", name, int(h.tryRelease()))
}
