/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-ins' functions, on a host with POSIX. */
#include "Ethernet.h"

#undef abs
#undef bit
#undef max
#undef min
#undef round
#undef word

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

HardwareSerial Serial, Serial1;
EthernetClass Ethernet;
unsigned long millis_calls;

extern "C" unsigned long millis(void)
{
  struct timespec now;
  millis_calls++;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint32_t>(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

extern "C" unsigned long micros(void)
{
  return static_cast<uint32_t>(millis() * 1000);
}

extern "C" void delay(unsigned long ms)
{
  struct timespec time = {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000};
  while (nanosleep(&time, &time) != 0 && errno == EINTR)
    continue;
}

extern "C" void yield(void)
{
}

/* Print */

size_t arduino::Print::write(const uint8_t *data, size_t size)
{
  size_t done = 0;
  while (done < size && write(data[done]) == 1)
    done++;
  return done;
}

size_t arduino::Print::print(const char *text)
{
  return write(reinterpret_cast<const uint8_t *>(text), strlen(text));
}

size_t arduino::Print::print(const __FlashStringHelper *text)
{
  return print(reinterpret_cast<const char *>(text));
}

size_t arduino::Print::print(char one)
{
  return write(static_cast<uint8_t>(one));
}

size_t arduino::Print::print(long value, int)
{
  char text[24];
  (void)snprintf(text, sizeof text, "%ld", value);
  return print(text);
}

size_t arduino::Print::print(unsigned long value, int base)
{
  char text[24];
  (void)snprintf(text, sizeof text, base == HEX ? "%lX" : "%lu", value);
  return print(text);
}

size_t arduino::Print::print(int value, int base)
{
  return print(static_cast<long>(value), base);
}

size_t arduino::Print::print(unsigned int value, int base)
{
  return print(static_cast<unsigned long>(value), base);
}

size_t arduino::Print::print(const Printable &what)
{
  return what.printTo(*this);
}

size_t arduino::Print::println()
{
  return print("\r\n");
}

size_t arduino::IPAddress::printTo(Print &to) const
{
  size_t size = 0;
  for (int i = 0; i < 4; i++) {
    if (i > 0) size += to.print('.');
    size += to.print(bytes_[i]);
  }
  return size;
}

size_t arduino::HardwareSerial::write(uint8_t one)
{
  if (one == '\r') return 1;
  (void)putchar(one);
  if (one == '\n') (void)fflush(stdout);
  return 1;
}

/* EthernetClient */

EthernetClient::~EthernetClient()
{
  EthernetClient::stop();
}

/* Waits for the other side, as long as it may. */
static bool answered(int socket, int timeout_ms)
{
  struct pollfd opened = {socket, POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  return ::poll(&opened, 1, timeout_ms) == 1 &&
         getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

int EthernetClient::open(const char *address, uint16_t port)
{
  const char *service = getenv("SERVER_PORT");
  struct sockaddr_in to = {};
  int one = 1;
  stop();
  connects++;
  delay(connect_takes_ms);
  if (refuses) return 0;
  to.sin_family = AF_INET;
  to.sin_port = htons(service != nullptr ? static_cast<uint16_t>(atoi(service)) : port);
  if (inet_pton(AF_INET, service != nullptr ? "127.0.0.1" : address, &to.sin_addr) != 1) return -2;
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  (void)setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (::connect(socket_, reinterpret_cast<struct sockaddr *>(&to), sizeof to) == 0) return 1;
  if (errno == EINPROGRESS && answered(socket_, timeout_ms_)) return 1;
  stop();
  return -1;
}

int EthernetClient::connect(IPAddress address, uint16_t port)
{
  char text[16];
  (void)snprintf(text, sizeof text, "%d.%d.%d.%d", address[0], address[1], address[2], address[3]);
  return open(text, port);
}

int EthernetClient::connect(const char *host, uint16_t port)
{
  return open(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port);
}

size_t EthernetClient::write(uint8_t one)
{
  return write(&one, 1);
}

/* As that of the real one, it waits for room. */
size_t EthernetClient::write(const uint8_t *data, size_t size)
{
  writes++;
  delay(write_takes_ms);
  if (takes_nothing || socket_ < 0) return 0;
  if (size > takes_at_most) size = takes_at_most;
  for (;;) {
    ssize_t done = send(socket_, data, size, MSG_NOSIGNAL);
    if (done >= 0) return static_cast<size_t>(done);
    if (errno != EAGAIN) return 0;
    struct pollfd room = {socket_, POLLOUT, 0};
    (void)::poll(&room, 1, 1000);
  }
}

int EthernetClient::availableForWrite()
{
  if (!tells_room) return Print::availableForWrite();
  struct pollfd room = {socket_, POLLOUT, 0};
  return socket_ >= 0 && ::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) ? 2048 : 0;
}

int EthernetClient::available()
{
  int size = 0;
  return socket_ >= 0 && ioctl(socket_, FIONREAD, &size) == 0 ? size : 0;
}

int EthernetClient::read()
{
  uint8_t one;
  return read(&one, 1) == 1 ? one : -1;
}

int EthernetClient::read(uint8_t *data, size_t size)
{
  ssize_t got = socket_ >= 0 ? recv(socket_, data, size, 0) : -1;
  return got > 0 ? static_cast<int>(got) : -1;
}

int EthernetClient::peek()
{
  uint8_t one;
  return socket_ >= 0 && recv(socket_, &one, 1, MSG_PEEK) == 1 ? one : -1;
}

void EthernetClient::stop()
{
  if (socket_ >= 0) (void)close(socket_);
  socket_ = -1;
}

/* Also as long as there is something to read. */
uint8_t EthernetClient::connected()
{
  uint8_t one;
  if (socket_ < 0) return 0;
  ssize_t got = recv(socket_, &one, 1, MSG_PEEK);
  return got > 0 || (got < 0 && errno == EAGAIN);
}
