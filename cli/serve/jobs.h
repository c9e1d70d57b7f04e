// Jobs: threads that work on slow answers: an API server's, the fit of a model.
//
// Each thread has a source of Studies, made when it first needs one. add() and the destructor may
// be called by any thread; the destructor waits for jobs that have begun and drops the others.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cli/source/study_source.h"

namespace fettle::cli {

class Jobs {
 public:
  static constexpr std::size_t kThreads = 3;
  static constexpr std::size_t kMostWaiting = 64;

  // A job gets a source, or the reason that it has none.
  using Job = std::function<void(Result<StudySource*> source)>;

  explicit Jobs(MakeSource make_source) : make_source_(std::move(make_source)) {}
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Call once, before add().
  Status start();
  // False: too many wait.
  bool add(Job job);

 private:
  void run();

  const MakeSource make_source_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> waiting_;  // under mutex_
  bool stops_ = false;       // under mutex_
  std::vector<std::thread> threads_;
};

}  // namespace fettle::cli
