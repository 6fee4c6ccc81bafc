/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants that stay in flash. Most processors read them there like any other data, and this
 * header changes nothing. An AVR reads flash by an instruction of its own: its compiler copies all
 * constants to RAM when the program starts, but those that are declared PORT_FLASH, which it
 * reads by that instruction. That needs GNU C (-std=gnu11, as Arduino has); by -std=c11 they are
 * copied, too. All that is declared so has to lie in the first 64 KB of flash, where the linker
 * puts it.
 *
 * Private to the library.
 */
#ifndef FAIRLOCK_PORT_FLASH_H
#define FAIRLOCK_PORT_FLASH_H

#if defined __AVR__ && !defined __STRICT_ANSI__

#define PORT_FLASH __flash

/* The longest text that port_flash_text() copies, with its 0. */
#define PORT_FLASH_TEXT_SIZE 80

/* Copies a string to RAM, where the next call replaces it. */
static inline const char *port_flash_text(const PORT_FLASH char *text)
{
  static char copy[PORT_FLASH_TEXT_SIZE];
  unsigned char size = 0;
  while (size < sizeof copy - 1 && text[size] != 0) {
    copy[size] = text[size];
    size++;
  }
  copy[size] = 0;
  return copy;
}

#else

#define PORT_FLASH
#define port_flash_text(text) (text)

#endif

#endif
