/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of bytes and the events they must give, shared by the suites of the decoder.
 *
 * Events are written as text, one after the other: depth, type byte, value, '.' if the outermost
 * value is complete, and a space. The value is a number (integers, booleans, heads of aggregates),
 * a text (lines), or the announced length, '=' and the payload; '!' marks what is cut; bytes that
 * are not printable are two hexadecimal digits after a backslash. At the end of a stream stands
 * what ends it: nothing when all bytes are used, "N?" when N bytes wait for more, "E1" to "E5" for
 * the error of that number.
 */
#ifndef TEST_RESP_SAMPLES_H
#define TEST_RESP_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

struct sample {
  uint32_t limit;
  uint32_t size;
  const char *bytes;
  const char *events;
};

#define SAMPLE(limit, bytes, events)                                                               \
  {                                                                                                \
    limit, sizeof bytes - 1, bytes, events                                                         \
  }

static const struct sample samples[] = {
    /* Each type. */
    SAMPLE(64, "+OK\r\n", "0+OK. "),
    SAMPLE(64, "+\r\n", "0+. "),
    SAMPLE(64, "+a\tb\x01\xc3\xa4\x7f\r\n", "0+a\\09b\\01\\c3\\a4\\7f. "),
    SAMPLE(64, "-NOSCRIPT No matching script.\r\n", "0-NOSCRIPT No matching script.. "),
    SAMPLE(64, ":0\r\n", "0:0. "),
    SAMPLE(64, ":-1\r\n", "0:-1. "),
    SAMPLE(64, ":+1234567890\r\n", "0:1234567890. "),
    SAMPLE(64, "$5\r\nhello\r\n", "0$5=hello. "),
    SAMPLE(64, "$0\r\n\r\n", "0$0=. "),
    SAMPLE(64, "$7\r\n\r\n\0\r\n:\xff\r\n", "0$7=\\0d\\0a\\00\\0d\\0a:\\ff. "),
    SAMPLE(64, "!21\r\nSYNTAX invalid syntax\r\n", "0!21=SYNTAX invalid syntax. "),
    SAMPLE(64, "=8\r\ntxt:some\r\n", "0=8=txt:some. "),
    SAMPLE(64, "_\r\n", "0_. "),
    SAMPLE(64, "$-1\r\n", "0_. "),
    SAMPLE(64, "*-1\r\n", "0_. "),
    SAMPLE(64, "#t\r\n#f\r\n", "0#1. 0#0. "),
    SAMPLE(64, ",1.5e-7\r\n,inf\r\n,-inf\r\n,nan\r\n", "0,1.5e-7. 0,inf. 0,-inf. 0,nan. "),
    SAMPLE(64, "(-3492890328409238509324850943850943825024385\r\n",
           "0(-3492890328409238509324850943850943825024385. "),
    SAMPLE(64, "*2\r\n:1\r\n$1\r\na\r\n", "0*2 1:1 1$1=a. "),
    SAMPLE(64, "*0\r\n", "0*0. "),
    SAMPLE(64, "%2\r\n+a\r\n:1\r\n+b\r\n_\r\n", "0%2 1+a 1:1 1+b 1_. "),
    SAMPLE(64, "%0\r\n", "0%0. "),
    SAMPLE(64, "~2\r\n#t\r\n,1\r\n", "0~2 1#1 1,1. "),
    SAMPLE(64, "~0\r\n", "0~0. "),
    SAMPLE(64, ">2\r\n+message\r\n*1\r\n:1\r\n", "0>2 1+message 1*1 2:1. "),
    SAMPLE(64, ">0\r\n", "0>0. "),

    /* Nesting. An aggregate ends with its last element, and may end those around it. */
    SAMPLE(64, "*2\r\n*1\r\n:1\r\n*2\r\n:2\r\n:3\r\n:4\r\n", "0*2 1*1 2:1 1*2 2:2 2:3. 0:4. "),
    SAMPLE(64, "*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n+x\r\n", "0*1 1*1 2*1 3*1 4:7. 0+x. "),
    SAMPLE(64, "*1\r\n%1\r\n~1\r\n*2\r\n*0\r\n*-1\r\n:1\r\n:2\r\n",
           "0*1 1%1 2~1 3*2 4*0 4_ 2:1. 0:2. "),
    SAMPLE(64, "*2\r\n*0\r\n%0\r\n:1\r\n", "0*2 1*0 1%0. 0:1. "),
    SAMPLE(64, "*1\r\n*1\r\n*1\r\n*1\r\n%0\r\n", "0*1 1*1 2*1 3*1 4%0. "),
    SAMPLE(64, "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "0*1 1*1 2*1 3*1 E5"),
    SAMPLE(64, "*1\r\n*1\r\n*1\r\n*1\r\n|1\r\n", "0*1 1*1 2*1 3*1 E5"),
    SAMPLE(64, ">1\r\n%1\r\n:1\r\n~1\r\n*1\r\n+x\r\n", "0>1 1%1 2:1 2~1 3*1 4+x. "),

    /* Attributes: before a value, an element, a push; nested, empty; never a value of their own. */
    SAMPLE(64, "|1\r\n+ttl\r\n:3600\r\n+OK\r\n", "0|1 1+ttl 1:3600 0+OK. "),
    SAMPLE(64, "|0\r\n:1\r\n", "0|0 0:1. "),
    SAMPLE(64, "*3\r\n:1\r\n|1\r\n+k\r\n+v\r\n:2\r\n|0\r\n:3\r\n:4\r\n",
           "0*3 1:1 1|1 2+k 2+v 1:2 1|0 1:3. 0:4. "),
    SAMPLE(64, "|2\r\n+a\r\n*2\r\n:1\r\n:2\r\n+b\r\n*0\r\n:9\r\n",
           "0|2 1+a 1*2 2:1 2:2 1+b 1*0 0:9. "),
    SAMPLE(64, "|1\r\n|1\r\n+x\r\n+y\r\n+k\r\n|1\r\n+p\r\n+q\r\n+v\r\n:1\r\n",
           "0|1 1|1 2+x 2+y 1+k 1|1 2+p 2+q 1+v 0:1. "),
    SAMPLE(64, "|1\r\n+k\r\n+v\r\n>1\r\n+p\r\n+r\r\n", "0|1 1+k 1+v 0>1 1+p. 0+r. "),
    SAMPLE(64, "|1\r\n+k\r\n*1\r\n*1\r\n:1\r\n*1\r\n:2\r\n", "0|1 1+k 1*1 2*1 3:1 0*1 1:2. "),

    /* Numbers at their limits. */
    SAMPLE(64, ":9223372036854775807\r\n", "0:9223372036854775807. "),
    SAMPLE(64, ":+9223372036854775807\r\n", "0:9223372036854775807. "),
    SAMPLE(64, ":-9223372036854775808\r\n", "0:-9223372036854775808. "),
    SAMPLE(64, ":-0\r\n", "0:0. "),
    SAMPLE(64, ":0000000000000000001\r\n", "0:1. "),
    SAMPLE(64, ":9223372036854775808\r\n", "E2"),
    SAMPLE(64, ":-9223372036854775809\r\n", "E2"),
    SAMPLE(64, ":9999999999999999999\r\n", "E2"),
    SAMPLE(64, ":18446744073709551617\r\n", "E2"),
    SAMPLE(64, ":00000000000000000001\r\n", "E2"),
    SAMPLE(64, ":\r\n", "E2"),
    SAMPLE(64, ":-\r\n", "E2"),
    SAMPLE(64, ":+\r\n", "E2"),
    SAMPLE(64, ":--1\r\n", "E2"),
    SAMPLE(64, ":1 \r\n", "E2"),
    SAMPLE(64, ":0x1\r\n", "E2"),
    SAMPLE(64, ":12\n", "E2"),
    SAMPLE(64, ":12\rX", "E4"),
    SAMPLE(64, "*1\rX", "E4"),
    SAMPLE(64, "$1\rXa\r\n", "E4"),
    SAMPLE(64, "$-1\rX", "E4"),
    SAMPLE(64, "$\r\n", "E2"),
    SAMPLE(64, "*x\r\n", "E2"),
    SAMPLE(64, "$?\r\n", "E2"),
    SAMPLE(64, "*?\r\n", "E2"),
    SAMPLE(64, "#x\r\n", "E2"),
    SAMPLE(64, "#\r\n", "E2"),

    /* Lengths at their limits. */
    SAMPLE(64, "$-2\r\n", "E3"),
    SAMPLE(64, "!-1\r\n", "E3"),
    SAMPLE(64, "=-1\r\n", "E3"),
    SAMPLE(64, "*-2\r\n", "E3"),
    SAMPLE(64, "%-1\r\n", "E3"),
    SAMPLE(64, "~-1\r\n", "E3"),
    SAMPLE(64, "|-1\r\n", "E3"),
    SAMPLE(64, ">-1\r\n", "E3"),
    SAMPLE(64, "$-9223372036854775808\r\n", "E3"),
    SAMPLE(64, "$2147483648\r\n", "E3"),
    SAMPLE(64, "$4294967296\r\n", "E3"),
    SAMPLE(64, "*2147483648\r\n", "E3"),
    SAMPLE(64, "%9223372036854775807\r\n", "E3"),
    SAMPLE(64, "*2147483647\r\n:1\r\n", "0*2147483647 1:1 "),
    SAMPLE(64, "%2147483647\r\n:1\r\n:2\r\n:3\r\n", "0%2147483647 1:1 1:2 1:3 "),
    SAMPLE(64, "$2147483647\r\nabc", "0$2147483647!. "),
    SAMPLE(8, "$+0000000000000000008\r\n12345678\r\n:1\r\n", "0$8=12345678. 0:1. "),

    /* Unknown types, pushes that are not outermost. */
    SAMPLE(64, "?\r\n", "E1"),
    SAMPLE(64, "\r\n", "E1"),
    SAMPLE(64, "HTTP/1.1 400 Bad Request\r\n", "E1"),
    SAMPLE(64, "\xff", "E1"),
    SAMPLE(64, "+a\r\n\0", "0+a. E1"),
    SAMPLE(64, "*2\r\n:1\r\n>1\r\n+x\r\n", "0*2 1:1 E1"),
    SAMPLE(64, "|1\r\n>0\r\n", "0|1 E1"),

    /* Ends of lines and payloads. */
    SAMPLE(64, "+a\n", "E4"),
    SAMPLE(64, "+a\rb\r\n", "E4"),
    SAMPLE(64, "-a\nb\r\n", "E4"),
    SAMPLE(64, "_x\r\n", "E4"),
    SAMPLE(64, "_\rx", "E4"),
    SAMPLE(64, "#tt\r\n", "E4"),
    SAMPLE(64, "#t\rt", "E4"),
    SAMPLE(64, "$1\r\nab\r\n", "E4"),
    SAMPLE(64, "$1\r\na\rb", "E4"),
    SAMPLE(64, "$2\r\na\r\n", "E4"),
    SAMPLE(64, "$0\r\nx\r\n", "E4"),

    /* Around the limit: what fits exactly, what is cut by one byte, what is cut and followed. */
    SAMPLE(4, "$4\r\nabcd\r\n$5\r\nabcde\r\n:1\r\n", "0$4=abcd. 0$5!. 0:1. "),
    SAMPLE(4, "+abcd\r\n+abcde\r\n+abcdefghijklm\r\n:1\r\n", "0+abcd. 0+abcd!. 0+abcd!. 0:1. "),
    SAMPLE(4, "*3\r\n!9\r\n\r\n\r\n\r\n\r\n\r\r\n,123456\r\n(9\r\n=4\r\ntxt:\r\n",
           "0*3 1!9! 1,1234! 1(9. 0=4=txt:. "),
    SAMPLE(0, "$0\r\n\r\n+\r\n$1\r\na\r\n+a\r\n*1\r\n:5\r\n", "0$0=. 0+. 0$1!. 0+!. 0*1 1:5. "),
    SAMPLE(4, "|1\r\n$7\r\n1234567\r\n-ERR long\r\n$6\r\n123456\r\n", "0|1 1$7! 1-ERR ! 0$6!. "),
    SAMPLE(4, "$5\r\nabcdeX\n", "0$5!. E4"),
    SAMPLE(4, "$5\r\nabcde\rX", "0$5!. E4"),
    SAMPLE(4, "+abcdef\rX", "0+abcd!. E4"),
    SAMPLE(4, "+abcdef\nX", "0+abcd!. E4"),
    SAMPLE(4, "+abcd\n", "E4"),
    SAMPLE(4, "+abcde\n", "0+abcd!. E4"),
    SAMPLE(4, "+abcdef\r", "0+abcd!. 1?"),
    SAMPLE(4, "$5\r\nabcde\r", "0$5!. 1?"),
    SAMPLE(4, "$5\r\nabc", "0$5!. "),
    SAMPLE(0xffffffff, "$5\r\nabcde\r\n+abc\r\n$2147483647\r\nabc", "0$5=abcde. 0+abc. 16?"),

    /* What waits for more. */
    SAMPLE(64, "", ""),
    SAMPLE(64, ":1\r\n+OK\r", "0:1. 4?"),
    SAMPLE(64, "*", "1?"),
    SAMPLE(64, ":-", "2?"),
    SAMPLE(64, ":1234567890123456789", "20?"),
    SAMPLE(64, "#", "1?"),
    SAMPLE(64, "#t\r", "3?"),
    SAMPLE(64, "_", "1?"),
    SAMPLE(64, "$5\r\nhello\r", "10?"),
    SAMPLE(64, "*2\r\n:1\r\n", "0*2 1:1 "),
};

enum { SAMPLES = sizeof samples / sizeof samples[0] };

/* Of everything, with a limit that cuts some. */
static const struct sample mixed =
    SAMPLE(12,
           "+OK\r\n"
           "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n$5\r\nproto\r\n:"
           "3\r\n$2\r\nid\r\n:10\r\n"
           "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
           "$7\r\nmodules\r\n*1\r\n%2\r\n+name\r\n+json\r\n+args\r\n*0\r\n"
           ">3\r\n$9\r\nsubscribe\r\n$13\r\nfairlock:door\r\n:1\r\n"
           "*4\r\n:1\r\n:-9223372036854775808\r\n_\r\n$12\r\n\r\n\0$1\r\na\r\n+\r\r\n"
           "|1\r\n+ttl\r\n~2\r\n#t\r\n,3.25\r\n"
           "*2\r\n|1\r\n$1\r\nk\r\n(12345678901234567890\r\n$-1\r\n-NOSCRIPT No matching script. "
           "Please use EVAL.\r\n"
           "!5\r\nERR x\r\n=15\r\ntxt:Some string\r\n*-1\r\n|0\r\n*0\r\n"
           "$40\r\n0123456789\r\n23456789\r0123456789\n12345678\r\n"
           ">2\r\n+message\r\n$0\r\n\r\n:+7\r\n",
           "0+OK. "
           "0%7 1$6=server 1$5=redis 1$7=version 1$5=7.0.1 1$5=proto 1:3 1$2=id 1:10 "
           "1$4=mode 1$10=standalone 1$4=role 1$6=master "
           "1$7=modules 1*1 2%2 3+name 3+json 3+args 3*0. "
           "0>3 1$9=subscribe 1$13! 1:1. "
           "0*4 1:1 1:-9223372036854775808 1_ 1$12=\\0d\\0a\\00$1\\0d\\0aa\\0d\\0a+\\0d. "
           "0|1 1+ttl 1~2 2#1 2,3.25 "
           "0*2 1|1 2$1=k 2(123456789012! 1_ 1-NOSCRIPT No !. "
           "0!5=ERR x. 0=15!. 0_. 0|0 0*0. "
           "0$40!. "
           "0>2 1+message 1$0=. 0:7. ");

#endif
