/*
 * Random runs that are repeated on the code say what they do, and have a weather of their own: test_scripts.pml
 * and test_engine.pml. When all states are explored, these hooks are empty.
 */
#ifdef REPLAY
#include "test_scripts.pml"
#elif defined(ENGINE)
#include "test_engine.pml"
#endif

#ifndef REPLAY
#ifndef PATIENCE /* offline.pml */
#define thrown     1
#endif
#define say_tick() skip
#define say_call() skip
#define unlucky(k) 1
#define arrives(k) 1
#endif
#ifndef ENGINE
#define does(...)
#define tell(i)
#define first(i)   1
#define acts(i)    1
#ifndef PATIENCE
#define hasty      1
#endif
#define reads      1
#define slack(x)   if :: x > 0 -> x-- :: true fi /* by how much clocks differ */
#define MARGIN     1
#define HALF       0
#ifndef REPLAY
#define reaches(k) 1
#define wakes(i)   frozen[i]
#endif
#endif
