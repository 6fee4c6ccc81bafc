// SPDX-License-Identifier: Apache-2.0

package fairlock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"strings"
)

// A Status says why an operation has failed. It is an error: errors.Is(err, fairlock.ErrLost).
type Status int

// The statuses that this package returns. Their numbers are those of the C library.
const (
	ErrBusy        Status = -1  // TryLock: somebody else holds the lock, or is first in line
	ErrTimeout     Status = -2  // the context's deadline came during the wait. Also context.DeadlineExceeded
	ErrLost        Status = -4  // the hold had ended before it was released: others may hold already
	ErrNotHeld     Status = -5  // the hold was released before
	ErrUnknown     Status = -8  // no answer to a release: it was carried out, or the lease ends the hold
	ErrUnreachable Status = -9  // no connection to the server
	ErrDenied      Status = -10 // the server refuses this user. Also fs.ErrPermission
	ErrUnsupported Status = -11 // the server is older than Redis 6.2
	ErrUnavailable Status = -12 // the server cannot serve now: it loads its data, or a script runs
	ErrReadOnly    Status = -13 // the server is a replica
	ErrOOM         Status = -14 // the server is out of memory, or there is none for more locks here
	ErrMisconf     Status = -15 // the server refuses writes: its disk is full, or replicas are missing
	ErrRefused     Status = -17 // the server refused for another reason, which is in the error's text
	ErrProtocol    Status = -18 // what answers is no Redis
	ErrInvalid     Status = -19 // an argument is out of its range
	ErrTooLong     Status = -20 // the name of a lock or an id is too long
	ErrWrongShard  Status = -21 // the server is a node of a cluster, and another one has this lock
	ErrUntrusted   Status = -22 // TLS: their certificate is not trusted, or ours is not
	ErrOutdated    Status = -25 // a later release uses the lock in a way that this one does not know
)

// These have no number in the C library.
var (
	// ErrClosed is returned by the methods of a Client that was closed. It is also net.ErrClosed.
	ErrClosed error = closedError{}

	// ErrUnlocked is why the context of a hold has ended that was released in good order.
	ErrUnlocked = errors.New("fairlock: the hold was released")
)

type closedError struct{}

func (closedError) Error() string        { return "fairlock: the client was closed" }
func (closedError) Is(target error) bool { return target == net.ErrClosed }

// Error returns the status in words.
func (s Status) Error() string {
	return "fairlock: " + s.text()
}

func (s Status) text() string {
	return textOf(func(m *machine) uint32 { return m.statusText(uint32(int32(s))) })
}

// String returns the status's name, as TIMEOUT.
func (s Status) String() string {
	return textOf(func(m *machine) uint32 { return m.statusName(uint32(int32(s))) })
}

// Is says which errors of the standard library a status is.
func (s Status) Is(target error) bool {
	switch s {
	case ErrTimeout:
		return target == context.DeadlineExceeded
	case ErrDenied:
		return target == fs.ErrPermission
	}
	return false
}

// Timeout says whether time was all that lacked, as net.Error has it.
func (s Status) Timeout() bool { return s == ErrTimeout }

// An Error is what all methods return that have asked the server: which operation failed, on which lock, and why.
type Error struct {
	Op   string // lock, unlock or connect
	Name string // of the lock; connect: ""
	Err  error  // a Status, ErrClosed, or, when its context was cancelled during a wait, context.Cause of that

	// Detail is the server's own text, or what the network said. It may be nil.
	Detail error
}

func (e *Error) Error() string {
	text := "fairlock: " + e.Op
	if e.Name != "" {
		text += " " + quoted(e.Name)
	}
	text += ": " + strings.TrimPrefix(e.Err.Error(), "fairlock: ")
	if e.Detail != nil {
		text += ": " + e.Detail.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// As finds Detail's type, too, so that errors.As finds a *net.OpError or an x509 error.
func (e *Error) As(target interface{}) bool { return e.Detail != nil && errors.As(e.Detail, target) }

// Timeout is that of the status.
func (e *Error) Timeout() bool {
	var status Status
	return errors.As(e.Err, &status) && status.Timeout()
}

// errorOf is the error for a status, with what the client knows besides. With its mutex.
func (c *Client) errorOf(op, name string, status Status) error {
	err := &Error{Op: op, Name: name, Err: status}
	switch status {
	case ErrUnreachable, ErrUntrusted, ErrUnknown, ErrProtocol:
		err.Detail = c.lastErr
	case ErrDenied, ErrUnsupported, ErrUnavailable, ErrReadOnly, ErrOOM, ErrMisconf, ErrRefused, ErrOutdated:
		if text := c.serverText(); text != "" {
			err.Detail = errors.New(text)
		}
	}
	return err
}

// errorOfContext is the error of a wait whose context has ended.
func errorOfContext(op, name string, ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Op: op, Name: name, Err: ErrTimeout}
	}
	return &Error{Op: op, Name: name, Err: causeOf(ctx)}
}

// statusOf says which status a connection that failed so has.
func statusOf(err error) Status {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var alert *net.OpError
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &host):
		return ErrUntrusted
	case errors.As(err, &header):
		return ErrUnreachable
	case errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate"):
		return ErrUntrusted
	}
	return ErrUnreachable
}
