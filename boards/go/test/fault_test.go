// SPDX-License-Identifier: Apache-2.0

package fairlock_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.org/fairlock"
)

func TestUnreachable(t *testing.T) {
	c := newClient(t, "redis://127.0.0.1:1", fairlock.Options{WaiterTimeout: 2 * time.Second, OfflineTimeout: 300 * time.Millisecond})
	err := c.Connect(background)
	var network *net.OpError
	if !errors.Is(err, fairlock.ErrUnreachable) || !errors.As(err, &network) {
		t.Fatal(err)
	}
	if _, err := c.Lock(background, "nobody"); !errors.Is(err, fairlock.ErrUnreachable) {
		t.Fatal(err)
	}
}

// A server that takes connections and says nothing keeps no context waiting.
func TestContextAtASilentServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	c := newClient(t, "redis://"+listener.Addr().String(), fairlock.Options{})
	for _, f := range []func(context.Context) error{
		c.Connect,
		func(ctx context.Context) error { _, err := c.Lock(ctx, "silent"); return err },
	} {
		ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
		if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
}

// What ends on the server ends the hold's context.
func TestAHoldThatIsDeleted(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{Lease: time.Second})
	hold := lock(t, c, "gone")
	type key struct{}
	parent := context.WithValue(background, key{}, "kept")
	ctx := hold.Context(parent)
	s.ask("DEL", "gone")
	select {
	case <-ctx.Done():
	case <-time.After(soon):
		t.Fatal("the context did not end")
	}
	if ctx.Value(key{}) != "kept" || !errors.Is(hold.Err(), fairlock.ErrLost) || hold.Remaining() != 0 {
		t.Fatal(hold.Err())
	}
	if err := hold.Unlock(background); !errors.Is(err, fairlock.ErrLost) {
		t.Fatal(err)
	}
	must(t, lock(t, c, "gone").Unlock(background))
}

// A server that stops for longer than a lease: the hold is not believed in after that, and its context ends meanwhile. A
// wait goes on.
func TestAServerThatIsFrozen(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{Lease: time.Second, OfflineTimeout: -1})
	hold := lock(t, c, "frozen")
	before := time.Now()
	s.signal(syscall.SIGSTOP)
	select {
	case <-hold.Done():
	case <-time.After(soon):
		t.Fatal("it still believes in its hold")
	}
	if !errors.Is(hold.Err(), fairlock.ErrLost) || hold.Remaining() != 0 || time.Since(before) < 500*time.Millisecond {
		t.Fatal(hold.Err(), time.Since(before))
	}
	got := make(chan error)
	go func() {
		next, err := c.Lock(background, "frozen")
		if err == nil {
			err = next.Unlock(background)
		}
		got <- err
	}()
	s.signal(syscall.SIGCONT)
	must(t, <-got)
}

// Hundreds of waits that are begun and given up while the server is silent leave nothing there.
func TestManyAtAFrozenServer(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{OfflineTimeout: -1})
	holder := lock(t, newClient(t, s.url(), fairlock.Options{}), "many")
	must(t, c.Connect(background))
	s.signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(background, time.Second)
	defer cancel()
	var all sync.WaitGroup
	for i := 0; i < 500; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			if _, err := c.Lock(ctx, "many"); !errors.Is(err, fairlock.ErrTimeout) {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	s.signal(syscall.SIGCONT)
	must(t, lock(t, c, "other").Unlock(background))
	must(t, holder.Unlock(background))
	until(t, "it is free", func() bool { return s.isFree("many") })
}

// A killed server that comes back without data: who holds loses the hold, who waits gets the lock.
func TestAServerThatIsKilled(t *testing.T) {
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{WaiterTimeout: 2 * time.Second, Lease: 3 * time.Second})
	hold := lock(t, c, "killed")
	got := make(chan *fairlock.Hold)
	go func() {
		next, err := c.Lock(background, "killed")
		if err != nil {
			t.Error(err)
		}
		got <- next
	}()
	s.waitFor("killed", 1)
	s.kill()
	s.start()
	select {
	case next := <-got:
		if next == nil {
			return
		}
		must(t, next.Unlock(background))
	case <-time.After(soon):
		t.Fatal("the waiter waits still")
	}
	<-hold.Done()
	if !errors.Is(hold.Err(), fairlock.ErrLost) {
		t.Fatal(hold.Err())
	}
}

// Connections that are cut all the time cost no hold, and let nobody in twice.
func TestConnectionsThatAreCut(t *testing.T) {
	s := newServer(t)
	p := newProxy(t, s.address())
	var inside, turns, lost int32
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := 0; i < 6; i++ {
		c := newClient(t, p.url(), fairlock.Options{OfflineTimeout: -1})
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				hold, err := c.Lock(background, "cut")
				if err != nil {
					t.Error(err)
					return
				}
				if atomic.AddInt32(&inside, 1) != 1 {
					t.Error("two hold it")
				}
				time.Sleep(time.Millisecond)
				if hold.Remaining() == 0 {
					t.Error("it does not believe in its hold")
				}
				atomic.AddInt32(&inside, -1)
				atomic.AddInt32(&turns, 1)
				switch err := hold.Unlock(background); {
				case errors.Is(err, fairlock.ErrUnknown):
					atomic.AddInt32(&lost, 1) // its answer
				case err != nil:
					t.Error(err)
				}
			}
		}()
	}
	for i := 0; i < 20; i++ {
		at := atomic.LoadInt32(&turns)
		until(t, "a turn", func() bool { return atomic.LoadInt32(&turns) > at })
		p.cut()
	}
	close(stop)
	all.Wait()
	until(t, "it is free", func() bool { return s.isFree("cut") })
	t.Log(turns, "turns;", lost, "answers to releases were lost")
}

// An Unlock whose answer does not come can be left, and is carried out all the same.
func TestUnlockOfASilentServer(t *testing.T) {
	s := newServer(t)
	p := newProxy(t, s.address())
	c := newClient(t, p.url(), fairlock.Options{})
	hold := lock(t, c, "silent")
	atomic.StoreInt32(&p.silent, 1)
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	if err := hold.Unlock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	until(t, "it is free", func() bool { return s.isFree("silent") })
	atomic.StoreInt32(&p.silent, 0)
	must(t, lock(t, c, "silent").Unlock(background))
}

// A program that was stopped for longer than an answer may take reads what has come before it judges: it keeps its
// connection.
func TestAnAnswerToAStoppedProgram(t *testing.T) {
	s := newServer(t)
	p := newProxy(t, s.address())
	program := newProgram(t, p.port(), os.Args[0])
	program.say("acquire", "stopped", 0, 0)
	program.expect("held ")
	atomic.StoreInt32(&p.silent, 1)
	program.say("release", "stopped")
	until(t, "it was released", func() bool { return s.isFree("stopped") })
	must(t, program.of.Process.Signal(syscall.SIGSTOP))
	atomic.StoreInt32(&p.silent, 0)
	time.Sleep(2500 * time.Millisecond)
	must(t, program.of.Process.Signal(syscall.SIGCONT))
	program.expect("released")
	if taken := atomic.LoadInt32(&p.taken); taken != 1 {
		t.Fatal("it has connected again")
	}
}

// One that was stopped for longer than its lease does not believe in its hold; one that was stopped for less does.
func TestAProgramThatIsStopped(t *testing.T) {
	s := newServer(t)
	short, long := newProgram(t, s.port, os.Args[0]), newProgram(t, s.port, os.Args[0])
	short.say("acquire", "short", 0, 1500)
	short.expect("held ")
	long.say("acquire", "long", 0, 600000)
	held := long.expect("held ")
	for _, program := range []*program{short, long} {
		must(t, program.of.Process.Signal(syscall.SIGSTOP))
	}
	time.Sleep(2 * time.Second)
	for _, program := range []*program{short, long} {
		must(t, program.of.Process.Signal(syscall.SIGCONT))
	}
	short.say("holds", "short")
	short.expect("not-held")
	long.say("holds", "long")
	long.expect(held)
	long.say("release", "long")
	long.expect("released")
}

// A goroutine that computes all the time, on one processor, does not keep a lease from being renewed.
func TestAProgramThatComputes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := newServer(t)
	c := newClient(t, s.url(), fairlock.Options{Lease: 3 * time.Second})
	hold := lock(t, c, "computes")
	for n, end := 0, time.Now().Add(4*time.Second); time.Now().Before(end); n++ {
		_ = n * n
	}
	if hold.Err() != nil || hold.Remaining() == 0 {
		t.Fatal(hold.Err())
	}
	must(t, hold.Unlock(background))
}

// certificate returns one for the host, signed by itself, and the pool that trusts it.
func certificate(t *testing.T, host string) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.ParseIP(host)},
	}
	if template.IPAddresses[0] == nil {
		template.IPAddresses, template.DNSNames = nil, []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// secured stands before a server, and speaks TLS.
func secured(t *testing.T, s *server, config *tls.Config) string {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", s.address())
				if err != nil {
					return
				}
				defer server.Close()
				go io.Copy(client, server)
				io.Copy(server, client)
			}()
		}
	}()
	return "rediss://" + listener.Addr().String()
}

func TestTLS(t *testing.T) {
	s := newServer(t)
	ours, pool := certificate(t, "127.0.0.1")
	url := secured(t, s, &tls.Config{Certificates: []tls.Certificate{ours}})
	c := newClient(t, url, fairlock.Options{TLS: &tls.Config{RootCAs: pool}})
	must(t, c.Connect(background))
	must(t, lock(t, c, "tls").Unlock(background))

	// All that is sent takes the way by the connection's writer.
	inside, all := 0, sync.WaitGroup{}
	for i := 0; i < 200; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			hold, err := c.Lock(background, "many")
			if err != nil {
				t.Error(err)
				return
			}
			inside++
			if err := hold.Unlock(background); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if inside != 200 {
		t.Error(inside)
	}

	others, othersPool := certificate(t, "other.example")
	asks := secured(t, s, &tls.Config{Certificates: []tls.Certificate{ours}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	wrong := secured(t, s, &tls.Config{Certificates: []tls.Certificate{others}})
	for name, c := range map[string]*fairlock.Client{
		"no trust":               newClient(t, url, fairlock.Options{}),
		"the wrong trust":        newClient(t, url, fairlock.Options{TLS: &tls.Config{RootCAs: othersPool}}),
		"the wrong host":         newClient(t, wrong, fairlock.Options{TLS: &tls.Config{RootCAs: othersPool}}),
		"no certificate of ours": newClient(t, asks, fairlock.Options{TLS: &tls.Config{RootCAs: pool}}),
	} {
		if err := c.Connect(background); !errors.Is(err, fairlock.ErrUntrusted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	named := newClient(t, wrong, fairlock.Options{TLS: &tls.Config{RootCAs: othersPool, ServerName: "other.example"}})
	must(t, named.Connect(background))
	must(t, newClient(t, asks, fairlock.Options{TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{ours}}}).Connect(background))

	plain := newClient(t, strings.Replace(s.url(), "redis", "rediss", 1), fairlock.Options{ConnectTimeout: time.Second})
	if err := plain.Connect(background); !errors.Is(err, fairlock.ErrUnreachable) {
		t.Error(err)
	}
}

// What a server sends that is none.
func TestGarbage(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go func() {
		for i := 0; ; i++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Write(bytes.Repeat([]byte("HTTP/1.1 400 Bad Request\r\n"), 1000))
			conn.Close()
		}
	}()
	c := newClient(t, "redis://"+listener.Addr().String(), fairlock.Options{WaiterTimeout: 2 * time.Second})
	if err := c.Connect(background); !errors.Is(err, fairlock.ErrProtocol) {
		t.Fatal(err)
	}
}
