// A week in which Studies come, end and are deleted (spec.ttlAfterFinished): the Manager's memory
// does not grow with their number. An allocator of this program counts it.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/sim/simulation.h"

namespace {

std::atomic<std::int64_t> live_bytes = 0;

}  // namespace

// The standard library also allocates without exceptions and releases such blocks by the same
// `operator delete`, so both forms of `operator new` are replaced.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* memory = std::malloc(size);
  if (memory != nullptr) live_bytes += static_cast<std::int64_t>(malloc_usable_size(memory));
  return memory;
}

void* operator new(std::size_t size) {
  void* memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept {
  live_bytes -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace fettle::sim {
namespace {

constexpr std::int64_t kWeekMs = 7LL * 24 * 3'600 * 1'000;

class Churn {
 public:
  Churn() : runs_(faults_, clock_, bad_days, digits_curve) {
    manager_ = std::make_unique<control::Manager>(store_, runs_, clock_, observer_);
  }

  // Runs `studies` Studies within a week, at even distances; each lives an hour after its end.
  void run(int studies) {
    for (int i = 0; i < studies; ++i) {
      api::Study study = digits_study();
      study.metadata.name = "digits-" + std::to_string(i);
      study.spec.algorithm.name =
          i % 2 == 0 ? api::AlgorithmKind::kRandom : api::AlgorithmKind::kTpe;
      study.spec.budget.trials = 4;
      study.spec.ttl_after_finished = 3'600;
      CHECK(store_.create_study(study).ok(), "the Study could not be created");
      run_until(clock_.now_ms() + kWeekMs / studies);
      most_at_once_ = std::max(most_at_once_, store_.objects().studies.size());
    }
    run_until(clock_.now_ms() + 4 * 3'600 * 1'000);
  }

  std::size_t studies_left() const { return store_.objects().studies.size(); }
  std::size_t trials_left() const { return store_.objects().trials.size(); }
  std::size_t most_at_once() const { return most_at_once_; }

  // Returns the bytes that are freed with the Manager.
  std::int64_t manager_bytes() {
    const std::int64_t before = live_bytes;
    manager_.reset();
    return before - live_bytes;
  }

 private:
  void run_until(std::int64_t end_ms) {
    while (clock_.now_ms() < end_ms) {
      while (manager_->step().value()) {
      }
      const std::int64_t runs = runs_.next_ms();
      const std::int64_t manager = std::max(manager_->next_ms(), clock_.now_ms() + 1);
      clock_.advance_to(std::min(end_ms, runs < 0 ? manager : std::min(runs, manager)));
      runs_.advance();
      (void)store_.collect_garbage(clock_.now_ms());
    }
  }

  Faults faults_;
  SimClock clock_;
  SimStore store_{faults_};
  SimRuns runs_;
  control::Observer observer_;
  std::unique_ptr<control::Manager> manager_;
  std::size_t most_at_once_ = 0;
};

TEST(Churn, AWeekOfStudiesLeavesNothingInTheManager) {
  Churn few;
  few.run(100);
  Churn many;
  many.run(2'000);
  EXPECT_EQ(few.studies_left() + many.studies_left(), 0u) << "they outlived their time to live";
  EXPECT_EQ(many.trials_left(), 0u) << "they go with their Studies";
  EXPECT_LT(many.most_at_once(), 100u) << "they were not deleted as time went by";
  const std::int64_t after_few = few.manager_bytes();
  const std::int64_t after_many = many.manager_bytes();
  EXPECT_GT(after_few, 0);
  EXPECT_LE(after_many, after_few + 2'048);
}

}  // namespace
}  // namespace fettle::sim
