/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of one transport, as the client makes them. A test says which one before it includes
 * this: #define LINK (&server.transport)
 */
static inline int link_connect(uint32_t timeout_ms)
{
  return LINK->connect(LINK->context, timeout_ms);
}

static inline int link_send(const void *data, size_t size)
{
  return LINK->send(LINK->context, data, size);
}

static inline int link_recv(void *data, size_t size, uint32_t timeout_ms)
{
  return LINK->recv(LINK->context, data, size, timeout_ms);
}

static inline void link_close(void)
{
  LINK->close(LINK->context);
}
