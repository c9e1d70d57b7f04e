#include "machine/measure.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"

namespace fettle::machine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTime = std::chrono::milliseconds(200);
constexpr std::size_t kMemoryBlock = std::size_t{64} << 20;
constexpr std::size_t kFileBlock = std::size_t{4} << 20;
constexpr std::size_t kFileBytes = std::size_t{256} << 20;
constexpr std::size_t kSocketBlock = std::size_t{1} << 20;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Opens an unnamed file if the file system supports that, else one that is unlinked at once.
File open_scratch(const std::string& directory) {
  const int unnamed = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (unnamed >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return File(unnamed);
  std::string name = directory + "/.fettle-disk-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return File(named);
}

// Calls `step` until the time is up or it moves nothing; returns the bytes moved.
template <class Step>
std::size_t repeat(std::size_t most, Step step) {
  const auto until = Clock::now() + kTime;
  std::size_t total = 0;
  while (total < most && Clock::now() < until) {
    const ssize_t moved = step();
    if (moved <= 0) break;
    total += static_cast<std::size_t>(moved);
  }
  return total;
}

Error failed(const std::string& what) { return io_error(what + ": " + system_message(errno)); }

// Connects this process with itself.
Result<std::pair<File, File>> connect_loopback() {
  const File listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (listener.fd() < 0 || ::bind(listener.fd(), any, size) != 0 ||
      ::getsockname(listener.fd(), any, &size) != 0 || ::listen(listener.fd(), 1) != 0) {
    return failed("cannot listen on the loopback");
  }
  File client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (client.fd() < 0 || ::connect(client.fd(), any, size) != 0) {
    return failed("cannot connect over the loopback");
  }
  File server(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (server.fd() < 0) return failed("cannot connect over the loopback");
  return std::pair(std::move(client), std::move(server));
}

}  // namespace

double measure_memory(int threads) {
  std::vector<std::vector<char>> from(static_cast<std::size_t>(threads));
  auto to = from;
  std::vector<double> rates(from.size());
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < from.size(); ++i) {
    workers.emplace_back([&, i] {
      from[i].assign(kMemoryBlock, 1);  // touched, so that the pages exist
      to[i].assign(kMemoryBlock, 2);
      const auto begin = Clock::now();
      const std::size_t copied = repeat(SIZE_MAX, [&] {
        std::memcpy(to[i].data(), from[i].data(), kMemoryBlock);
        return static_cast<ssize_t>(kMemoryBlock);
      });
      rates[i] = 2 * static_cast<double>(copied) / seconds_since(begin);  // counts reads and writes
    });
  }
  workers.clear();  // joins the threads
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

Result<DiskRate> measure_disk(const std::string& directory) {
  const File file = open_scratch(directory);
  if (file.fd() < 0) return failed("cannot write to " + directory);
  std::vector<char> block(kFileBlock, 1);
  DiskRate rate;
  auto begin = Clock::now();
  const std::size_t written =
      repeat(kFileBytes, [&] { return ::write(file.fd(), block.data(), block.size()); });
  // The time includes flushing the bytes to disk.
  if (written == 0 || ::fdatasync(file.fd()) != 0) return failed("cannot write to " + directory);
  rate.write = static_cast<double>(written) / seconds_since(begin);

  // Drops the page cache, so that reads come from the disk, if the file system obeys.
  (void)::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  (void)::lseek(file.fd(), 0, SEEK_SET);
  begin = Clock::now();
  const std::size_t seen =
      repeat(written, [&] { return ::read(file.fd(), block.data(), block.size()); });
  if (seen == 0) return failed("cannot read from " + directory);
  rate.read = static_cast<double>(seen) / seconds_since(begin);
  return rate;
}

Result<double> measure_loopback() {
  FETTLE_ASSIGN(const auto ends, connect_loopback());
  const auto& [client, server] = ends;
  std::jthread sender([fd = client.fd()] {
    const std::vector<char> block(kSocketBlock, 1);
    // Runs until kTime is up.
    (void)repeat(/*most=*/SIZE_MAX,
                 [&] { return ::send(fd, block.data(), block.size(), MSG_NOSIGNAL); });
    ::shutdown(fd, SHUT_WR);  // ends the loop of recv() below
  });
  std::vector<char> block(kSocketBlock);
  const auto begin = Clock::now();
  std::size_t total = 0;
  for (ssize_t got = 0; (got = ::recv(server.fd(), block.data(), block.size(), 0)) > 0;) {
    total += static_cast<std::size_t>(got);
  }
  return static_cast<double>(total) / seconds_since(begin);
}

}  // namespace fettle::machine
