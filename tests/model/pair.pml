/* SPDX-License-Identifier: Apache-2.0
 * Two handles of one client, which share its connection (engine.c, pipeline.c).
 *
 * What one of them sends is answered after what the other has sent before; the connection breaks for both; how long
 * requests of an old connection may still arrive is counted for the connection, because a handle does not remember
 * when it has sent what; and a device freezes with both. Left out: which of both sends first (any may), and a crash,
 * because it leaves nobody here.
 */
#include "hooks.pml"
#undef LINE
#undef LINES
#undef each_line
#undef calls
#undef set_frozen
#define LINE(i) 0
#define LINES   1
#define each_line(f, op) (f(0))
#define calls(k) (wants(0) || wants(1))
#define set_frozen(x) frozen[0] = x; frozen[1] = x; in_line = (x -> 0 : in_line)
#include "handle.pml"
