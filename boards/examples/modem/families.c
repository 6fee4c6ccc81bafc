/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What modems say, and are told. Another family is one more of these, if it has a prompt, and keeps
 * received bytes until they are asked for.
 */
#include "modem.h"

/* Do not echo what is sent (those that know this command echo it otherwise). */
static const char *const quectel_prepare[] = {"AT+QISDE=0", NULL};

const struct modem_family modem_quectel = {
    .prepare = quectel_prepare,
    .open = "AT+QIOPEN=1,0,\"TCP\",\"%h\",%p,0,0",
    .opened = "+QIOPEN: 0,0",
    .refused = "+QIOPEN: 0,",
    .send = "AT+QISEND=0,%n",
    .sent = "SEND OK",
    .full = "SEND FAIL",
    .receive = "AT+QIRD=0,%n",
    .received = "+QIRD: ",
    .close = "AT+QICLOSE=0",
    .closed = "OK",
    .arrived = "+QIURC: \"recv\",0",
    .ended = "+QIURC: \"closed\",0",
    .prepare_ms = 150000,
    .close_ms = 12000,
    .poll_ms = 2000,
};

/* Keep received bytes; and the network, which is open already after a reset of the device alone. */
static const char *const simcom_prepare[] = {"AT+CIPRXGET=1", "AT+NETOPEN", NULL};

const struct modem_family modem_simcom = {
    .prepare = simcom_prepare,
    .open = "AT+CIPOPEN=0,\"TCP\",\"%h\",%p",
    .opened = "+CIPOPEN: 0,0",
    .refused = "+CIPOPEN: 0,",
    .send = "AT+CIPSEND=0,%n",
    .sent = "+CIPSEND: 0,%n,%n",
    .full = "+CIPSEND: 0,%n,0",
    .receive = "AT+CIPRXGET=2,0,%n",
    .received = "+CIPRXGET: 2,0,",
    .close = "AT+CIPCLOSE=0",
    .closed = "+CIPCLOSE: 0,",
    .arrived = "+CIPRXGET: 1,0",
    .ended = "+IPCLOSE: 0,",
    .prepare_ms = 120000,
    .close_ms = 12000,
    .poll_ms = 2000,
};
