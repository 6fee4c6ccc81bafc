/* SPDX-License-Identifier: Apache-2.0
 * What an extension may change, as it is without one. Who reads the model of the lock alone can pass this over.
 *
 * An extension includes this file, says what it changes (#undef, #define), and includes the model. What it replaces
 * as a whole, it defines under another name, with a macro of the old one.
 */
#pragma once

#ifndef TOKENS
#define TOKENS 50 /* a run ends here that grants without end */
#endif

/* Each handle has a connection of its own: pair.pml, downgrade.pml */
#define LINE(i)          (i)
#define LINES            N
#define calls(k)         wants(k) /* somebody on it wants to send */
#define set_frozen(x)    frozen[i] = x

/* The server: failover.pml, slot.pml, claim.pml, redisson.pml, break.pml */
#define next_token       base + 1
#define serves(k)        1
#define acknowledged(k)  1
#define brought_back(i)  0
#define covers_beliefs   1
#define line_ends(k)     skip
#define also_done()      skip /* after a script */
#define also_ticks()     skip
#define look(caller)     find_heir(caller)
#define tells_next()     skip
#define BEGINS                /* slot.pml: a key that a script has removed stops it [removed-last] */
#define USES_HASH
#define USES_QUEUE
#define KEEPS_HASH       skip

/* Handles: remove.pml, keep.pml, heir.pml, offline.pml, break.pml, redisson.pml */
#define excused(i)       0
#define awaits(i)        (handle[i].phase == QUEUEING)
#define also_listens(kind) 0
#define also_due(i)      0
#define run_client(i)    run client(i)
#define is_heir(i)       0
#define has_heir(i)      0
#define awaited(i)       0
#define inherited        0
#define name_hold()      skip
#define answer_to_waiter() reply_waiting()
#define for_good         0 /* refused, and will be again */
#define phase_begins(p)  skip
#define answered()       skip
#define listens_still(i) 0
#define subscribes_first() (me.phase == QUEUEING || also_listens(kind)) && !me.subscribed -> \
                         me.subscribed = 1; up[LINE(i)]!i, SUBSCRIBE, 0, 0
#define subscribe()      listens[i] = 2
#define is_push          (what == GRANT)
#define on_push()        what == GRANT -> on_message()
#define on_message()     message()
#define on_broken_too()  skip
#define over_for(i)      become_free()
#define on_free()        skip
#define may_transmit(i)  1
#define transmit()       send()
#define on_tick()        skip
#define MESSAGE          (BEAT + RESPONSE) /* nothing but the next answer shows that a message is late */
#define slack(x)         if :: x > 0 -> x-- :: true fi /* by how much clocks differ */
#define MARGIN           1
#define HALF             0

/* Random runs that are repeated on the code say what they do, and have a weather of their own: test_scripts.pml, test_engine.pml */
#define say(...)         skip
#define say_tick()       skip
#define say_call()       skip
#define does(...)
#define tell(i)          skip
#define thrown           1
#define hasty            1
#define reads            1
#define first(i)         1
#define acts(i)          1
#define unlucky(k)       1
#define arrives(k)       1
#define reaches(k)       1
#define wakes(i)         frozen[i]

/* Of all handles, and of all connections. */
#if N > 4
#define each(f, op) (f(0) op f(1) op f(2) op f(3) op f(4))
#elif N > 3
#define each(f, op) (f(0) op f(1) op f(2) op f(3))
#elif N > 2
#define each(f, op) (f(0) op f(1) op f(2))
#else
#define each(f, op) (f(0) op f(1))
#endif
#define each_line(f, op) each(f, op)
