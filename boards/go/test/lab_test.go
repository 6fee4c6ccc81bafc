// SPDX-License-Identifier: Apache-2.0

package fairlock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.org/fairlock"
)

// What the tests share: private servers, connections that look at them, proxies that fail, other programs. BUILD, in the
// environment, is the folder with the server.

// soon is how long to wait for something that will come, unless something is broken.
const soon = 60 * time.Second

var background = context.Background()

// start runs programs that end with this one, however that ends: with the thread that starts them, which never does.
var start = func() func(*exec.Cmd) error {
	commands, results := make(chan *exec.Cmd), make(chan error)
	go func() {
		runtime.LockOSThread()
		for command := range commands {
			command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			results <- command.Start()
		}
	}()
	var mutex sync.Mutex
	return func(command *exec.Cmd) error {
		mutex.Lock()
		defer mutex.Unlock()
		commands <- command
		return <-results
	}
}()

func build(t testing.TB, path string) string {
	folder := os.Getenv("BUILD")
	if folder == "" {
		t.Skip("BUILD names no folder with a redis-server")
	}
	return folder + "/" + path
}

type server struct {
	t       testing.TB
	port    int
	command *exec.Cmd
	options []string
	asks    *raw
}

func newServer(t testing.TB, options ...string) *server {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &server{t: t, port: free.Addr().(*net.TCPAddr).Port, options: options}
	free.Close()
	s.start()
	t.Cleanup(func() { s.kill() })
	return s
}

func (s *server) start() {
	words := append([]string{"--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--save", "", "--dir", s.t.TempDir()}, s.options...)
	s.command = exec.Command(build(s.t, "redis-server"), words...)
	must(s.t, start(s.command))
	until(s.t, "the server starts", func() bool {
		conn, err := net.Dial("tcp", s.address())
		if err != nil {
			return false
		}
		s.asks = &raw{conn, bufio.NewReader(conn)}
		answer, err := s.asks.call("PING")
		return err == nil && answer == "PONG" || err != nil && strings.HasPrefix(err.Error(), "NOAUTH")
	})
}

func (s *server) kill() {
	s.command.Process.Kill()
	s.command.Wait()
}

func (s *server) signal(number syscall.Signal) { must(s.t, s.command.Process.Signal(number)) }

func (s *server) address() string { return fmt.Sprint("127.0.0.1:", s.port) }
func (s *server) url() string     { return "redis://" + s.address() }

// ask returns the answer: a number, a text, or the number of elements.
func (s *server) ask(words ...string) string {
	s.t.Helper()
	answer, err := s.asks.call(words...)
	must(s.t, err)
	return answer
}

// waiters is how many wait for the lock.
func (s *server) waiters(name string) int {
	s.t.Helper()
	var count int
	fmt.Sscan(s.ask("LLEN", "redisson_lock_queue:{"+name+"}"), &count)
	return count
}

func (s *server) waitFor(name string, count int) {
	s.t.Helper()
	until(s.t, fmt.Sprint(count, " wait"), func() bool { return s.waiters(name) == count })
}

// isFree says whether nobody holds or waits.
func (s *server) isFree(name string) bool {
	s.t.Helper()
	return s.ask("EXISTS", name) == "0" && s.waiters(name) == 0
}

type raw struct {
	conn net.Conn
	read *bufio.Reader
}

func (r *raw) call(words ...string) (string, error) {
	fmt.Fprintf(r.conn, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(r.conn, "$%d\r\n%s\r\n", len(word), word)
	}
	return r.answer()
}

func (r *raw) answer() (string, error) {
	line, err := r.read.ReadString('\n')
	if err != nil {
		return "", err
	}
	switch text := strings.TrimSpace(line[1:]); line[0] {
	case '-':
		return "", fmt.Errorf("%s", text)
	case '$':
		var size int
		fmt.Sscan(text, &size)
		if size < 0 {
			return "", nil
		}
		data := make([]byte, size+2)
		_, err := io.ReadFull(r.read, data)
		return string(data[:size]), err
	case '*':
		var size int
		fmt.Sscan(text, &size)
		for i := 0; i < size; i++ {
			if _, err := r.answer(); err != nil {
				return "", err
			}
		}
		return text, nil
	default:
		return text, nil
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("this never came: ", what)
		}
	}
}

func newClient(t testing.TB, url string, options fairlock.Options) *fairlock.Client {
	t.Helper()
	client, err := fairlock.New(url, options)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func lock(t testing.TB, client *fairlock.Client, name string, options ...fairlock.LockOption) *fairlock.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, soon)
	defer cancel()
	hold, err := client.Lock(ctx, name, options...)
	must(t, err)
	return hold
}

// A proxy stands before a server. It can cut its connections, and hold back what the server says.
type proxy struct {
	listener net.Listener
	mutex    sync.Mutex
	conns    []net.Conn
	taken    int32 // connections so far
	silent   int32
}

func newProxy(t testing.TB, address string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{listener: listener}
	t.Cleanup(func() {
		listener.Close()
		p.cut()
	})
	go p.serve(address)
	return p
}

func (p *proxy) port() int   { return p.listener.Addr().(*net.TCPAddr).Port }
func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

func (p *proxy) serve(address string) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		atomic.AddInt32(&p.taken, 1)
		server, err := net.Dial("tcp", address)
		if err != nil {
			client.Close()
			continue
		}
		p.mutex.Lock()
		p.conns = append(p.conns, client, server)
		p.mutex.Unlock()
		go p.carry(server, client, nil)
		go p.carry(client, server, &p.silent)
	}
}

func (p *proxy) carry(to, from net.Conn, silent *int32) {
	defer to.Close()
	data := make([]byte, 4096)
	for {
		n, err := from.Read(data)
		for silent != nil && atomic.LoadInt32(silent) != 0 && err == nil {
			time.Sleep(time.Millisecond)
		}
		if err != nil {
			return
		}
		if _, err := to.Write(data[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) cut() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, conn := range p.conns {
		conn.Close()
	}
	p.conns = nil
}

// A program is driven by lines, as tests/interop/RELEASES.md describes.
type program struct {
	t     testing.TB
	in    io.Writer
	out   *bufio.Reader
	of    *exec.Cmd
	heard chan string
}

func newProgram(t testing.TB, port int, path string) *program {
	command := exec.Command(path, "127.0.0.1", fmt.Sprint(port), "5000", "10000")
	in, err := command.StdinPipe()
	must(t, err)
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, start(command))
	p := &program{t, in, bufio.NewReader(out), command, make(chan string, 100)}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	go func() {
		for {
			line, err := p.out.ReadString('\n')
			if err != nil {
				close(p.heard)
				return
			}
			p.heard <- strings.TrimSpace(line)
		}
	}()
	p.expect("ready")
	return p
}

func (p *program) say(words ...interface{}) { fmt.Fprintln(p.in, words...) }

func (p *program) expect(begin string) string {
	p.t.Helper()
	select {
	case line := <-p.heard:
		if !strings.HasPrefix(line, begin) {
			p.t.Fatalf("it says %q, not %q", line, begin)
		}
		return line
	case <-time.After(soon):
		p.t.Fatalf("it does not say %q", begin)
	}
	return ""
}
