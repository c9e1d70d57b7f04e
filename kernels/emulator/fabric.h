// Fabric: connects the emulated GPUs of one communicator by sockets on loopback, a star around rank
// 0, which sums in the order of the ranks.
//
// A separate thread does the tasks one after the other. A task with a lost member fails, or never
// ends, until give_up(); afterwards all tasks end at once, undone. Usable from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace fettle::kernels::emulator {

// The meeting place of a communicator's members; rank 0's process opens it.
struct Rendezvous {
  std::uint16_t port = 0;
  std::uint64_t token = 0;
};
Rendezvous open_rendezvous();

class Fabric {
 public:
  Fabric(const Rendezvous& place, int members, int rank);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // A requested operation.
  struct Task {
    std::function<bool()> run;  // false: a member was lost
    std::atomic<bool> done = false;
  };
  std::shared_ptr<Task> join();
  std::shared_ptr<Task> sum(std::span<const float> from, float* to);
  std::shared_ptr<Task> broadcast(std::span<const float> from, float* to, int root);
  // Done when all earlier tasks are done.
  std::shared_ptr<Task> leave();

  bool is_broken() const { return broken_; }
  void give_up();
  bool is_given_up() const { return given_up_; }

 private:
  std::shared_ptr<Task> ask(std::function<bool()> run);
  void work();
  bool connect_all();
  bool accept_members();
  bool reduce(std::span<const float> from, float* to);
  bool forward(std::span<const float> from, float* to, int root);
  // Transfer all bytes, or return false if the connection is cut or everything is given up.
  bool send(int to, std::span<const std::byte> bytes);
  bool receive(int from, std::span<std::byte> bytes);
  bool say(int to, std::span<const float> values);
  bool hear(int from, std::span<float> values);
  bool wait_for(int socket, short events) const;

  const Rendezvous place_;
  const int members_;
  const int rank_;
  std::vector<int> sockets_;  // by rank; other ranks have only rank 0's
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> broken_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace fettle::kernels::emulator
