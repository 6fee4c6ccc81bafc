// SPDX-License-Identifier: Apache-2.0

//go:build windows || plan9 || js || wasip1

package fairlock

import "net"

// A socket is what a connection is made of, which cannot be had here.
type socket struct{}

func socketOf(net.Conn) *socket         { return nil }
func (s *socket) writeNow(_ []byte) int { return 0 }
func (s *socket) hasUnread() bool       { return false }
