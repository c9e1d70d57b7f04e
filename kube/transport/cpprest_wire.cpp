// Defects of cpprestsdk, and their workarounds:
//
// - It sends a request a second time when a connection from its pool breaks before the answer.
//   Bodies are therefore seekable, and all callers keep writes safe to repeat (kube/client/http.h).
// - Its timeout is one of inactivity. It is disabled; the caller's thread measures the time, and
//   cancels.
// - Cancelling closes the socket while other threads use it, which sometimes crashes under TLS. The
//   library therefore gets one thread, and cancellations are posted to it like everything else, so
//   operations on a connection never overlap. It also means that a finished call's connection is
//   back in the pool before its caller continues.
// - It buffers bodies without bound. ReplyBuffer passes each block to the waiting caller, and the
//   library continues to read only when the caller has consumed it. (One chunk of a chunked body is
//   always buffered whole; API servers write 32 KiB at most.)
// - Closing a stream buffer after an error deadlocks: the library's thread waits for itself.
//   ReplyBuffer closes without waiting.
// - A failed task whose exception is not observed terminates the process. Each task ends in a
//   continuation that observes it.
// - It would follow redirects with the token, and send line breaks inside headers. Both are
//   prevented.
// - A name lookup cannot be cancelled. A caller does not wait for it beyond the deadline; the state
//   that the lookup still needs is shared with it and freed when it ends.
// - https://[::1] does not resolve, and the name in the certificate can only be chosen by the Host
//   header.
#include "kube/transport/cpprest_wire.h"

#include <arpa/inet.h>
#include <cpprest/http_client.h>
#include <openssl/crypto.h>
#include <pplx/threadpool.h>

#include <array>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "kube/transport/http_headers.h"

namespace fettle::kube {
namespace {

using web::http::http_request;
using web::http::http_response;
using web::http::client::http_client;
using web::http::client::http_client_config;

// Time for which a caller that gives up waits until the library releases the connection.
constexpr std::chrono::milliseconds kReleaseTimeout{250};
// Time for which the destructor waits for exchanges that were given up.
constexpr std::chrono::seconds kMaxShutdown{5};
// The library's own time-out; Fettle's are shorter.
constexpr std::chrono::hours kNever{24 * 365};

auto& pool_service() { return crossplat::threadpool::shared_instance().service(); }

void start_pool() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      crossplat::threadpool::initialize_with_threads(1);
    } catch (const std::exception&) {
      // Another user of the library in this process was first. Everything works on its threads.
    }
  });
}

// The number of exchanges that the library has not released.
struct Pending {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;

  void add(int change) {
    const std::lock_guard lock(mutex);
    count += change;
    changed.notify_all();
  }
};

struct Head {
  int status = 0;
  std::optional<std::chrono::seconds> retry_after;
  std::vector<std::string> warnings;
  std::int64_t date_ms = 0;
};

Head head_of(const http_response& response) {
  Head head;
  head.status = response.status_code();
  const auto& headers = response.headers();
  if (const auto found = headers.find("Retry-After"); found != headers.end()) {
    head.retry_after = read_retry_after(found->second);
  }
  if (const auto found = headers.find("Warning"); found != headers.end()) {
    head.warnings = read_warnings(found->second);
  }
  if (const auto found = headers.find("Date"); found != headers.end()) {
    head.date_ms = read_date(found->second).value_or(0);
  }
  return head;
}

// One request and its answer, shared by the library's thread and the caller's.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  enum class Outcome { kEnded, kTimedOut, kStopped, kEnough };

  explicit Exchange(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}

  void start(http_client& client, http_request request);
  // On the caller's thread: blocks until the answer has ended or `waiting` ends it.
  Outcome receive(const Waiting& waiting);
  // On the caller's thread, last: cancels an exchange that has not ended.
  void leave();

  // After receive() has returned kEnded: the error, or "".
  const std::string& error() const { return error_; }
  std::optional<Head> head();
  bool maybe_sent();

  // On the library's thread: passes a block of the body, valid until the task is done.
  pplx::task<std::size_t> put(const std::uint8_t* bytes, std::size_t size);

 private:
  void note_sent();
  void note_head(Head head);
  void note_end(std::string error);
  void watch_body(const http_response& response);

  const std::shared_ptr<Pending> pending_;
  const pplx::cancellation_token_source cancel_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool sent_ = false;
  bool ended_ = false;
  bool left_ = false;
  std::string error_;
  std::optional<Head> head_;
  std::optional<std::string_view> block_;
  pplx::task_completion_event<std::size_t> taken_;  // of block_
};

// The stream buffer to which the library writes the body of an answer. It only calls _putn.
class ReplyBuffer final : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  explicit ReplyBuffer(std::shared_ptr<Exchange> exchange)
      : streambuf_state_manager(std::ios_base::out), exchange_(std::move(exchange)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(std::size_t, std::ios_base::openmode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return nowhere(); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return nowhere(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return nowhere();
  }
  bool acquire(uint8_t*&, std::size_t&) override { return false; }
  void release(uint8_t*, std::size_t) override {}
  pplx::task<void> close(std::ios_base::openmode) override {
    m_stream_can_write = false;
    return pplx::task_from_result();
  }
  pplx::task<void> close(std::ios_base::openmode mode, std::exception_ptr exception) override {
    if (m_currentException == nullptr) m_currentException = exception;
    return close(mode);
  }

 protected:
  pplx::task<std::size_t> _putn(const uint8_t* bytes, std::size_t size) override {
    return exchange_->put(bytes, size);
  }
  pplx::task<int_type> _putc(uint8_t) override { return end(); }
  pplx::task<int_type> _bumpc() override { return end(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return end(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return end(); }
  pplx::task<int_type> _ungetc() override { return end(); }
  pplx::task<std::size_t> _getn(uint8_t*, std::size_t) override {
    return pplx::task_from_result<std::size_t>(0);
  }
  std::size_t _scopy(uint8_t*, std::size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  uint8_t* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}

 private:
  static pos_type nowhere() { return static_cast<pos_type>(traits::eof()); }
  static pplx::task<int_type> end() { return pplx::task_from_result<int_type>(traits::eof()); }

  const std::shared_ptr<Exchange> exchange_;
};

void Exchange::start(http_client& client, http_request request) {
  pending_->add(1);  // note_end() takes it off
  const auto self = shared_from_this();
  try {
    const auto buffer = std::make_shared<ReplyBuffer>(self);
    request.set_response_stream(
        concurrency::streams::ostream(concurrency::streams::streambuf<uint8_t>(buffer)));
    request.set_progress_handler([self](web::http::message_direction::direction direction, auto) {
      if (direction == web::http::message_direction::upload) self->note_sent();
    });
    client.request(request, cancel_.get_token())
        .then([self](const pplx::task<http_response>& task) {
          try {
            const http_response response = task.get();
            self->note_head(head_of(response));
            self->watch_body(response);
          } catch (const std::exception& exception) {
            self->note_end(exception.what());
          }
        });
  } catch (const std::exception& exception) {
    note_end(exception.what());
  }
}

void Exchange::watch_body(const http_response& response) {
  response.content_ready().then([self = shared_from_this()](const pplx::task<http_response>& task) {
    try {
      task.get();
      self->note_end("");
    } catch (const std::exception& exception) {
      self->note_end(exception.what());
    }
  });
}

void Exchange::note_sent() {
  const std::lock_guard lock(mutex_);
  sent_ = true;
}

void Exchange::note_head(Head head) {
  const std::lock_guard lock(mutex_);
  sent_ = true;
  head_ = std::move(head);
  changed_.notify_all();
}

void Exchange::note_end(std::string error) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    error_ = std::move(error);
    changed_.notify_all();
  }
  pending_->add(-1);
}

pplx::task<std::size_t> Exchange::put(const std::uint8_t* bytes, std::size_t size) {
  const std::lock_guard lock(mutex_);
  if (left_) {
    return pplx::task_from_exception<std::size_t>(std::runtime_error("the caller has left"));
  }
  block_ = std::string_view(reinterpret_cast<const char*>(bytes), size);
  taken_ = {};
  changed_.notify_all();
  return pplx::create_task(taken_);
}

Exchange::Outcome Exchange::receive(const Waiting& waiting) {
  std::unique_lock lock(mutex_);
  for (;;) {
    // A block may arrive a moment before the library reports the head.
    const bool ready = changed_.wait_until(lock, waiting.stop, waiting.until(),
                                           [this] { return ended_ || (head_ && block_); });
    if (waiting.stop.stop_requested()) return Outcome::kStopped;
    if (!ready) return Outcome::kTimedOut;
    if (!block_) return Outcome::kEnded;
    const std::string_view block = *block_;
    lock.unlock();
    // A head exists even if ended_ woke this thread: an answer with a body ends only after
    // note_head(). No mutex is needed: a head is written once, and the block stays until it is
    // taken.
    if (!waiting.on_block(head_->status, block)) return Outcome::kEnough;
    lock.lock();
    block_.reset();
    const auto taken = std::move(taken_);
    lock.unlock();
    taken.set(block.size());  // the library may call put() at once, which takes the mutex
    lock.lock();
  }
}

void Exchange::leave() {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  left_ = true;
  if (block_) {
    block_.reset();
    const auto taken = std::move(taken_);
    lock.unlock();  // as in receive(): the library may go on at once
    taken.set_exception(std::runtime_error("the caller has left"));
    lock.lock();
  }
  pool_service().post([cancel = cancel_] {
    try {
      cancel.cancel();
    } catch (const std::exception&) {
      // The connection ends with its time-out, or with the server.
    }
  });
  changed_.wait_for(lock, kReleaseTimeout, [this] { return ended_; });
}

std::optional<Head> Exchange::head() {
  const std::lock_guard lock(mutex_);
  return head_;
}

bool Exchange::maybe_sent() {
  const std::lock_guard lock(mutex_);
  return sent_ || !ended_;
}

// Rewords errors of the library that show the cause.
std::string explain(const std::string& error) {
  struct Words {
    const char* theirs;
    const char* ours;
  };
  constexpr std::array<Words, 4> kWords{{
      {"Failed to connect to any resolved endpoint", "cannot connect"},
      {"Error resolving address", "the host name cannot be resolved"},
      {"Failed to resolve address", "the host name cannot be resolved"},
      {"Error in SSL handshake", "the TLS handshake failed"},
  }};
  for (const Words& words : kWords) {
    if (error.find(words.theirs) != std::string::npos) return words.ours;
  }
  return "the connection broke: " + error;
}

class CpprestWire final : public Wire {
 public:
  CpprestWire(std::string server, std::string user_agent, std::shared_ptr<Tls> tls)
      : server_(std::move(server)), user_agent_(std::move(user_agent)), tls_(std::move(tls)) {}
  ~CpprestWire() override;

  HttpResult exchange(Purpose purpose, const HttpRequest& request, const Credential& credential,
                      const Waiting& waiting) override;

 private:
  // A client is a pool of connections, and a connection keeps one certificate for its life.
  struct Clients {
    http_client calls;
    http_client streams;
    Credential credential;
  };

  http_request make_request(const HttpRequest& request, const Credential& credential) const;
  std::shared_ptr<Clients> clients_for(const Credential& credential);
  http_client_config client_config(const Credential& credential) const;
  HttpFailure failure(Exchange& exchange, const std::string& why) const;

  const std::string server_;
  const std::string user_agent_;
  const std::shared_ptr<Tls> tls_;
  const std::shared_ptr<Pending> pending_ = std::make_shared<Pending>();
  std::mutex mutex_;
  std::shared_ptr<Clients> clients_;
};

CpprestWire::~CpprestWire() {
  {
    std::unique_lock lock(pending_->mutex);
    pending_->changed.wait_for(lock, kMaxShutdown, [this] { return pending_->count == 0; });
  }
  // The present work of the library's thread may still hold a connection. The thread also ends too
  // late to release OpenSSL's data of each thread.
  const auto passed = std::make_shared<std::promise<void>>();
  pool_service().post([passed] {
    OPENSSL_thread_stop();
    passed->set_value();
  });
  passed->get_future().wait_for(kMaxShutdown);
}

HttpResult CpprestWire::exchange(Purpose purpose, const HttpRequest& request,
                                 const Credential& credential, const Waiting& waiting) {
  // Ends the exchange even if `on_block` throws.
  struct Leaving {
    Exchange& exchange;
    ~Leaving() { exchange.leave(); }
  };
  const TimePoint start = std::chrono::steady_clock::now();
  const auto exchange = std::make_shared<Exchange>(pending_);
  try {
    const std::shared_ptr<Clients> clients = clients_for(credential);
    exchange->start(purpose == Purpose::kCall ? clients->calls : clients->streams,
                    make_request(request, credential));
  } catch (const std::exception& exception) {
    return HttpFailure{/*maybe_done=*/false, server_ + ": " + exception.what()};
  }
  Exchange::Outcome outcome;
  {
    const Leaving leaving{*exchange};
    outcome = exchange->receive(waiting);
  }
  if (outcome == Exchange::Outcome::kTimedOut) return failure(*exchange, waiting.timeout_text);
  if (outcome == Exchange::Outcome::kEnded && !exchange->error().empty()) {
    const std::string problem = tls_->problem_since(start);
    return failure(*exchange, explain(exchange->error()) + (problem.empty() ? "" : ": " + problem));
  }
  std::optional<Head> head = exchange->head();
  if (!head) return failure(*exchange, "stopped before the server answered");
  return HttpResponse{head->status, "", head->retry_after, std::move(head->warnings),
                      head->date_ms};
}

HttpFailure CpprestWire::failure(Exchange& exchange, const std::string& why) const {
  return {exchange.maybe_sent(), server_ + ": " + why};
}

http_request CpprestWire::make_request(const HttpRequest& request,
                                       const Credential& credential) const {
  for (const std::string* const text :
       {&request.target, &request.content_type, &credential.token}) {
    // exchange() returns it as a failure.
    if (!is_header_value(*text)) throw std::invalid_argument("a line break in a header or path");
  }
  http_request out(request.method);
  out.set_request_uri(web::uri(request.target));
  out.headers().add("Accept", "application/json, */*");
  out.headers().add("User-Agent", user_agent_);
  if (!credential.token.empty()) out.headers().add("Authorization", "Bearer " + credential.token);
  const std::string& name = tls_->config().server_name;
  if (!name.empty()) out.headers().add("Host", name);
  if (!request.body.empty()) {
    // Not a std::string: with that, the library takes one kind of stream for another.
    out.set_body(concurrency::streams::bytestream::open_istream(
                     std::vector<uint8_t>(request.body.begin(), request.body.end())),
                 request.body.size(), request.content_type);
  }
  return out;
}

std::shared_ptr<CpprestWire::Clients> CpprestWire::clients_for(const Credential& credential) {
  const std::lock_guard lock(mutex_);
  // The token may differ: it is sent with each request.
  if (clients_ == nullptr || clients_->credential.certificate != credential.certificate ||
      clients_->credential.key != credential.key) {
    const http_client_config config = client_config(credential);
    clients_ = std::make_shared<Clients>(
        Clients{http_client(server_, config), http_client(server_, config), credential});
  }
  return clients_;
}

http_client_config CpprestWire::client_config(const Credential& credential) const {
  http_client_config config;
  config.set_timeout(kNever);
  config.set_max_redirects(0);
  config.set_validate_certificates(!tls_->config().insecure);
  // RFC 6066 requires names in a handshake, not addresses.
  in_addr address{};
  const std::string host = web::uri(server_).host();
  if (tls_->config().server_name.empty() && inet_pton(AF_INET, host.c_str(), &address) == 1) {
    config.set_tlsext_sni_enabled(false);
  }
  config.set_ssl_context_callback([tls = tls_, credential](boost::asio::ssl::context& context) {
    const Status prepared = tls->prepare(context.native_handle(), credential);
    if (!prepared.ok()) throw std::runtime_error(prepared.error().message);
  });
  return config;
}

Status check_server(const std::string& server) {
  const std::string found = "found the server " + server.substr(0, 200);
  if (!is_header_value(server) || !web::uri::validate(server)) {
    return invalid(found + ", expected https://HOST:PORT");
  }
  const web::uri uri(server);
  if ((uri.scheme() != "https" && uri.scheme() != "http") || uri.host().empty() ||
      !uri.query().empty() || !uri.fragment().empty() || !uri.user_info().empty()) {
    return invalid(found + ", expected https://HOST:PORT");
  }
  if (uri.host().find(':') != std::string::npos) {
    return invalid(found +
                   ": IPv6 addresses do not work here; name the host instead, for example "
                   "in /etc/hosts, and see that its certificate is for that name");
  }
  return success();
}

}  // namespace

Result<std::unique_ptr<Wire>> make_cpprest_wire(const std::string& server,
                                                const std::string& user_agent,
                                                std::shared_ptr<Tls> tls) {
  FETTLE_TRY(check_server(server));
  if (!is_header_value(user_agent) || !is_header_value(tls->config().server_name)) {
    return invalid("a line break in the user agent or in tls-server-name");
  }
  start_pool();
  return std::unique_ptr<Wire>(std::make_unique<CpprestWire>(server, user_agent, std::move(tls)));
}

}  // namespace fettle::kube
