/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mbed TLS 2.28 for boards: TLS 1.2 as a client, to a server that is known by a CA, EC and RSA, as
 * link_ca.c has it by BearSSL; with BY_PSK, for which there is no image, by a key that both have and
 * nothing else. No system is needed: memory comes from an array, and the time from the board.
 */
#ifndef MBEDTLS_CONFIG_H
#define MBEDTLS_CONFIG_H

#define MBEDTLS_HAVE_ASM

/* The platform; link_mbedtls.c has what is named here. */
#define MBEDTLS_PLATFORM_C
#define MBEDTLS_PLATFORM_MEMORY
#define MBEDTLS_PLATFORM_NO_STD_FUNCTIONS
#define MBEDTLS_PLATFORM_EXIT_MACRO board_exit
#define MBEDTLS_MEMORY_BUFFER_ALLOC_C
_Noreturn void board_exit(int status);

/* Nobody has it: what would call it is not linked, but later compilers want to know it. */
#define MBEDTLS_PLATFORM_SNPRINTF_MACRO snprintf_of_nobody
#include <stddef.h>
int snprintf_of_nobody(char *text, size_t size, const char *format, ...);

/* What both need. */
#define MBEDTLS_CHACHA20_C
#define MBEDTLS_CHACHAPOLY_C
#define MBEDTLS_CIPHER_C
#define MBEDTLS_MD_C
#define MBEDTLS_POLY1305_C
#define MBEDTLS_SHA256_C
#define MBEDTLS_SSL_CLI_C
#define MBEDTLS_SSL_EXTENDED_MASTER_SECRET
#define MBEDTLS_SSL_PROTO_TLS1_2
#define MBEDTLS_SSL_SESSION_TICKETS
#define MBEDTLS_SSL_TLS_C

#ifdef BY_PSK
#define MBEDTLS_KEY_EXCHANGE_PSK_ENABLED
#define MBEDTLS_SSL_IN_CONTENT_LEN  1024
#define MBEDTLS_SSL_OUT_CONTENT_LEN 1024
#else
#define MBEDTLS_HAVE_TIME
#define MBEDTLS_HAVE_TIME_DATE
#define MBEDTLS_PLATFORM_GMTIME_R_ALT
#define MBEDTLS_PLATFORM_TIME_ALT
#define MBEDTLS_ASN1_PARSE_C
#define MBEDTLS_ASN1_WRITE_C
#define MBEDTLS_BIGNUM_C
#define MBEDTLS_ECDH_C
#define MBEDTLS_ECDSA_C
#define MBEDTLS_ECP_C
#define MBEDTLS_ECP_DP_SECP256R1_ENABLED
#define MBEDTLS_ECP_NIST_OPTIM
#define MBEDTLS_ECP_NO_INTERNAL_RNG /* the transport hands over one wherever a secret is used */
#define MBEDTLS_KEY_EXCHANGE_ECDHE_ECDSA_ENABLED
#define MBEDTLS_KEY_EXCHANGE_ECDHE_RSA_ENABLED
#define MBEDTLS_OID_C
#define MBEDTLS_PKCS1_V15
#define MBEDTLS_PK_C
#define MBEDTLS_PK_PARSE_C
#define MBEDTLS_RSA_C
#define MBEDTLS_SSL_MAX_FRAGMENT_LENGTH
#define MBEDTLS_SSL_SERVER_NAME_INDICATION
#define MBEDTLS_X509_CRT_PARSE_C
#define MBEDTLS_X509_REMOVE_INFO
#define MBEDTLS_X509_USE_C

/*
 * The server's certificates have to fit into a record; 2048 can be asked for only if there is room in
 * both directions. Less memory, and more time.
 */
#define MBEDTLS_SSL_IN_CONTENT_LEN    2048
#define MBEDTLS_SSL_OUT_CONTENT_LEN   2048
#define MBEDTLS_ECP_FIXED_POINT_OPTIM 0
#define MBEDTLS_ECP_WINDOW_SIZE       2
#define MBEDTLS_MPI_MAX_SIZE          512
#define MBEDTLS_MPI_WINDOW_SIZE       1
#endif

#include "mbedtls/check_config.h"

#endif
