// The two readers of FeedThreads: of a Study, and of the list of them.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/thread.h"
#include "cli/serve/feeds/feed_thread.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kLeastBetweenEstimatesMs = 10'000;
constexpr std::int64_t kEstimatesRestFactor = 20;
constexpr int kEstimatesNice = 10;

// Makes estimates on a thread of its own, one at a time, at most a twentieth of the time.
class Estimator {
 public:
  Estimator() = default;
  ~Estimator() {
    if (thread_.joinable()) thread_.join();
  }
  Estimator(const Estimator&) = delete;
  Estimator& operator=(const Estimator&) = delete;

  bool may_start(std::int64_t now_ms) const { return !thread_.joinable() && now_ms >= next_ms_; }

  // Without a thread, tries again later.
  void start(RunView view, std::int64_t now_ms) {
    done_ = false;
    begun_ms_ = now_ms;
    auto thread = start_thread([this, view = std::move(view)] {
      ::setpriority(PRIO_PROCESS, 0, kEstimatesNice);  // of this thread alone, on Linux
      made_ = estimate(view);
      done_ = true;
    });
    if (thread.ok()) {
      thread_ = *std::move(thread);
    } else {
      next_ms_ = now_ms + kLeastBetweenEstimatesMs;
    }
  }

  std::optional<Estimates> take(std::int64_t now_ms) {
    if (!thread_.joinable() || !done_) return std::nullopt;
    thread_.join();
    thread_ = {};
    next_ms_ =
        now_ms + std::max(kLeastBetweenEstimatesMs, kEstimatesRestFactor * (now_ms - begun_ms_));
    return std::move(made_);
  }

 private:
  std::thread thread_;
  Estimates made_;  // by the thread, until done_
  std::atomic<bool> done_ = false;
  std::int64_t begun_ms_ = 0;
  std::int64_t next_ms_ = 0;
};

class FollowedStudy final : public Followed {
 public:
  FollowedStudy(std::unique_ptr<StudySource> source, std::string study, std::uint64_t epoch)
      : source_(std::move(source)), study_(std::move(study)), feed_(epoch) {}

  void poll(std::int64_t now_ms) override {
    const std::string stamp = source_->stamp(study_);
    const bool may_rest = !stamp.empty() && stamp == stamp_ && now_ms - read_at_ms_ < kTimesEveryMs;
    if (!may_rest) read(now_ms);
    stamp_ = stamp;
    if (auto estimates = estimator_.take(now_ms)) feed_.see(std::move(*estimates));
    if (feed_.wants_estimates() && estimator_.may_start(now_ms)) {
      estimator_.start(*feed_.view(), now_ms);
    }
  }

  std::string events_since(std::optional<FeedPosition>& position) const override {
    return feed_.events_since(position);
  }

 private:
  void read(std::int64_t now_ms) {
    read_at_ms_ = now_ms;
    auto seen = source_->read(study_, Detail::kObjects);
    if (seen.ok()) {
      feed_.see(std::move(seen->view));
    } else {
      feed_.see(seen.error());
    }
  }

  const std::unique_ptr<StudySource> source_;
  const std::string study_;
  StudyFeed feed_;
  Estimator estimator_;
  std::string stamp_;
  std::int64_t read_at_ms_ = 0;
};

class FollowedList final : public Followed {
 public:
  FollowedList(std::unique_ptr<StudySource> source, std::vector<std::string> only,
               std::uint64_t epoch)
      : source_(std::move(source)), list_(std::move(only)), feed_(epoch, source_->place()) {}

  void poll(std::int64_t /*now_ms*/) override {
    const Status updated = list_.update(*source_);
    if (updated.ok()) {
      feed_.see(list_.rows());
    } else {
      feed_.see(updated.error());
    }
  }

  std::string events_since(std::optional<FeedPosition>& position) const override {
    return feed_.events_since(position);
  }

 private:
  const std::unique_ptr<StudySource> source_;
  StudyList list_;
  ListFeed feed_;
};

}  // namespace

std::unique_ptr<Followed> follow_study(std::unique_ptr<StudySource> source, std::string study,
                                       std::uint64_t epoch) {
  return std::make_unique<FollowedStudy>(std::move(source), std::move(study), epoch);
}

std::unique_ptr<Followed> follow_list(std::unique_ptr<StudySource> source,
                                      std::vector<std::string> only, std::uint64_t epoch) {
  return std::make_unique<FollowedList>(std::move(source), std::move(only), epoch);
}

}  // namespace fettle::cli
