/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for Arduino's SPI library, which sketches include for the Ethernet library's sake. */
