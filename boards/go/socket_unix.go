// SPDX-License-Identifier: Apache-2.0

//go:build !windows && !plan9 && !js && !wasip1

package fairlock

import (
	"net"
	"syscall"
)

// A socket is what a connection is made of, for what net.Conn has no methods for.
type socket struct {
	raw     syscall.RawConn
	isPlain bool // no TLS
	size    int
	data    []byte
	write   func(descriptor uintptr) bool
	peek    func(descriptor uintptr)
}

// socketOf returns nil if the connection has none that we know.
func socketOf(conn net.Conn) *socket {
	s := &socket{isPlain: true}
	if wraps, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn, s.isPlain = wraps.NetConn(), false
	}
	inner, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	var err error
	if s.raw, err = inner.SyscallConn(); err != nil {
		return nil
	}
	s.write = func(descriptor uintptr) bool {
		s.size, _ = syscall.Write(int(descriptor), s.data)
		return true
	}
	s.peek = func(descriptor uintptr) {
		var one [1]byte
		s.size, _, _ = syscall.Recvfrom(int(descriptor), one[:], syscall.MSG_PEEK)
	}
	return s
}

// writeNow writes what there is room for, and returns how much that was. Errors are left to who writes the rest.
func (s *socket) writeNow(data []byte) int {
	if s == nil || !s.isPlain {
		return 0
	}
	s.data, s.size = data, 0
	if s.raw.Write(s.write) != nil || s.size < 0 {
		return 0
	}
	return s.size
}

// hasUnread says whether something has come that nobody has read yet.
func (s *socket) hasUnread() bool {
	if s == nil {
		return false
	}
	s.size = 0
	return s.raw.Control(s.peek) == nil && s.size > 0
}
