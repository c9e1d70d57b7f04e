#include "runtime/local/run/workers.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>

#include "base/file.h"

namespace fettle::local {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kTokenWords = 4;  // words of 32 bits

// The port is free until worker 0 takes it. If another process is faster, the run fails and is
// retried like any other.
Result<std::string> free_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool found = fd >= 0 && ::bind(fd, any, size) == 0 && ::getsockname(fd, any, &size) == 0;
  const int code = errno;
  if (fd >= 0) ::close(fd);
  if (!found) return io_error("no port for its workers to meet: " + system_message(code));
  return std::to_string(ntohs(address.sin_port));
}

std::string make_token() {
  std::random_device entropy;
  std::string token;
  for (int i = 0; i < kTokenWords; ++i) token += std::to_string(entropy()) + ".";
  return token;
}

}  // namespace

Result<std::vector<Variables>> worker_variables(std::int64_t world_size, std::int64_t most) {
  FETTLE_ASSIGN(const std::string port, free_port());
  const std::string token = make_token();
  const std::string size = std::to_string(world_size);
  std::vector<Variables> all;
  for (std::int64_t rank = 0; rank < most; ++rank) {
    const std::string number = std::to_string(rank);
    all.push_back({{"MASTER_ADDR", kLoopback},
                   {"MASTER_PORT", port},
                   {"RANK", number},
                   {"WORLD_SIZE", size},
                   {"LOCAL_RANK", "0"},  // each worker counts as a node of its own
                   {"PET_MASTER_ADDR", kLoopback},
                   {"PET_MASTER_PORT", port},
                   {"PET_NODE_RANK", number},
                   {"PET_NNODES", size},
                   {"FETTLE_RENDEZVOUS_TOKEN", token}});
  }
  return all;
}

}  // namespace fettle::local
