/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec with its input and output flush against pages that may not be touched: a byte read or
 * written outside of what was given ends the program. Host only.
 */
#include "check.h"
#include "resp.h"
#include "test_resp_samples.h"
#include "test_resp_trace.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* One page that may be used between two that may not. */
struct pages {
  uint8_t *start;
  uint8_t *end;
};

static bool map_pages(struct pages *pages)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uint8_t *base = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!CHECK(base != MAP_FAILED)) return false;
  pages->start = base + page;
  pages->end = base + 2 * page;
  return CHECK(mprotect(pages->start, page, PROT_READ | PROT_WRITE) == 0);
}

static void unmap_pages(const struct pages *pages)
{
  size_t page = (size_t)(pages->end - pages->start);
  munmap(pages->start - page, 3 * page);
}

/*
 * Decodes size bytes that lie at `at`, and compares with the sample's events if those are all of
 * its bytes.
 */
static void decode_there(const struct sample *sample, uint8_t *at, size_t size)
{
  static struct trace trace;
  struct resp_decoder decoder;
  size_t used;
  trace.size = 0;
  trace.text[0] = 0;
  memcpy(at, sample->bytes, size);
  resp_decoder_init(&decoder, sample->limit);
  int status = trace_bytes(&trace, &decoder, at, size, &used);
  trace_end(&trace, status, size - used);
  if (size == sample->size) trace_check(&trace, sample->events);
}

static void decode_all_prefixes(const struct pages *pages, const struct sample *sample)
{
  for (size_t size = 0; size <= sample->size; size++) {
    decode_there(sample, pages->end - size, size);
    decode_there(sample, pages->start, size);
  }
}

static void test_decoder_stays_inside(void)
{
  struct pages pages;
  if (!map_pages(&pages)) return;
  for (size_t i = 0; i < SAMPLES; i++)
    decode_all_prefixes(&pages, &samples[i]);
  decode_all_prefixes(&pages, &mixed);
  unmap_pages(&pages);
}

/* The buffer of the documented size ends at the guard, too, however the stream is split. */
static void test_buffer_stays_inside(void)
{
  struct pages pages;
  if (!map_pages(&pages)) return;
  const size_t room = mixed.limit + RESP_OVERHEAD;
  uint8_t *buffer = pages.end - room;
  for (size_t step = 1; step <= room; step++) {
    static struct trace trace;
    struct resp_decoder decoder;
    size_t held = 0;
    trace.size = 0;
    resp_decoder_init(&decoder, mixed.limit);
    for (size_t received = 0; received < mixed.size;) {
      size_t used;
      size_t piece = step < mixed.size - received ? step : mixed.size - received;
      if (!CHECK(held < room)) break;
      if (piece > room - held) piece = room - held;
      memcpy(buffer + held, mixed.bytes + received, piece);
      received += piece;
      held += piece;
      CHECK_EQUAL(trace_bytes(&trace, &decoder, buffer, held, &used), RESP_MORE);
      held -= used;
      memmove(buffer, buffer + used, held);
    }
    trace_check(&trace, mixed.events);
  }
  unmap_pages(&pages);
}

static void test_writer_stays_inside(void)
{
  struct pages pages;
  if (!map_pages(&pages)) return;
  for (size_t size = 0; size < 64; size++) {
    for (size_t skip = 0; skip < 64; skip++) {
      struct resp_writer writer;
      resp_writer_init(&writer, pages.end - size, size, skip);
      resp_write_header(&writer, RESP_ARRAY, 3);
      resp_write_bulk(&writer, "some payload", 12);
      resp_write_bulk_number(&writer, INT64_MIN);
      resp_write_line(&writer, RESP_NULL, "", 0);
      CHECK_EQUAL(writer.total, 53);
    }
  }
  unmap_pages(&pages);
}

static void test_numbers_stay_inside(void)
{
  struct pages pages;
  if (!map_pages(&pages)) return;
  static const char *const texts[] = {"-9223372036854775808", "7", "-", "12345678901234567890"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    for (size_t size = 0; size <= strlen(texts[i]); size++) {
      int64_t number = 0;
      memcpy(pages.end - size, texts[i], size);
      CHECK(!resp_parse_number(pages.end - size, size, &number) || size > 0);
    }
  }
  CHECK_EQUAL(resp_format_number((char *)pages.end - RESP_NUMBER_SIZE, INT64_MIN),
              RESP_NUMBER_SIZE);
  unmap_pages(&pages);
}

const struct check_test check_tests[] = {
    {"resp_decoder_stays_inside", test_decoder_stays_inside},
    {"resp_buffer_stays_inside", test_buffer_stays_inside},
    {"resp_writer_stays_inside", test_writer_stays_inside},
    {"resp_numbers_stay_inside", test_numbers_stay_inside},
    {0},
};
