/* SPDX-License-Identifier: Apache-2.0 */
/* A TLS server in memory; see peer.h. */
#include "bearssl_peer.h"

#include <string.h>

static const uint8_t scalar[32] = {7, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const br_ec_private_key private_key = {BR_EC_secp256r1, (uint8_t *)(uintptr_t)scalar,
                                              sizeof scalar};

/* A client that has pinned the key does not check it. */
static uint8_t no_certificate[300] = "not a certificate";
static const br_x509_certificate chain[] = {{no_certificate, sizeof no_certificate}};

const br_x509_pkey *peer_key(void)
{
  static uint8_t point[BR_EC_KBUF_PUB_MAX_SIZE];
  static br_x509_pkey key;
  br_ec_public_key public_key;
  if (br_ec_compute_pub(br_ec_get_default(), &public_key, point, &private_key) == 0) return NULL;
  key.key_type = BR_KEYTYPE_EC;
  key.key.ec = public_key;
  return &key;
}

/* Answers what has come: sends the data back. */
static void serve(struct peer *peer)
{
  br_ssl_engine_context *engine = &peer->server.eng;
  if (engine->application_data == 1) peer->shaken = true;
  for (;;) {
    size_t ready, room;
    if (peer->fragment > 0 && engine->application_data == 1)
      engine->max_frag_len = (uint16_t)peer->fragment;
    const uint8_t *from = br_ssl_engine_recvapp_buf(engine, &ready);
    uint8_t *to = br_ssl_engine_sendapp_buf(engine, &room);
    if (from == NULL || to == NULL) return;
    if (ready > room) ready = room;
    memcpy(to, from, ready);
    peer->received += ready;
    br_ssl_engine_recvapp_ack(engine, ready);
    br_ssl_engine_sendapp_ack(engine, ready);
    br_ssl_engine_flush(engine, 0);
  }
}

static int peer_connect(void *context, uint32_t timeout_ms)
{
  struct peer *peer = context;
  (void)timeout_ms;
  peer->connections++;
  peer->shaken = peer->closed_well = false;
  peer->open = br_ssl_server_reset(&peer->server) == 1;
  return peer->open ? PORT_OK : PORT_UNREACHABLE;
}

static int peer_send(void *context, const void *data, size_t size)
{
  struct peer *peer = context;
  size_t room;
  if (!peer->open) return PORT_CLOSED;
  uint8_t *to = br_ssl_engine_recvrec_buf(&peer->server.eng, &room);
  if (to == NULL) {
    bool ended = br_ssl_engine_current_state(&peer->server.eng) == BR_SSL_CLOSED;
    return ended ? PORT_CLOSED : PORT_WOULD_BLOCK;
  }
  if (size > room) size = room;
  memcpy(to, data, size);
  br_ssl_engine_recvrec_ack(&peer->server.eng, size);
  serve(peer);
  return (int)size;
}

static int peer_recv(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  struct peer *peer = context;
  size_t ready;
  (void)timeout_ms;
  if (!peer->open) return PORT_CLOSED;
  const uint8_t *from = br_ssl_engine_sendrec_buf(&peer->server.eng, &ready);
  if (from == NULL) {
    bool ended = br_ssl_engine_current_state(&peer->server.eng) == BR_SSL_CLOSED;
    return ended ? PORT_CLOSED : PORT_WOULD_BLOCK;
  }
  if (size > ready) size = ready;
  memcpy(data, from, size);
  br_ssl_engine_sendrec_ack(&peer->server.eng, size);
  serve(peer);
  return (int)size;
}

static void peer_hang_up(void *context)
{
  struct peer *peer = context;
  const br_ssl_engine_context *engine = &peer->server.eng;
  /* the answer to the client's good-bye is ready, or has been fetched */
  peer->closed_well =
      peer->open && engine->shutdown_recv != 0 && br_ssl_engine_last_error(engine) == BR_ERR_OK;
  peer->open = false;
}

void peer_init(struct peer *peer)
{
  memset(peer, 0, sizeof *peer);
  br_ssl_server_init_full_ec(&peer->server, chain, 1, BR_KEYTYPE_EC, &private_key);
  /* where the system gives no random bytes */
  br_ssl_engine_inject_entropy(&peer->server.eng, scalar, sizeof scalar);
  br_ssl_engine_set_buffers_bidi(&peer->server.eng, peer->receive_buffer,
                                 sizeof peer->receive_buffer, peer->send_buffer,
                                 sizeof peer->send_buffer);
  peer->transport = (struct port_transport){.connect = peer_connect,
                                            .send = peer_send,
                                            .recv = peer_recv,
                                            .close = peer_hang_up,
                                            .context = peer};
}

void peer_renegotiate(struct peer *peer)
{
  (void)br_ssl_engine_renegotiate(&peer->server.eng);
}

void peer_close(struct peer *peer)
{
  br_ssl_engine_close(&peer->server.eng);
}
