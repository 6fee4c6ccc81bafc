/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for BearSSL's errors; see port_bearssl.h. BearSSL itself has none. */
#include "port_bearssl.h"

struct text {
  int error;
  const char *text;
};

static const struct text errors[] = {
    {BR_ERR_OK, "no error"},
    {BR_ERR_BAD_PARAM, "the server's name is too long"},
    {BR_ERR_UNSUPPORTED_VERSION, "the server does not speak TLS 1.2"},
    {BR_ERR_BAD_VERSION, "the server changed the version of TLS"},
    {BR_ERR_BAD_LENGTH, "a record has a wrong length"},
    {BR_ERR_TOO_LARGE, "a record does not fit the receive buffer"},
    {BR_ERR_BAD_MAC, "a record was changed on its way"},
    {BR_ERR_NO_RANDOM, "there are no random bytes"},
    {BR_ERR_UNKNOWN_TYPE, "a record is of no known type"},
    {BR_ERR_BAD_FRAGLEN, "the server wants another fragment length"},
    {BR_ERR_BAD_SECRENEG, "the server has another handshake in mind"},
    {BR_ERR_BAD_CIPHER_SUITE, "the server wants a cipher that was not offered"},
    {BR_ERR_BAD_FINISHED, "the handshake was changed on its way"},
    {BR_ERR_RESUME_MISMATCH, "the server resumes another session"},
    {BR_ERR_INVALID_ALGORITHM, "the server wants an algorithm that is not linked"},
    {BR_ERR_BAD_SIGNATURE, "the server does not have the key that it should have"},
    {BR_ERR_WRONG_KEY_USAGE, "the server's key is not for this use"},
    {BR_ERR_IO, "the connection broke in the handshake"},
    {BR_ERR_X509_EMPTY_CHAIN, "the server has no certificate"},
    {BR_ERR_X509_UNSUPPORTED, "the certificate has an algorithm that is not linked"},
    {BR_ERR_X509_WRONG_KEY_TYPE, "the certificate's key is of another kind"},
    {BR_ERR_X509_BAD_SIGNATURE, "the certificate's signature is wrong"},
    {BR_ERR_X509_TIME_UNKNOWN, "the time is not known"},
    {BR_ERR_X509_EXPIRED, "the certificate has expired, or is not valid yet"},
    {BR_ERR_X509_DN_MISMATCH, "the chain of certificates does not fit together"},
    {BR_ERR_X509_BAD_SERVER_NAME, "the certificate is for another name"},
    {BR_ERR_X509_NOT_CA, "a certificate was issued by one that may not"},
    {BR_ERR_X509_FORBIDDEN_KEY_USAGE, "the certificate is not for this use"},
    {BR_ERR_X509_WEAK_PUBLIC_KEY, "the certificate's key is too short"},
    {BR_ERR_X509_NOT_TRUSTED, "the certificate was issued by nobody who is trusted"},
};

/* What a server says before it hangs up. */
static const struct text alerts[] = {
    {20, "the server says: a record was changed on its way"},
    {40, "the server says: nothing in common, or no client certificate"},
    {42, "the server says: the client certificate is bad"},
    {43, "the server says: the client certificate is of a kind it does not know"},
    {44, "the server says: the client certificate was revoked"},
    {45, "the server says: the client certificate has expired"},
    {46, "the server says: the client certificate is not accepted"},
    {48, "the server says: the client certificate was issued by nobody it trusts"},
    {49, "the server says: access denied"},
    {51, "the server says: the client does not have the key of its certificate"},
    {70, "the server says: it does not speak TLS 1.2"},
    {71, "the server says: the cipher is too weak"},
    {112, "the server says: it does not have that name"},
    {116, "the server says: it needs a client certificate"},
};

static const char *find(const struct text *texts, size_t count, int error, const char *otherwise)
{
  for (size_t i = 0; i < count; i++) {
    if (texts[i].error == error) return texts[i].text;
  }
  return otherwise;
}

const char *port_bearssl_error_text(int error)
{
  if (error >= BR_ERR_SEND_FATAL_ALERT) return "the server does not keep to the protocol";
  if (error >= BR_ERR_RECV_FATAL_ALERT)
    return find(alerts, sizeof alerts / sizeof alerts[0], error - BR_ERR_RECV_FATAL_ALERT,
                "the server refuses the handshake");
  const char *otherwise = error > BR_ERR_X509_OK ? "the certificate cannot be read"
                                                 : "the server does not keep to the protocol";
  return find(errors, sizeof errors / sizeof errors[0], error, otherwise);
}
