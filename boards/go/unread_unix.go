// SPDX-License-Identifier: Apache-2.0

//go:build !windows && !plan9 && !js && !wasip1

package fairlock

import (
	"net"
	"syscall"
)

// hasUnread says whether something has come on this connection, or one that it wraps, that nobody has read yet.
func hasUnread(conn net.Conn) bool {
	if wraps, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wraps.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	size := 0
	err = raw.Control(func(descriptor uintptr) {
		var one [1]byte
		size, _, _ = syscall.Recvfrom(int(descriptor), one[:], syscall.MSG_PEEK)
	})
	return err == nil && size > 0
}
