// SPDX-License-Identifier: Apache-2.0

package fairlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/fairlock"
)

func TestLock(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	other := newClient(t, s.url(), fairlock.Options{})
	hold := lock(t, c, "door:7")
	if hold.Name() != "door:7" || hold.Token() == 0 || !strings.Contains(hold.ID(), ":") {
		t.Fatal(hold.Name(), hold.Token(), hold.ID())
	}
	if r := hold.Remaining(); r <= 0 || r > 30*time.Second {
		t.Fatal(r)
	}
	for _, client := range []*fairlock.Client{c, other} {
		if _, err := client.TryLock(background, "door:7"); !errors.Is(err, fairlock.ErrBusy) {
			t.Fatal(err)
		}
	}
	ctx := hold.Context(background)
	if ctx.Err() != nil || hold.Err() != nil {
		t.Fatal(ctx.Err(), hold.Err())
	}
	must(t, hold.Unlock(background))
	<-ctx.Done()
	<-hold.Done()
	<-hold.Context(background).Done()
	if hold.Err() != fairlock.ErrUnlocked || hold.Remaining() != 0 || hold.Token() == 0 {
		t.Fatal(hold.Err(), hold.Remaining())
	}
	if err := hold.Unlock(background); !errors.Is(err, fairlock.ErrNotHeld) {
		t.Fatal(err)
	}
	next, err := other.TryLock(background, "door:7")
	must(t, err)
	if next.Token() <= hold.Token() {
		t.Fatal(next.Token())
	}
}

func TestLease(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	hold := lock(t, c, "short", fairlock.Lease(100*time.Millisecond))
	lock(t, c, "short") // when that has ended
	if err := hold.Unlock(background); !errors.Is(err, fairlock.ErrLost) {
		t.Fatal(err)
	}
	for _, lease := range []time.Duration{0, -time.Second, time.Millisecond, 1000 * time.Hour} {
		if _, err := c.Lock(background, "short", fairlock.Lease(lease)); !errors.Is(err, fairlock.ErrInvalid) {
			t.Fatal(lease, err)
		}
	}
}

func TestShared(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	one, two := lock(t, c, "read", fairlock.Shared()), lock(t, c, "read", fairlock.Shared())
	if _, err := c.TryLock(background, "read"); !errors.Is(err, fairlock.ErrBusy) {
		t.Fatal(err)
	}
	must(t, one.Unlock(background))
	must(t, two.Unlock(background))
	must(t, lock(t, c, "read").Unlock(background))
	for i := 0; i < 3; i++ {
		lock(t, c, "three", fairlock.Limit(3))
	}
	if _, err := c.TryLock(background, "three", fairlock.Limit(3)); !errors.Is(err, fairlock.ErrBusy) {
		t.Fatal(err)
	}
	for _, limit := range []int{0, -1, 1001} {
		if _, err := c.TryLock(background, "three", fairlock.Limit(limit)); !errors.Is(err, fairlock.ErrInvalid) {
			t.Fatal(limit, err)
		}
	}
}

func TestNames(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	for _, name := range []string{"\x00\xff", "a b", strings.Repeat("x", 4096)} {
		must(t, lock(t, c, name).Unlock(background))
	}
	for name, why := range map[string]error{"": fairlock.ErrInvalid, "{x}": fairlock.ErrInvalid, strings.Repeat("x", 4097): fairlock.ErrTooLong} {
		if _, err := c.Lock(background, name); !errors.Is(err, why) {
			t.Fatal(name, err)
		}
	}
}

// A lock that is used again soon is not subscribed to again, and one that is not used is forgotten.
func TestUsedAgain(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	holder := newClient(t, s.url(), fairlock.Options{})
	channels := func() string { return s.ask("PUBSUB", "CHANNELS", "redisson_lock__channel:{again}*") }
	ids := map[string]bool{}
	for i := 0; i < 5; i++ {
		hold := lock(t, holder, "again")
		got := make(chan *fairlock.Hold)
		go func() { got <- lock(t, c, "again") }()
		s.waitFor("again", 1)
		must(t, hold.Unlock(background))
		next := <-got
		ids[next.ID()] = true
		must(t, next.Unlock(background))
	}
	if len(ids) != 1 || channels() == "0" {
		t.Fatal(ids, channels())
	}
	until(t, "it is forgotten", func() bool { return channels() == "0" })
}

// One counter, which only the lock guards, so that the race detector looks, too.
func TestThousandGoroutines(t *testing.T) {
	s := newServer(t)
	var clients []*fairlock.Client
	for i := 0; i < 4; i++ {
		clients = append(clients, newClient(t, s.url(), fairlock.Options{}))
	}
	var all sync.WaitGroup
	inside, longest, tokens := 0, 0, []uint64{}
	for i := 0; i < 1000; i++ {
		client := clients[i%len(clients)]
		all.Add(1)
		go func() {
			defer all.Done()
			hold, err := client.Lock(background, "thousand")
			if err != nil {
				t.Error(err)
				return
			}
			inside++
			if inside > longest {
				longest = inside
			}
			tokens = append(tokens, hold.Token())
			inside--
			if err := hold.Unlock(background); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if longest != 1 || len(tokens) != 1000 || !sort.SliceIsSorted(tokens, func(i, j int) bool { return tokens[i] < tokens[j] }) {
		t.Fatal(longest, len(tokens))
	}
	until(t, "all is free", func() bool { return s.isFree("thousand") })
}

func TestDeadlineLeavesTheLine(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	hold := lock(t, c, "late")
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	_, err := c.Lock(ctx, "late")
	var timeout net.Error
	if !errors.Is(err, fairlock.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && !timeout.Timeout() {
		t.Fatal(err)
	}
	s.waitFor("late", 0)
	if _, err := c.Lock(ctx, "late"); !errors.Is(err, fairlock.ErrTimeout) {
		t.Fatal(err)
	}
	must(t, hold.Unlock(background))
}

// A wait whose context ends at about the moment at which it is handed the lock leaves neither a hold nor a place.
func TestCancelAroundTheGrant(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	holder := newClient(t, s.url(), fairlock.Options{})
	got := 0
	for i := 0; i < 200; i++ {
		hold := lock(t, holder, "edge")
		ctx, cancel := context.WithCancel(background)
		done := make(chan *fairlock.Hold)
		go func() {
			hold, err := c.Lock(ctx, "edge")
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			done <- hold
		}()
		s.waitFor("edge", 1)
		released := make(chan error)
		go func() { released <- hold.Unlock(background) }()
		time.Sleep(time.Duration(i*5) * time.Microsecond)
		cancel()
		if next := <-done; next != nil {
			got++
			must(t, next.Unlock(background))
		}
		must(t, <-released)
	}
	until(t, "all is free", func() bool { return s.isFree("edge") })
	t.Log(got, "of 200 were handed the lock before")
}

func TestCause(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	lock(t, c, "cause")
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := c.Lock(ctx, "cause"); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `lock "cause"`) {
		t.Fatal(err)
	}
}

// The context of a hold ends by Unlock, which does not go by that.
func TestUnlockWithTheContextOfTheHold(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	for i := 0; i < 20; i++ {
		hold := lock(t, c, "own")
		ctx := hold.Context(background)
		inside, cancel := context.WithTimeout(ctx, soon)
		if i%2 == 0 {
			inside = ctx
		}
		must(t, hold.Unlock(inside))
		if ctx.Err() == nil {
			t.Fatal("it has not ended")
		}
		cancel()
	}
	parent, cancel := context.WithCancel(background)
	hold := lock(t, c, "own")
	ctx := hold.Context(parent)
	cancel()
	<-ctx.Done()
	if err := hold.Unlock(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// A context that has ended does not keep a release from being sent.
func TestUnlockWithAnEndedContext(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	for i := 0; i < 20; i++ {
		hold := lock(t, c, "ended")
		ctx, cancel := context.WithCancel(background)
		cancel()
		if err := hold.Unlock(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	until(t, "it is free", func() bool { return s.isFree("ended") })
}

func TestADroppedHoldIsReleased(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	func() { lock(t, c, "dropped") }()
	kept := lock(t, c, "kept").Context(background)
	until(t, "it is free", func() bool {
		runtime.GC()
		return s.isFree("dropped")
	})
	if kept.Err() != nil || s.isFree("kept") {
		t.Fatal("a hold was dropped whose context is in use")
	}
}

func TestClose(t *testing.T) {
	s := newServer(t)
	before := runtime.NumGoroutine()
	c := newClient(t, s.url(), fairlock.Options{})
	hold := lock(t, c, "close")
	ctx := hold.Context(background)
	failed := make(chan error)
	for i := 0; i < 3; i++ {
		go func() {
			_, err := c.Lock(background, "close")
			failed <- err
		}()
	}
	s.waitFor("close", 3)
	must(t, c.Close())
	for i := 0; i < 3; i++ {
		if err := <-failed; !errors.Is(err, fairlock.ErrClosed) || !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
	}
	<-ctx.Done()
	if !errors.Is(hold.Err(), fairlock.ErrClosed) || hold.Remaining() != 0 || !s.isFree("close") {
		t.Fatal(hold.Err())
	}
	for _, err := range []error{hold.Unlock(background), c.Connect(background)} {
		if !errors.Is(err, fairlock.ErrClosed) {
			t.Fatal(err)
		}
	}
	if _, err := c.TryLock(background, "close"); !errors.Is(err, fairlock.ErrClosed) {
		t.Fatal(err)
	}
	must(t, c.Close())
	until(t, "its goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// A release that was begun before is told its result.
func TestCloseWaitsForReleases(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	var holds []*fairlock.Hold
	for i := 0; i < 20; i++ {
		holds = append(holds, lock(t, c, fmt.Sprint("release:", i)))
	}
	released := make(chan error, len(holds))
	for _, hold := range holds {
		hold := hold
		go func() { released <- hold.Unlock(background) }()
		<-hold.Done()
	}
	must(t, c.Close())
	for range holds {
		must(t, <-released)
	}
}

// Programs of C and goroutines in one queue, in the order in which they came.
func TestOrderWithC(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{})
	holder := lock(t, c, "order")
	var served []int
	var mutex sync.Mutex
	serve := func(i int) {
		mutex.Lock()
		served = append(served, i)
		mutex.Unlock()
	}
	var all sync.WaitGroup
	for i := 0; i < 10; i++ {
		i := i
		all.Add(1)
		if i%2 == 0 {
			go func() {
				defer all.Done()
				hold, err := c.Lock(background, "order")
				if err != nil {
					t.Error(err)
					return
				}
				serve(i)
				if err := hold.Unlock(background); err != nil {
					t.Error(err)
				}
			}()
		} else {
			p := newProgram(t, s.port, build(t, "compat/this/client"))
			p.say("acquire", "order", 60000, 0)
			go func() {
				defer all.Done()
				if line := <-p.heard; !strings.HasPrefix(line, "held ") {
					t.Error(line)
				}
				serve(i)
				p.say("release", "order")
				<-p.heard
			}()
		}
		s.waitFor("order", i+1)
	}
	must(t, holder.Unlock(background))
	all.Wait()
	if fmt.Sprint(served) != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Fatal(served)
	}
}

func TestAsked(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{Listen: true})
	hold := lock(t, c, "asked")
	asked := func(words string) {
		t.Helper()
		select {
		case said := <-hold.Asked():
			if said != words {
				t.Fatal(said)
			}
		case <-time.After(soon):
			t.Fatal("it was not asked")
		}
	}
	command := exec.Command(build(t, "fairlock"), "break", "--ask", "--reason", "an update", "--url", s.url(), "asked")
	command.Env = append(os.Environ(), "SUDO_USER=anna")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	host, _ := os.Hostname()
	short, _, _ := strings.Cut(host, ".")
	asked("anna@" + short + " an update")
	s.ask("PUBLISH", "redisson_lock__channel:{asked}:"+hold.ID(), fmt.Sprint(hold.Token()))
	asked("")
	s.ask("PUBLISH", "redisson_lock__channel:{asked}:"+hold.ID(), fmt.Sprint(hold.Token(), " operator an update"))
	asked("operator an update")
	must(t, hold.Unlock(background))
}

func TestUsers(t *testing.T) {
	s := newServer(t, "--requirepass", "right/#")
	for url, isRight := range map[string]bool{
		"redis://:right%2F%23@" + s.address(): true, "redis://:wrong@" + s.address(): false, s.url(): false,
	} {
		c := newClient(t, url, fairlock.Options{})
		err := c.Connect(background)
		if isRight {
			must(t, err)
			must(t, lock(t, c, "users").Unlock(background))
			continue
		}
		if !errors.Is(err, fairlock.ErrDenied) || !errors.Is(err, fs.ErrPermission) {
			t.Fatal(err)
		}
		if _, err := c.Lock(background, "users"); !errors.Is(err, fairlock.ErrDenied) || strings.Contains(err.Error(), "wrong@") {
			t.Fatal(err)
		}
	}
	must(t, newClient(t, s.url(), fairlock.Options{Password: "right/#", ClientName: "tester"}).Connect(background))
}

func TestUnixSocket(t *testing.T) {
	folder, err := os.MkdirTemp("", "fairlock") // a path of a socket has to be short
	must(t, err)
	defer os.RemoveAll(folder)
	newServer(t, "--unixsocket", folder+"/redis.sock")
	c := newClient(t, "unix://"+folder+"/redis.sock?db=3", fairlock.Options{})
	must(t, lock(t, c, "unix").Unlock(background))
}

func TestURLs(t *testing.T) {
	for _, url := range []string{
		"redis://localhost", "rediss://user:p%40ss@[::1]:6380/3", "valkey://h:1", "valkeys://h", "unix:///run/redis.sock?db=2",
	} {
		c, err := fairlock.New(url, fairlock.Options{})
		must(t, err)
		must(t, c.Close())
	}
	for url, why := range map[string]string{
		"": "does not begin", "localhost:6379": "does not begin", "http://host": "does not begin", "redis://": "no host",
		"redis://a,b": "several hosts", "redis+sentinel://a,b/mymaster": "not supported", "redis+cluster://a": "not supported",
		"redis://host:0": "port", "redis://host:70000": "port", "redis://host/x": "database", "redis://host?db=1": "'?'",
		"redis://:s%00ecret@host": "NUL", "unix:///a%00b": "NUL", "redis://a%00b": "", "redis://a\x00b": "",
		"redis://:secret%@host": "malformed", "redis://:s/ecret@host": "", "unix://run/redis.sock": "absolute", "unix:///a?x=1": "?db=",
	} {
		_, err := fairlock.New(url, fairlock.Options{})
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "ecret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, options := range []fairlock.Options{
		{Lease: time.Millisecond}, {Lease: -time.Second}, {WaiterTimeout: time.Second}, {WaiterTimeout: time.Hour}, {ClientID: "a:b"},
		{Lease: 1000 * time.Hour}, {Password: "a\x00b"}, {User: "a\x00b"}, {ClientName: "a\x00b"}, {ClaimTimeout: time.Hour}, {ClientID: strings.Repeat("x", 41)},
	} {
		_, err := fairlock.New("redis://localhost", options)
		if !errors.Is(err, fairlock.ErrInvalid) && !errors.Is(err, fairlock.ErrTooLong) {
			t.Errorf("%+v: %v", options, err)
		}
	}
	if _, err := fairlock.New("redis://localhost", fairlock.Options{TLS: &tls.Config{}}); err == nil {
		t.Error("options of TLS, without any")
	}
	c, err := fairlock.New("redis://localhost", fairlock.Options{OfflineTimeout: -1})
	must(t, err)
	must(t, c.Close())
}

// The numbers of statuses are those of the engine, which has their names.
func TestStatuses(t *testing.T) {
	for status, name := range map[fairlock.Status]string{
		fairlock.ErrBusy: "BUSY", fairlock.ErrTimeout: "TIMEOUT", fairlock.ErrLost: "LOST", fairlock.ErrNotHeld: "NOT_HELD",
		fairlock.ErrUnknown: "UNKNOWN", fairlock.ErrUnreachable: "UNREACHABLE", fairlock.ErrDenied: "DENIED",
		fairlock.ErrUnsupported: "UNSUPPORTED", fairlock.ErrUnavailable: "UNAVAILABLE", fairlock.ErrReadOnly: "READONLY",
		fairlock.ErrOOM: "OOM", fairlock.ErrMisconf: "MISCONF", fairlock.ErrRefused: "REFUSED", fairlock.ErrProtocol: "PROTOCOL",
		fairlock.ErrInvalid: "INVALID", fairlock.ErrTooLong: "TOO_LONG", fairlock.ErrWrongShard: "WRONG_SHARD",
		fairlock.ErrUntrusted: "UNTRUSTED", fairlock.ErrOutdated: "OUTDATED",
	} {
		if status.String() != name || status.Error() == "" {
			t.Errorf("%d is %s, not %s: %s", int(status), status, name, status.Error())
		}
	}
	if fairlock.ErrBusy.Error() != "fairlock: somebody else holds the lock or is first in line" || !fairlock.ErrTimeout.Timeout() ||
		fairlock.ErrBusy.Timeout() || fairlock.Version() == "" {
		t.Error(fairlock.ErrBusy)
	}
}
