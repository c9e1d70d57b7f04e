// Slot: a thread of a worker that trains one trial after another, and keeps its device with the
// network, plans and memory for the next.
//
// Runs end as in a process of their own, with its exit codes and sentences; the slot lives on. One
// thread for each slot; the constructor's thread may be another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "trainer/data/data_shelf.h"
#include "trainer/program/assignments.h"
#include "trainer/program/process_task.h"
#include "trainer/program/trial_run.h"
#include "trainer/program/worker_frames.h"
#include "trainer/step/training_device.h"

namespace fettle::trainer {

// Shared by the slots of a worker. Thread-safe.
struct SharedBySlots {
  SharedBySlots(WorkerFrames& its_frames, Assignments& its_assignments, std::int64_t its_slots);

  WorkerFrames& frames;
  Assignments& assignments;
  const std::int64_t slots;
  DataShelf data;
  std::mutex allocating;              // TrainingHooks::allocating
  std::atomic<std::int64_t> devices;  // open devices with memory of their own
};

class Slot {
 public:
  explicit Slot(SharedBySlots& shared) : shared_(shared) {}
  ~Slot() { close_device(); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  // Returns when no more runs come.
  void run();

 private:
  bool is_alone() const { return shared_.slots == 1; }
  Assignments::Next next(Assignment& assignment);
  void train_one(const Assignment& assignment);
  // Returns the exit code. Absent: the run is refused.
  std::optional<int> train_or_refuse(const Assignment& assignment, const TrialHost& host);
  Result<TrainingResult> train(const ProcessTask& process, const TrialHost& host);
  TrialHost host_of(const Assignment& assignment) const;
  void begin();
  // Errors: the backend is not available.
  Status open_device(const api::TrainingConfig& config);
  void close_device();
  bool others_have_the_memory(const Error& error) const;

  // The settings that choose a backend: fp16 on a CPU takes another one.
  struct Key {
    api::BackendKind backend = api::BackendKind::kAuto;
    std::int64_t threads = 1;
    bool is_fp16 = false;
    bool operator==(const Key&) const = default;
  };

  SharedBySlots& shared_;
  std::string run_;     // under way
  bool began_ = false;  // its frame is written
  Key key_;
  std::unique_ptr<TrainingDevice> device_;
};

}  // namespace fettle::trainer
