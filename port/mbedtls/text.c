/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text for each error; see port_mbedtls.h. In a file of its own, so that a program that does not
 * print errors does not have the texts in flash. Mbed TLS's own are ten times as long.
 */
#include "port_mbedtls.h"

#include <mbedtls/version.h>
#include <mbedtls/x509.h>
#if MBEDTLS_VERSION_NUMBER >= 0x04000000
#include <psa/crypto.h>
#else
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/ecp.h>
#include <mbedtls/rsa.h>
#endif

#if MBEDTLS_VERSION_NUMBER >= 0x03000000
#define BAD_VERSION MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION
#else
#define BAD_VERSION MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION
#endif

struct text {
  int error;
  const char *text;
};

static const struct text errors[] = {
    {0, "no error"},
    {PORT_MBEDTLS_CUT, "the connection broke in the handshake"},
    {PORT_MBEDTLS_MUTE, "the server does not answer in TLS"},
    {MBEDTLS_ERR_SSL_ALLOC_FAILED, "there is not enough memory"},
    {MBEDTLS_ERR_SSL_FEATURE_UNAVAILABLE, "this Mbed TLS was built without what it takes"},
#if MBEDTLS_VERSION_NUMBER >= 0x04000000
    {PSA_ERROR_INSUFFICIENT_ENTROPY, "there are no random bytes"},
    {PSA_ERROR_INVALID_SIGNATURE, "the server does not have the key that it should have"},
#else
    {MBEDTLS_ERR_CTR_DRBG_ENTROPY_SOURCE_FAILED, "there are no random bytes"},
    {MBEDTLS_ERR_ECP_VERIFY_FAILED, "the server does not have the key that it should have"},
    {MBEDTLS_ERR_RSA_VERIFY_FAILED, "the server does not have the key that it should have"},
#endif
    {MBEDTLS_ERR_SSL_INVALID_RECORD,
     "the server does not speak TLS, or sends records that are too long"},
    {MBEDTLS_ERR_SSL_INVALID_MAC, "a record was changed on its way, or the server has another key"},
    {MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE, "the server does not keep to the protocol"},
#ifdef MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE
    {MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE, "nothing in common with the server"},
#endif
    {BAD_VERSION, "the server speaks no TLS that we do"},
};

/* What a server says before it hangs up. */
static const struct text alerts[] = {
    {20, "the server says: a record was changed on its way, or we have another key"},
    {40, "the server says: nothing in common, or no client certificate"},
    {42, "the server says: the client certificate is bad"},
    {43, "the server says: the client certificate is of a kind it does not know"},
    {44, "the server says: the client certificate was revoked"},
    {45, "the server says: the client certificate has expired"},
    {46, "the server says: the client certificate is not accepted"},
    {48, "the server says: the client certificate was issued by nobody it trusts"},
    {49, "the server says: access denied"},
    {51, "the server says: the client does not have the key that it should have"},
    {70, "the server says: it does not speak that version of TLS"},
    {71, "the server says: the cipher is too weak"},
    {112, "the server says: it does not have that name"},
    {115, "the server says: it does not know the client's key"},
    {116, "the server says: it needs a client certificate"},
};

/* What is wrong with the server's certificate, the worst first. */
static const struct text flags[] = {
    {MBEDTLS_X509_BADCERT_NOT_TRUSTED, "the certificate was issued by nobody who is trusted"},
    {MBEDTLS_X509_BADCERT_REVOKED, "the certificate was revoked"},
    {MBEDTLS_X509_BADCERT_CN_MISMATCH, "the certificate is for another name"},
    {MBEDTLS_X509_BADCERT_EXPIRED, "the certificate has expired"},
    {MBEDTLS_X509_BADCERT_FUTURE, "the certificate is not valid yet"},
    {MBEDTLS_X509_BADCERT_MISSING, "the server has no certificate"},
};

#define COUNT(of) (sizeof(of) / sizeof(of)[0])

static const char *find(const struct text *texts, size_t count, int error, const char *otherwise)
{
  for (size_t i = 0; i < count; i++) {
    if (texts[i].error == error) return texts[i].text;
  }
  return otherwise;
}

const char *port_mbedtls_error_text(int error)
{
  if (error >= PORT_MBEDTLS_CERT) {
    for (size_t i = 0; i < COUNT(flags); i++) {
      if ((error & flags[i].error) != 0) return flags[i].text;
    }
    return "the certificate is not for this use, or too weak";
  }
  if (error >= PORT_MBEDTLS_ALERT)
    return find(alerts, COUNT(alerts), error - PORT_MBEDTLS_ALERT,
                "the server refuses the handshake");
  return find(errors, COUNT(errors), error, "the handshake failed: see Mbed TLS's number");
}
