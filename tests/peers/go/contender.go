/* SPDX-License-Identifier: Apache-2.0 */
// A contender in Go: contender fairlock|redislock|redsync|etcd PORT. It speaks the lines of ../README.md.
package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"example.org/fairlock"
	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"
)

const (
	name  = "sixteen-byte-nam"
	lease = 30 * time.Second
	hold  = 3 * time.Millisecond
	pause = 6 * time.Millisecond
)

var background = context.Background()

// What each peer comes to.
type peer struct {
	version string
	acquire func()
	release func()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// CLOCK_MONOTONIC, which all contenders share, and which Go does not show.
var epoch = func() time.Time {
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&now)), 0)
	return time.Now().Add(-time.Duration(now.Nano()))
}()

func now() int64 {
	return time.Since(epoch).Nanoseconds()
}

func viaFairlock(port string) peer {
	client, err := fairlock.New("redis://127.0.0.1:"+port, fairlock.Options{})
	must(err)
	must(client.Connect(background))
	var hold *fairlock.Hold
	return peer{fairlock.Version(), func() {
		var err error
		hold, err = client.Lock(background, name)
		must(err)
	}, func() { must(hold.Unlock(background)) }}
}

func viaRedislock(port string) peer {
	client := redislock.New(connect(port))
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
	var lock *redislock.Lock
	return peer{version("github.com/bsm/redislock"), func() {
		var err error
		lock, err = client.Obtain(background, name, lease, options)
		must(err)
	}, func() { must(lock.Release(background)) }}
}

func viaRedsync(port string) peer {
	const tries = 1000000 // by default it gives up after 32
	mutex := redsync.New(goredis.NewPool(connect(port))).
		NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(tries))
	return peer{version("github.com/go-redsync/redsync/v4"), func() { must(mutex.Lock()) }, func() {
		_, err := mutex.Unlock()
		must(err)
	}}
}

func viaEtcd(port string) peer {
	dial := grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+port)
		return &counted{connection}, err
	})
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"127.0.0.1:" + port}, DialOptions: []grpc.DialOption{dial}})
	must(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(lease.Seconds())))
	must(err)
	mutex := concurrency.NewMutex(session, name)
	status, err := client.Status(background, "127.0.0.1:"+port)
	must(err)
	versions := version("go.etcd.io/etcd/client/v3") + " (server " + status.Version + ")"
	return peer{versions, func() { must(mutex.Lock(background)) },
		func() { must(mutex.Unlock(background)) }}
}

func connect(port string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	must(client.Ping(background).Err())
	return client
}

// etcd does not say how many bytes it has sent and received, so that its client counts them.
type counted struct{ net.Conn }

var bytes int64

func (connection *counted) Read(data []byte) (int, error) {
	count, err := connection.Conn.Read(data)
	atomic.AddInt64(&bytes, int64(count))
	return count, err
}

func (connection *counted) Write(data []byte) (int, error) {
	count, err := connection.Conn.Write(data)
	atomic.AddInt64(&bytes, int64(count))
	return count, err
}

func answer(numbers []int64) {
	fmt.Println("done", atomic.LoadInt64(&bytes))
	fmt.Println(strings.Trim(fmt.Sprint(numbers), "[]"))
}

func (p peer) pairs(count int) {
	took := make([]int64, count)
	for i := range took {
		start := now()
		p.acquire()
		p.release()
		took[i] = now() - start
	}
	answer(took)
}

func (p peer) contend(count int) {
	events := make([]int64, 0, 3*count)
	for i := 0; i < count; i++ {
		events = append(events, now())
		p.acquire()
		events = append(events, now())
		time.Sleep(hold)
		events = append(events, now())
		p.release()
		time.Sleep(time.Duration(rand.Int63n(int64(pause))))
	}
	answer(events)
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, part := range info.Deps {
		if part.Path == module {
			return strings.TrimPrefix(part.Version, "v")
		}
	}
	return "?"
}

func main() {
	kinds := map[string]func(string) peer{
		"fairlock":  viaFairlock,
		"redislock": viaRedislock,
		"redsync":   viaRedsync,
		"etcd":      viaEtcd,
	}
	rand.Seed(now())
	p := kinds[os.Args[1]](os.Args[2])
	fmt.Println("ready", now(), p.version)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb string
		var count int
		fmt.Sscan(lines.Text(), &verb, &count)
		if verb == "pairs" {
			p.pairs(count)
		} else {
			p.contend(count)
		}
	}
}
