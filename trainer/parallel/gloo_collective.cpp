#include "trainer/parallel/gloo_collective.h"

#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fettle::trainer {
namespace {

// A message is sent in pieces of at most so many bytes, for each of which the time counts anew.
constexpr std::size_t kBucketBytes = 16 << 20;
// All have just been heard of, so this is for one that is lost meanwhile.
constexpr auto kConnectTime = std::chrono::seconds(10);

// Gloo's own ways of meeting need a store that all see; here the membership carries the addresses.
class Mesh final : public gloo::Context {
 public:
  Mesh(int my_rank, int world_size, std::shared_ptr<gloo::transport::Device> device)
      : gloo::Context(my_rank, world_size) {
    device_ = std::move(device);
  }

  // Where this worker waits for each of the others, in the order of their ranks.
  std::string open() {
    transportContext_ = device_->createContext(rank, size);
    transportContext_->setTimeout(kConnectTime);
    std::string addresses;
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      auto& pair = transportContext_->createPair(other);
      pair->setLocalRank(other);  // means something to RDMA alone
      const std::vector<char> bytes = pair->address().bytes();
      addresses.append(bytes.begin(), bytes.end());
    }
    return addresses;
  }

  // `addresses`: what open() gave at each rank.
  void connect(const std::vector<std::string>& addresses) {
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      const std::string& theirs = addresses[static_cast<std::size_t>(other)];
      const std::size_t length = theirs.size() / static_cast<std::size_t>(size - 1);
      const auto place = static_cast<std::size_t>(rank < other ? rank : rank - 1);
      const std::string mine = theirs.substr(place * length, length);
      transportContext_->getPair(other)->connect({mine.begin(), mine.end()});
    }
  }
};

class GlooCollective final : public Collective {
 public:
  GlooCollective(Membership& membership, std::chrono::milliseconds timeout)
      : membership_(membership), timeout_(timeout) {}

  Status connect() {
    std::string addresses;
    FETTLE_TRY(attempt("meeting", [&] {
      auto device = gloo::transport::tcp::CreateDevice(membership_.local_host().c_str());
      mesh_ = std::make_shared<Mesh>(static_cast<int>(rank()), static_cast<int>(world_size()),
                                     std::move(device));
      mesh_->setTimeout(timeout_);
      addresses = mesh_->open();
    }));
    const auto all = membership_.all_gather(addresses);
    if (!all.ok()) return all.error();
    return attempt("meeting", [&] { mesh_->connect(*all); });
  }

  std::int64_t world_size() const override { return membership_.world_size(); }
  std::int64_t rank() const override { return membership_.rank(); }
  Status sum(std::span<float> values) override { return sum_in_buckets(values); }
  Status sum(std::span<double> values) override { return sum_in_buckets(values); }

  Status broadcast(std::span<std::byte> bytes) override {
    ++calls_;
    const std::string name = "broadcast of " + std::to_string(bytes.size()) + " bytes";
    return in_buckets<std::byte>(bytes, [&](std::span<std::byte> bucket) {
      return attempt(name, [&] {
        gloo::BroadcastOptions options(mesh_);
        options.setOutput(reinterpret_cast<char*>(bucket.data()), bucket.size());
        options.setRoot(0);
        options.setTag(next_tag_++);
        gloo::broadcast(options);
      });
    });
  }

 private:
  template <class T>
  Status sum_in_buckets(std::span<T> values) {
    ++calls_;
    const std::string name = "sum of " + std::to_string(values.size()) + " values";
    return in_buckets<T>(values, [&](std::span<T> bucket) {
      return attempt(name, [&] {
        gloo::AllreduceOptions options(mesh_);
        options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
        options.setReduceFunction(
            static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<T>));
        options.setOutput(bucket.data(), bucket.size());
        options.setTag(next_tag_++);
        gloo::allreduce(options);
      });
    });
  }

  template <class T>
  Status in_buckets(std::span<T> all, const std::function<Status(std::span<T>)>& move) {
    constexpr std::size_t kMost = kBucketBytes / sizeof(T);
    for (std::size_t begin = 0; begin < all.size(); begin += kMost) {
      FETTLE_TRY(move(all.subspan(begin, std::min(kMost, all.size() - begin))));
    }
    return success();
  }

  // Gloo reports by exceptions. After one its connections are of no more use; that they close tells
  // the others.
  Status attempt(const std::string& name, const std::function<void()>& action) {
    if (!broken_.empty()) return lost(broken_);
    const Deadline deadline = in(timeout_);
    try {
      action();
      return success();
    } catch (const std::exception& exception) {
      const bool late = std::chrono::steady_clock::now() >= deadline;
      if (mesh_) mesh_->closeConnections();
      broken_ =
          membership_.explain_loss(name + " (collective " + std::to_string(calls_) + ")", late);
      return lost(broken_);
    }
  }

  static Error lost(std::string why) { return {ErrorCode::kUnavailable, std::move(why)}; }

  Membership& membership_;
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<Mesh> mesh_;
  std::int64_t calls_ = 0;
  std::uint32_t next_tag_ = 0;
  std::string broken_;  // "" or why no call can succeed any more
};

}  // namespace

Result<std::unique_ptr<Collective>> make_gloo_collective(Membership& membership,
                                                         std::chrono::milliseconds timeout) {
  std::signal(SIGPIPE, SIG_IGN);
  auto made = std::make_unique<GlooCollective>(membership, timeout);
  FETTLE_TRY(made->connect());
  return std::unique_ptr<Collective>(std::move(made));
}

}  // namespace fettle::trainer
