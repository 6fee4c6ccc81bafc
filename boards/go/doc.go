// SPDX-License-Identifier: Apache-2.0

// Package fairlock is a fair distributed lock in a Redis or Valkey server: programs on different machines take turns, in
// the order in which they asked. Programs in C, on microcontrollers, in other languages, and Java services with
// Redisson's getFairLock() wait in the same queue.
//
// At most one client believes that it holds a lock, or N that they share it, as long as clocks run at the same rate
// within 1 %. A hold has a lease, which the client renews. It ends early if it is forced, or if the server is out of
// reach for as long as the lease: Hold.Context, Done, Err, Remaining and Unlock tell. No lock keeps a program from being
// paused after it has asked; so what the lock protects should refuse a Hold.Token that is smaller than the largest it
// has seen.
package fairlock
