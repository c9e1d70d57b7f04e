// ThreadsCollective: the workers of a trial as threads of one process, for tests. Sums in the
// order of the ranks, in the values' own type.
#pragma once

#include <algorithm>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "trainer/parallel/collective.h"

namespace fettle::trainer {

class Threads {
 public:
  explicit Threads(std::int64_t world_size)
      : barrier_(world_size), places_(static_cast<std::size_t>(world_size)) {}

  // Runs `worker` as every rank, each on a thread; returns when all are done.
  static void run(std::int64_t world_size, const std::function<void(Collective&)>& worker) {
    Threads all(world_size);
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      threads.emplace_back([&all, &worker, rank] {
        Member member(all, rank);
        worker(member);
      });
    }
  }

 private:
  class Member final : public Collective {
   public:
    Member(Threads& all, std::int64_t rank) : all_(all), rank_(rank) {}
    std::int64_t world_size() const override { return std::ssize(all_.places_); }
    std::int64_t rank() const override { return rank_; }
    Status sum(std::span<float> values) override { return all_.sum(rank_, values); }
    Status sum(std::span<double> values) override { return all_.sum(rank_, values); }
    Status broadcast(std::span<std::byte> bytes) override {
      all_.meet(rank_, bytes.data());
      if (rank_ != 0) {
        const auto* from = static_cast<const std::byte*>(all_.places_[0]);
        std::copy(from, from + bytes.size(), bytes.begin());
      }
      all_.barrier_.arrive_and_wait();
      return success();
    }

    Status all_gather(std::span<float> values, std::span<const std::int64_t> bounds) override {
      all_.meet(rank_, values.data());
      for (std::size_t owner = 0; owner < all_.places_.size(); ++owner) {
        if (static_cast<std::int64_t>(owner) == rank_) continue;
        const auto* from = static_cast<const float*>(all_.places_[owner]);
        std::copy(from + bounds[owner], from + bounds[owner + 1], values.begin() + bounds[owner]);
      }
      all_.barrier_.arrive_and_wait();
      return success();
    }

   private:
    Threads& all_;
    const std::int64_t rank_;
  };

  void meet(std::int64_t rank, const void* mine) {
    places_[static_cast<std::size_t>(rank)] = mine;
    barrier_.arrive_and_wait();
  }

  template <class T>
  Status sum(std::int64_t rank, std::span<T> values) {
    meet(rank, values.data());
    std::vector<T> total(values.size());
    for (const void* place : places_) {
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += static_cast<const T*>(place)[i];
    }
    barrier_.arrive_and_wait();
    std::copy(total.begin(), total.end(), values.begin());
    return success();
  }

  std::barrier<> barrier_;
  std::vector<const void*> places_;  // each rank's contribution
};

}  // namespace fettle::trainer
