// Workers with an emulated GPU each, as threads that meet over loopback and all-reduce by emulated
// NCCL, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cuda/libraries/nccl.h"
#include "kernels/emulator/emulator.h"
#include "trainer/parallel/nccl_collective.h"
#include "trainer/parallel/ring_collective.h"

namespace fettle::trainer {

struct Gpus {
  using Maker = std::unique_ptr<kernels::CommunicatorMaker>;
  using Made = Result<std::unique_ptr<Collective>>;
  using Worker = std::function<void(Membership& membership, Made collective)>;

  std::int64_t world_size = 2;
  NcclSettings settings = {.timeout = std::chrono::seconds(120)};
  // The GPU that a rank sees, and its way to reach the others' GPUs.
  std::function<int(std::int64_t rank)> device = [](std::int64_t rank) {
    return static_cast<int>(rank);
  };
  std::function<Maker(std::int64_t rank)> maker = [](std::int64_t) {
    return *kernels::cuda::nccl_communicators();
  };

  // Returns when all ranks have run `worker`.
  void run(const Worker& worker) const {
    Listener listener = *Listener::open({"127.0.0.1", 0});
    std::vector<std::jthread> threads;
    for (std::int64_t rank = world_size - 1; rank >= 0; --rank) {
      RendezvousRequest request;
      request.master = {"127.0.0.1", listener.port()};
      request.trial = "t";
      request.rank = rank;
      request.world_size = world_size;
      request.timeout = std::chrono::seconds(120);
      request.log = [](const std::string&) {};
      threads.emplace_back(
          [this, &listener, &worker, request] { work(request, listener, worker); });
    }
  }

 private:
  void work(const RendezvousRequest& request, Listener& listener, const Worker& worker) const {
    kernels::emulator::use_device(device(request.rank));
    const auto membership = request.rank == 0 ? Membership::host(request, std::move(listener))
                                              : Membership::join(request);
    ASSERT_TRUE(membership.ok()) << membership.error().message;
    auto ring = make_ring_collective(**membership, settings.timeout);
    ASSERT_TRUE(ring.ok()) << ring.error().message;
    const Maker made = maker(request.rank);
    worker(**membership,
           make_nccl_collective(**membership, *std::move(ring), made.get(), settings));
  }
};

}  // namespace fettle::trainer
