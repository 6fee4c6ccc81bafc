/* SPDX-License-Identifier: Apache-2.0 */
#include "Fairlock.h"

#include <string.h>

/* While a send would block, and nothing tells when it can go on, receiving returns after this, in ms. */
#define BLOCKED_MS 10U

/* How long one call of a Client may block, unless the sketch says otherwise, in ms. */
#define BLOCKS_MS 10000U

/* The port: clock and idling */

static uint32_t slept_ms;

void fairlockSlept(uint32_t ms)
{
  slept_ms += ms;
}

extern "C" uint32_t port_clock_ms(void)
{
  return static_cast<uint32_t>(millis()) + slept_ms;
}

/* delay() also serves the network stacks of boards that have no task for it. */
extern "C" void port_idle(uint32_t ms)
{
  delay(ms < BLOCKED_MS ? ms : BLOCKED_MS);
}

/* The transport */

/*
 * True if each hold of the sketch would still be valid after a call of the Client that takes as long
 * as it may.
 */
bool FairlockClient::mayBlock() const
{
  for (FairlockHandle *each = FairlockHandle::first_; each != nullptr; each = each->next_) {
    uint32_t left = each->remaining();
    if (left > 0 && left <= blocks_ms_) return false;
  }
  return true;
}

/* A call of the Client began then, and has ended. */
void FairlockClient::measure(uint32_t began)
{
  uint32_t took = port_clock_ms() - began;
  if (took > blocks_ms_) blocks_ms_ = took;
}

/* After a loss loop() has a turn before anything blocks, unless it has called what blocks itself. */
int FairlockClient::connectNow(uint32_t timeout_ms)
{
  if ((lost_ && timeout_ms == 0) || !mayBlock()) {
    if (timeout_ms > 0) port_idle(timeout_ms);
    return PORT_WOULD_BLOCK;
  }
  full_ = false;
  broken_ = false;
  uint32_t began = port_clock_ms();
  int result = host_ != nullptr ? net_->connect(host_, port_) : net_->connect(address_, port_);
  measure(began);
  return result > 0 ? PORT_OK : PORT_UNREACHABLE;
}

/*
 * A Client that takes nothing does not say whether something is on its way nevertheless, so the
 * connection ends then. That is left to receiving, because the server may have said why it closes.
 * Only where availableForWrite() is known to work, 0 means that there is no room. (0 is also what Print
 * has for a Client that cannot tell.)
 */
int FairlockClient::sendSome(const uint8_t *data, size_t size)
{
  int room = net_->availableForWrite();
  if (room > 0) tells_room_ = true;
  full_ = tells_room_ && room <= 0;
  if (full_ || broken_) return PORT_WOULD_BLOCK;
  if (room > 0 && static_cast<size_t>(room) < size) size = static_cast<size_t>(room);
  uint32_t began = port_clock_ms();
  size_t taken = net_->write(data, size);
  measure(began);
  if (taken > 0) return static_cast<int>(taken < size ? taken : size);
  broken_ = true;
  return PORT_WOULD_BLOCK;
}

/* Whether it is connected is asked first: what came before it was closed is there by then. */
int FairlockClient::receiveSome(uint8_t *data, size_t size)
{
  bool connected = net_->connected() != 0;
  if (net_->available() > 0) {
    int got = net_->read(data, size < 512 ? size : 512);
    if (got > 0) return got;
  }
  return connected && !broken_ ? PORT_WOULD_BLOCK : PORT_CLOSED;
}

/* Blocks for as long as the Client does, not for as long as it is asked to. */
int FairlockClient::transportConnect(void *context, uint32_t timeout_ms)
{
  return static_cast<FairlockClient *>(context)->connectNow(timeout_ms);
}

int FairlockClient::transportSend(void *context, const void *data, size_t size)
{
  return static_cast<FairlockClient *>(context)->sendSome(static_cast<const uint8_t *>(data), size);
}

int FairlockClient::transportReceive(void *context, void *data, size_t size, uint32_t timeout_ms)
{
  FairlockClient *self = static_cast<FairlockClient *>(context);
  uint32_t began = port_clock_ms();
  if (self->full_ && timeout_ms > BLOCKED_MS) timeout_ms = BLOCKED_MS;
  for (;;) {
    int got = self->receiveSome(static_cast<uint8_t *>(data), size);
    if (got != PORT_WOULD_BLOCK || port_clock_ms() - began >= timeout_ms) return got;
    delay(1);
  }
}

void FairlockClient::transportClose(void *context)
{
  FairlockClient *self = static_cast<FairlockClient *>(context);
  uint32_t began = port_clock_ms();
  self->net_->stop();
  self->measure(began);
}

/* The client */

FairlockClient::FairlockClient()
    : config(), net_(nullptr), host_(nullptr), address_(), port_(0), status_(FAIRLOCK_INVALID),
      blocks_ms_(BLOCKS_MS), begun_(false), inside_(false), lost_(false), tells_room_(false),
      full_(false), broken_(false), transport_(), client_()
{
}

FairlockClient::~FairlockClient()
{
  end();
}

bool FairlockClient::begin(Client &net, const char *host, uint16_t port)
{
  if (begun_) return false;
  host_ = host;
  return beginOver(net, port);
}

bool FairlockClient::begin(Client &net, IPAddress at, uint16_t port)
{
  if (begun_) return false;
  host_ = nullptr;
  address_ = at;
  return beginOver(net, port);
}

bool FairlockClient::beginOver(Client &net, uint16_t port)
{
  struct port_transport transport = {};
  transport.connect = transportConnect;
  transport.send = transportSend;
  transport.recv = transportReceive;
  transport.close = transportClose;
  transport.context = this;
  net_ = &net;
  port_ = port;
  tells_room_ = false;
  return begin(transport);
}

bool FairlockClient::begin(const struct port_transport &transport)
{
  if (begun_) return false;
  transport_ = transport;
  config.receive_buffer = received_;
  config.receive_size = sizeof received_;
  config.send_buffer = sent_;
  config.send_size = sizeof sent_;
  config.lost = onLost;
  config.lost_context = this;
  config.ended = onEnded;
  config.ended_context = this;
  status_ = fairlock_client_init(&client_, &config, &transport_);
  if (status_ != FAIRLOCK_OK) return false;
  for (FairlockHandle *each = FairlockHandle::first_; each != nullptr; each = each->next_)
    if (&each->client_ == this) each->attach();
  begun_ = true;
  return true;
}

void FairlockClient::end()
{
  if (!enter()) return;
  fairlock_client_deinit(&client_);
  for (FairlockHandle *each = FairlockHandle::first_; each != nullptr; each = each->next_)
    if (&each->client_ == this) each->detach();
  leave(FAIRLOCK_OK);
  begun_ = false;
}

/* True if something can be begun. A callback that is called meanwhile can then begin nothing. */
bool FairlockClient::enter()
{
  if (!begun_ || inside_) return false;
  inside_ = true;
  lost_ = false;
  return true;
}

int FairlockClient::leave(int status)
{
  inside_ = false;
  return status;
}

/* Tells the sketch what has ended. A callback may make and destroy handles, so it looks again. */
bool FairlockClient::deliver()
{
  bool told = false;
  FairlockHandle *each = FairlockHandle::first_;
  while (each != nullptr) {
    if (&each->client_ == this && each->ended_) {
      told = true;
      each->tell();
      each = FairlockHandle::first_;
    } else {
      each = each->next_;
    }
  }
  return told;
}

uint32_t FairlockClient::poll()
{
  if (!enter()) return BLOCKED_MS;
  uint32_t due = fairlock_poll(&client_, 0);
  leave(FAIRLOCK_OK);
  return deliver() ? 0 : due; /* the sketch may have begun something */
}

bool FairlockClient::connect()
{
  if (!enter()) return false;
  status_ = leave(fairlock_connect(&client_));
  return status_ == FAIRLOCK_OK;
}

void FairlockClient::blocksFor(uint32_t ms)
{
  blocks_ms_ = ms;
}

uint32_t FairlockClient::blocksFor() const
{
  return blocks_ms_;
}

int FairlockClient::status() const
{
  return status_;
}

const char *FairlockClient::statusText() const
{
  return fairlock_status_text(status_);
}

int FairlockClient::error()
{
  return begun_ ? fairlock_server_status(&client_) : FAIRLOCK_INVALID;
}

const char *FairlockClient::errorText()
{
  return fairlock_status_text(error());
}

struct fairlock_client *FairlockClient::native()
{
  return &client_;
}

struct port_transport *FairlockClient::transport()
{
  return &transport_;
}

/* Called from inside of the library: what moves has to stop now, before anything that may block. */
void FairlockClient::onLost(struct fairlock *handle, const struct fairlock_loss *, void *)
{
  FairlockHandle *lost = FairlockHandle::find(handle);
  if (lost == nullptr) return;
  lost->status_ = FAIRLOCK_LOST;
  lost->client_.lost_ = true;
  if (lost->lost_ != nullptr) lost->lost_(*lost);
}

void FairlockClient::onEnded(struct fairlock *handle, const struct fairlock_end *end, void *)
{
  FairlockHandle *ended = FairlockHandle::find(handle);
  if (ended == nullptr) return;
  ended->status_ = end->status;
  ended->ended_ = ended->doing_ == FairlockHandle::Acquiring;
  ended->doing_ = FairlockHandle::Resting;
}

/* Handles */

FairlockHandle *FairlockHandle::first_;

FairlockHandle::FairlockHandle(FairlockClient &client, const char *name, struct fairlock *handle,
                               int (*attacher)(FairlockClient &, FairlockHandle &))
    : client_(client), name_(name), next_(first_), handle_(handle), attach_(attacher),
      granted_(nullptr), failed_(nullptr), lost_(nullptr), lease_ms_(FAIRLOCK_RENEW),
      status_(FAIRLOCK_INVALID), attached_(false), ended_(false), doing_(Resting)
{
  first_ = this;
}

FairlockHandle::~FairlockHandle()
{
  FairlockHandle **link = &first_;
  while (*link != this)
    link = &(*link)->next_;
  *link = next_;
}

FairlockHandle *FairlockHandle::find(const struct fairlock *handle)
{
  FairlockHandle *each = first_;
  while (each != nullptr && each->handle_ != handle)
    each = each->next_;
  return each;
}

void FairlockHandle::attach()
{
  status_ = attach_(client_, *this);
  attached_ = status_ == FAIRLOCK_OK;
}

/* A handle that is made after begin(). Its memory has to be there first. */
void FairlockHandle::attachLate()
{
  if (client_.begun_) attach();
}

/* With the end of the client, or of the handle. */
void FairlockHandle::detach()
{
  attached_ = false;
  ended_ = false;
  doing_ = Resting;
  status_ = FAIRLOCK_INVALID;
}

/* True if something can be begun; then client_.leave() follows. */
bool FairlockHandle::ready()
{
  if (!attached_) return false;
  if (client_.enter()) return true;
  status_ = FAIRLOCK_IN_PROGRESS;
  return false;
}

bool FairlockHandle::acquire(uint32_t wait_ms)
{
  if (!ready()) return false;
  status_ = client_.leave(fairlock_acquire(handle_, wait_ms, lease_ms_));
  return status_ == FAIRLOCK_OK;
}

bool FairlockHandle::tryAcquire()
{
  return acquire(0);
}

bool FairlockHandle::release()
{
  if (!ready()) return false;
  status_ = client_.leave(fairlock_release(handle_));
  return status_ == FAIRLOCK_OK;
}

/* fairlock_start_...() has returned this. onEnded() may have been called by then. */
bool FairlockHandle::began(int status)
{
  client_.leave(status);
  if (status == FAIRLOCK_PENDING && doing_ == Resting) return true;
  status_ = status;
  if (status != FAIRLOCK_PENDING) doing_ = Resting;
  return status == FAIRLOCK_PENDING;
}

bool FairlockHandle::startAcquire(uint32_t wait_ms)
{
  if (pending() || !ready()) return false;
  doing_ = Acquiring;
  return began(fairlock_start_acquire(handle_, wait_ms, lease_ms_));
}

bool FairlockHandle::startRelease()
{
  if (pending() || !ready()) return false;
  doing_ = Releasing;
  return began(fairlock_start_release(handle_));
}

bool FairlockHandle::pending()
{
  return doing_ != Resting;
}

bool FairlockHandle::cancel()
{
  if (!ready()) return false;
  return client_.leave(fairlock_cancel(handle_)) == FAIRLOCK_OK;
}

/* The hold may have ended again before poll() has come to this. */
void FairlockHandle::tell()
{
  bool granted = status_ == FAIRLOCK_OK && held();
  FairlockCallback function = granted ? granted_ : failed_;
  ended_ = false;
  if (status_ == FAIRLOCK_OK && !granted) status_ = FAIRLOCK_LOST;
  if (function != nullptr) function(*this);
}

uint32_t FairlockHandle::remaining()
{
  return attached_ ? fairlock_remaining_ms(handle_) : 0;
}

bool FairlockHandle::held()
{
  return remaining() > 0;
}

uint64_t FairlockHandle::token()
{
  return attached_ ? fairlock_token(handle_) : 0;
}

size_t FairlockHandle::printToken(Print &to)
{
  char digits[21];
  char *first = digits + sizeof digits - 1;
  uint64_t rest = token();
  *first = 0;
  do {
    *--first = static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest > 0);
  return to.print(first);
}

int FairlockHandle::status()
{
  return status_;
}

const char *FairlockHandle::statusText()
{
  return fairlock_status_text(status_);
}

void FairlockHandle::fixedLease(uint32_t lease_ms)
{
  lease_ms_ = lease_ms;
}

void FairlockHandle::onGranted(FairlockCallback function)
{
  granted_ = function;
}

void FairlockHandle::onFailed(FairlockCallback function)
{
  failed_ = function;
}

void FairlockHandle::onLost(FairlockCallback function)
{
  lost_ = function;
}

const char *FairlockHandle::name() const
{
  return name_;
}

struct fairlock *FairlockHandle::native()
{
  return handle_;
}

/* Takes the handle out of its client, however long that takes: its memory is used until then. */
void FairlockHandle::takeOut()
{
  if (!attached_) return;
  (void)fairlock_cancel(handle_);
  while (fairlock_hold_count(handle_) > 0 && fairlock_release(handle_) == FAIRLOCK_OK)
    continue;
  while (fairlock_deinit(handle_) != FAIRLOCK_OK)
    (void)fairlock_poll(&client_.client_, BLOCKED_MS);
  detach();
}

FairlockMutex::FairlockMutex(FairlockClient &client, const char *name)
    : FairlockHandle(client, name, &memory_, attachTo), memory_()
{
  attachLate();
}

FairlockMutex::~FairlockMutex()
{
  takeOut();
}

int FairlockMutex::attachTo(FairlockClient &client, FairlockHandle &self)
{
  return fairlock_init(self.native(), client.native(), self.name());
}

FairlockShared::FairlockShared(FairlockClient &client, const char *name, uint16_t limit)
    : FairlockHandle(client, name, &memory_.handle, attachTo), limit_(limit), memory_()
{
  attachLate();
}

FairlockShared::~FairlockShared()
{
  takeOut();
}

int FairlockShared::attachTo(FairlockClient &client, FairlockHandle &handle)
{
  FairlockShared &self = static_cast<FairlockShared &>(handle);
  return fairlock_init_shared(&self.memory_, &client.client_, self.name_, self.limit_);
}
