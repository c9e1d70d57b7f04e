#include "kernels/emulator/fabric.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "base/check.h"

namespace fettle::kernels::emulator {
namespace {

constexpr int kTurnMilliseconds = 5;  // between two checks of given_up_

sockaddr_in on_loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int make_socket() {
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(made >= 0, "a socket for an emulated GPU");
  return made;
}

void send_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// Listening sockets of this process by port, until rank 0 takes them.
std::map<std::uint16_t, int>& open_places() {
  static std::map<std::uint16_t, int> places;
  return places;
}
std::mutex& places_mutex() {
  static std::mutex mutex;
  return mutex;
}

int take_place(std::uint16_t port) {
  const std::scoped_lock lock(places_mutex());
  const auto found = open_places().find(port);
  CHECK(found != open_places().end(), "rank 0 is in the process that made the id");
  const int listener = found->second;
  open_places().erase(found);
  return listener;
}

struct Hello {
  std::uint64_t token;
  std::int64_t rank;
};

}  // namespace

Rendezvous open_rendezvous() {
  const int listener = make_socket();
  sockaddr_in address = on_loopback(0);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  CHECK(::bind(listener, any, size) == 0 && ::listen(listener, SOMAXCONN) == 0 &&
            ::getsockname(listener, any, &size) == 0,
        "a meeting place for emulated GPUs");
  std::random_device entropy;
  const Rendezvous place{ntohs(address.sin_port),
                         (std::uint64_t{entropy()} << 32) | std::uint64_t{entropy()}};
  const std::scoped_lock lock(places_mutex());
  open_places()[place.port] = listener;
  return place;
}

Fabric::Fabric(const Rendezvous& place, int members, int rank)
    : place_(place),
      members_(members),
      rank_(rank),
      sockets_(static_cast<std::size_t>(members), -1),
      thread_([this] { work(); }) {}

Fabric::~Fabric() {
  give_up();
  thread_.join();
  for (const int socket : sockets_) {
    if (socket >= 0) ::close(socket);
  }
}

void Fabric::give_up() {
  given_up_ = true;
  const std::scoped_lock lock(mutex_);
  changed_.notify_all();
}

std::shared_ptr<Fabric::Task> Fabric::ask(std::function<bool()> run) {
  auto task = std::make_shared<Task>();
  task->run = std::move(run);
  const std::scoped_lock lock(mutex_);
  if (given_up_) {
    task->done = true;
  } else {
    tasks_.push_back(task);
    changed_.notify_all();
  }
  return task;
}

void Fabric::work() {
  std::unique_lock lock(mutex_);
  while (!given_up_) {
    changed_.wait(lock, [this] { return given_up_ || !tasks_.empty(); });
    if (given_up_) break;
    const std::shared_ptr<Task> task = tasks_.front();
    lock.unlock();
    const bool worked = task->run();
    lock.lock();
    if (!worked) {  // a begun task ends only when it is given up
      broken_ = !given_up_;
      changed_.wait(lock, [this] { return given_up_.load(); });
    }
    tasks_.pop_front();
    task->done = true;
  }
  for (const auto& task : tasks_) task->done = true;
}

// ---- Meeting -----------------------------------------------------------------------------------

std::shared_ptr<Fabric::Task> Fabric::join() {
  return ask([this] { return rank_ == 0 ? accept_members() : connect_all(); });
}

bool Fabric::accept_members() {
  const int listener = take_place(place_.port);
  for (int missing = members_ - 1; missing > 0;) {
    if (!wait_for(listener, POLLIN)) break;
    const int came = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (came < 0) continue;
    sockets_[0] = came;  // receive() reads from here until its rank is known
    Hello hello{};
    const bool heard = receive(0, std::as_writable_bytes(std::span(&hello, 1)));
    sockets_[0] = -1;
    if (!heard || hello.token != place_.token) {
      ::close(came);
      continue;
    }
    send_at_once(came);
    sockets_[static_cast<std::size_t>(hello.rank)] = came;
    --missing;
  }
  ::close(listener);
  if (given_up_) return false;
  return reduce({}, nullptr);  // all members have arrived
}

bool Fabric::connect_all() {
  const sockaddr_in address = on_loopback(place_.port);
  sockets_[0] = make_socket();
  if (::connect(sockets_[0], reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return false;
  }
  send_at_once(sockets_[0]);
  const Hello hello{place_.token, rank_};
  return send(0, std::as_bytes(std::span(&hello, 1))) && reduce({}, nullptr);
}

// ---- Collectives -------------------------------------------------------------------------------

std::shared_ptr<Fabric::Task> Fabric::sum(std::span<const float> from, float* to) {
  return ask([this, from, to] { return reduce(from, to); });
}

std::shared_ptr<Fabric::Task> Fabric::broadcast(std::span<const float> from, float* to, int root) {
  return ask([this, from, to, root] { return forward(from, to, root); });
}

std::shared_ptr<Fabric::Task> Fabric::leave() {
  return ask([] { return true; });
}

bool Fabric::reduce(std::span<const float> from, float* to) {
  const std::span<float> result(to, from.size());
  if (rank_ != 0) return say(0, from) && hear(0, result);
  std::vector<float> total(from.begin(), from.end());
  std::vector<float> theirs(from.size());
  for (int member = 1; member < members_; ++member) {
    if (!hear(member, theirs)) return false;
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += theirs[i];
  }
  for (int member = 1; member < members_; ++member) {
    if (!say(member, total)) return false;
  }
  std::ranges::copy(total, result.begin());
  return true;
}

bool Fabric::forward(std::span<const float> from, float* to, int root) {
  std::vector<float> values(from.begin(), from.end());
  if (rank_ == root && root != 0 && !say(0, values)) return false;
  if (rank_ == 0 && root != 0 && !hear(root, values)) return false;
  if (rank_ != root && rank_ != 0 && !hear(0, values)) return false;
  for (int member = 1; rank_ == 0 && member < members_; ++member) {
    if (member != root && !say(member, values)) return false;
  }
  if (to != nullptr) std::ranges::copy(values, to);
  return true;
}

// ---- Bytes -------------------------------------------------------------------------------------

bool Fabric::say(int to, std::span<const float> values) {
  const auto size = static_cast<std::uint64_t>(values.size());
  return send(to, std::as_bytes(std::span(&size, 1))) && send(to, std::as_bytes(values));
}

bool Fabric::hear(int from, std::span<float> values) {
  std::uint64_t size = 0;
  if (!receive(from, std::as_writable_bytes(std::span(&size, 1)))) return false;
  CHECK(size == values.size(), "emulated NCCL: rank " + std::to_string(from) + " brought " +
                                   std::to_string(size) + " values to a collective of " +
                                   std::to_string(values.size()) + ": a GPU would hang here");
  return receive(from, std::as_writable_bytes(values));
}

bool Fabric::send(int to, std::span<const std::byte> bytes) {
  const int socket = sockets_[static_cast<std::size_t>(to)];
  while (!bytes.empty()) {
    if (!wait_for(socket, POLLOUT)) return false;
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Fabric::receive(int from, std::span<std::byte> bytes) {
  const int socket = sockets_[static_cast<std::size_t>(from)];
  while (!bytes.empty()) {
    if (!wait_for(socket, POLLIN)) return false;
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

bool Fabric::wait_for(int socket, short events) const {
  pollfd polled{socket, events, 0};
  while (!given_up_) {
    if (::poll(&polled, 1, kTurnMilliseconds) > 0) return true;
  }
  return false;
}

}  // namespace fettle::kernels::emulator
