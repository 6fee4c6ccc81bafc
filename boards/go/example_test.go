// SPDX-License-Identifier: Apache-2.0

package fairlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"example.org/fairlock"
)

func Example() {
	client, err := fairlock.New("redis://127.0.0.1:6379", fairlock.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx := context.Background()
	hold, err := client.Lock(ctx, "door:7")
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Unlock(ctx)
	fmt.Println("held, fencing token", hold.Token())
}

// The work ends when the hold does, and says why.
func ExampleHold_Context() {
	client, err := fairlock.New("redis://127.0.0.1:6379", fairlock.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	hold, err := client.Lock(context.Background(), "door:7")
	if err != nil {
		log.Fatal(err)
	}
	ctx := hold.Context(context.Background())
	select {
	case <-ctx.Done():
		log.Print("the hold has ended: ", hold.Err())
	case <-time.After(time.Second): // the work
	}
	if err := hold.Unlock(context.Background()); errors.Is(err, fairlock.ErrLost) {
		log.Print("others may have held the lock meanwhile")
	}
}

func ExampleClient_TryLock() {
	client, err := fairlock.New("unix:///run/redis/redis.sock", fairlock.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	hold, err := client.TryLock(context.Background(), "report", fairlock.Limit(3))
	if errors.Is(err, fairlock.ErrBusy) {
		return // three others are at it
	}
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Unlock(context.Background())
}
