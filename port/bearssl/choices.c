/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration chooses from; see port_bearssl.h. Each function is called once, by
 * port_bearssl_init(), in the order in which they stand here. It names the parts of BearSSL, so the
 * linker takes only those that were chosen.
 */
#include "port_bearssl.h"

#define SHORTEST_RSA_BYTES 256

void port_bearssl_chacha20(struct port_bearssl *tls)
{
  br_ssl_engine_context *engine = &tls->client.eng;
  br_ssl_engine_set_chapol(engine, &br_sslrec_in_chapol_vtable, &br_sslrec_out_chapol_vtable);
  br_ssl_engine_set_chacha20(engine, &br_chacha20_ct_run);
  br_ssl_engine_set_poly1305(engine, &br_poly1305_ctmul32_run);
  tls->suite_ec = BR_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
  tls->suite_rsa = BR_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256;
}

void port_bearssl_aes_gcm(struct port_bearssl *tls)
{
  br_ssl_engine_context *engine = &tls->client.eng;
  br_ssl_engine_set_gcm(engine, &br_sslrec_in_gcm_vtable, &br_sslrec_out_gcm_vtable);
  br_ssl_engine_set_aes_ctr(engine, &br_aes_ct_ctr_vtable);
  br_ssl_engine_set_ghash(engine, &br_ghash_ctmul32);
  tls->suite_ec = BR_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
  tls->suite_rsa = BR_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
}

void port_bearssl_ec(struct port_bearssl *tls)
{
  br_ssl_engine_set_ecdsa(&tls->client.eng, &br_ecdsa_i31_vrfy_asn1);
}

void port_bearssl_rsa(struct port_bearssl *tls)
{
  br_ssl_engine_set_rsavrfy(&tls->client.eng, &br_rsa_i31_pkcs1_vrfy);
}

void port_bearssl_ec_and_rsa(struct port_bearssl *tls)
{
  port_bearssl_ec(tls);
  port_bearssl_rsa(tls);
}

/*
 * Only the kind of the known key is offered, so a server with keys of both kinds must use that one.
 */
bool port_bearssl_pinned(struct port_bearssl *tls)
{
  const br_x509_pkey *key = tls->config->pinned;
  br_ssl_engine_context *engine = &tls->client.eng;
  if (key == NULL) return false;
  tls->known = (br_x509_knownkey_context){&br_x509_knownkey_vtable, *key, BR_KEYTYPE_SIGN};
  br_ssl_engine_set_x509(engine, &tls->known.vtable);
  if (key->key_type == BR_KEYTYPE_EC) {
    br_ssl_engine_set_rsavrfy(engine, 0);
    return br_ssl_engine_get_ecdsa(engine) != 0;
  }
  br_ssl_engine_set_ecdsa(engine, 0);
  return key->key_type == BR_KEYTYPE_RSA && br_ssl_engine_get_rsavrfy(engine) != 0;
}

bool port_bearssl_ca(struct port_bearssl *tls)
{
  const struct port_bearssl_config *config = tls->config;
  br_ssl_engine_context *engine = &tls->client.eng;
  br_x509_minimal_context *x509 = config->x509;
  /* without a name, BearSSL would accept any server's */
  if (config->name == NULL || config->name[0] == 0) return false;
  if (x509 == NULL || config->ca == NULL || config->utc == NULL) return false;
  br_x509_minimal_init(x509, &br_sha256_vtable, config->ca, config->ca_count);
  br_x509_minimal_set_hash(x509, br_sha256_ID, &br_sha256_vtable);
  br_x509_minimal_set_ecdsa(x509, br_ssl_engine_get_ec(engine), br_ssl_engine_get_ecdsa(engine));
  br_x509_minimal_set_rsa(x509, br_ssl_engine_get_rsavrfy(engine));
  br_x509_minimal_set_minrsa(x509, SHORTEST_RSA_BYTES);
  br_ssl_engine_set_x509(engine, &x509->vtable);
  return true;
}

void port_bearssl_client_ec(struct port_bearssl *tls)
{
  const struct port_bearssl_config *config = tls->config;
  br_ssl_client_set_single_ec(&tls->client, config->chain, config->chain_count, config->private_key,
                              BR_KEYTYPE_SIGN, BR_KEYTYPE_EC,
                              br_ssl_engine_get_ec(&tls->client.eng), &br_ecdsa_i31_sign_asn1);
}
