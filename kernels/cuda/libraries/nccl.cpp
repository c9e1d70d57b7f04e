// The Communicator of NVIDIA GPUs: NCCL 2.28, non-blocking, so that calls that hang can be given
// up.
//
// NCCL's calls return at once and may continue in the background (ncclInProgress). Work is enqueued
// on the stream only when ncclCommGetAsyncError no longer reports that; before, no event may be
// recorded and no other call made. The delay sets up connections for the first calls; it waits for
// hosts, never for the GPU. Calls stay outside CUDA graphs: a graph that holds NCCL's work outlives
// an aborted communicator, and prevents its destruction. ncclCommAbort is safe when no other thread
// is inside NCCL, so every call takes the mutex. abort() waits for it, but with a limit: abort()
// exists for calls that never return.
#include "kernels/cuda/libraries/nccl.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/errors.h"

namespace fettle::kernels::cuda {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kNap = std::chrono::microseconds(20);
// Leaving is polled once a turn; a worker that has not left after all turns counts as lost.
constexpr auto kLeaveTurn = std::chrono::milliseconds(1);
constexpr int kLeaveTurns = 5000;

bool is_accepted(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

Error nccl_error(const std::string& what, ncclResult_t result, ncclComm_t comm) {
  std::string words = ncclGetErrorString(result);
  const char* const more = ncclGetLastError(comm);
  if (more != nullptr && *more != '\0') words += std::string(": ") + more;
  return io_error(what + ": NCCL says: " + words);
}

cudaEvent_t event_of(Event& event) { return static_cast<cudaEvent_t>(event.handle()); }

// Events behind work under way, reused when they are reached. One thread adds, another polls.
class Trail {
 public:
  ~Trail() {
    for (const cudaEvent_t event : spare_) cudaEventDestroy(event);
    for (const cudaEvent_t event : under_way_) cudaEventDestroy(event);
  }
  // Counts the work enqueued on the stream since the last call as one more piece.
  Status add(cudaStream_t stream) {
    const std::scoped_lock lock(mutex_);
    if (spare_.empty()) {
      cudaEvent_t made = nullptr;
      FETTLE_TRY(
          status_of(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "an event for NCCL"));
      spare_.push_back(made);
    }
    FETTLE_TRY(status_of(cudaEventRecord(spare_.back(), stream), "work for NCCL"));
    under_way_.push_back(spare_.back());
    spare_.pop_back();
    return success();
  }
  std::int64_t done() {
    const std::scoped_lock lock(mutex_);
    while (!under_way_.empty() && is_done(under_way_.front())) {
      spare_.push_back(under_way_.front());
      under_way_.pop_front();
      ++done_;
    }
    return done_;
  }

 private:
  // Unlike is_reached (event.h), it does not abort on an error: the waiting thread reports it.
  static bool is_done(cudaEvent_t event) {
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaErrorNotReady) (void)cudaGetLastError();
    return state == cudaSuccess;
  }

  std::mutex mutex_;
  std::deque<cudaEvent_t> under_way_;
  std::vector<cudaEvent_t> spare_;
  std::int64_t done_ = 0;
};

// A word in host memory that the GPU reads.
class Flag {
 public:
  Flag() { must_succeed(cudaMallocHost(&memory_, sizeof(std::int32_t))); }
  ~Flag() { cudaFreeHost(memory_); }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  const std::int32_t* word() const { return memory_; }
  void clear() { std::atomic_ref(*memory_).store(0); }
  void set() { std::atomic_ref(*memory_).store(1); }

 private:
  std::int32_t* memory_ = nullptr;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator() { given_up_.clear(); }
  ~NcclCommunicator() override {
    take_leave();
    NcclCommunicator::abort();  // does nothing if take_leave() has ended the communicator
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  Status start(const ncclUniqueId& id, std::int64_t world_size, std::int64_t rank) {
    world_size_ = static_cast<int>(world_size);
    FETTLE_TRY(
        status_of(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream for NCCL"));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t made = nullptr;
    const ncclResult_t result =
        ncclCommInitRankConfig(&made, world_size_, id, static_cast<int>(rank), &config);
    comm_ = made;  // after an error, too: the destructor gives it up
    if (is_accepted(result)) return success();
    return nccl_error("meeting the other GPUs", result, made);
  }

  Status meet() override { return await_acceptance("meeting the other GPUs"); }

  Status enqueue_all_reduce(std::span<float> values, Event& after) override {
    return enqueue("all-reduce", after, [&](ncclComm_t comm) {
      return ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat, ncclSum, comm,
                           stream_);
    });
  }

  // Broadcasts from each worker, because ncclAllGather requires shares of one size. NCCL runs a
  // group as one operation.
  Status enqueue_all_gather(std::span<float> values, std::span<const std::int64_t> bounds,
                            Event& after) override {
    return enqueue("all-gather", after, [&](ncclComm_t comm) {
      ncclGroupStart();
      ncclResult_t result = ncclSuccess;
      for (int rank = 0; rank < world_size_ && is_accepted(result); ++rank) {
        const auto owner = static_cast<std::size_t>(rank);
        float* const share = values.data() + bounds[owner];
        const auto count = static_cast<std::size_t>(bounds[owner + 1] - bounds[owner]);
        result = ncclBroadcast(share, share, count, ncclFloat, rank, comm, stream_);
      }
      const ncclResult_t ended = ncclGroupEnd();  // after an error, too: the group is still open
      return is_accepted(result) ? ended : result;
    });
  }

  void record(Event& event) override { must_succeed(cudaEventRecord(event_of(event), stream_)); }

  std::int64_t done() override { return trail_.done(); }

  std::string trouble() override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || comm_ == nullptr) return "";  // a call that hangs has a time limit
    const Result<bool> accepted = is_on_its_way("the GPUs' connection");
    return accepted.ok() ? "" : accepted.error().message;
  }

  // Sets the flag first: the GPU continues as soon as NCCL ends the work that it waits for.
  void abort() override {
    const std::unique_lock lock(mutex_, kPatience);  // proceeds without it, too; see above
    const ncclComm_t comm = comm_.exchange(nullptr);
    if (comm == nullptr) return;
    given_up_.set();
    ncclCommAbort(comm);
  }

  const std::int32_t* given_up() const override { return given_up_.word(); }

 private:
  // `call`: the one call of NCCL; `what`: its name, for errors. Returns when the work is on the
  // stream, where it waits for `after`.
  Status enqueue(const char* what, Event& after,
                 const std::function<ncclResult_t(ncclComm_t comm)>& call) {
    {
      const std::scoped_lock lock(mutex_);
      if (comm_ == nullptr) return gave_up();
      FETTLE_TRY(status_of(cudaStreamWaitEvent(stream_, event_of(after), 0), what));
      const ncclResult_t result = call(comm_);
      if (!is_accepted(result)) return nccl_error(what, result, comm_);
    }
    FETTLE_TRY(await_acceptance(what));  // without the mutex, so that abort() can intervene
    return trail_.add(stream_);          // an event behind this work, which done() counts
  }

  // Waits until the last call's work is on the stream. Ends with abort() at the latest.
  Status await_acceptance(const char* what) {
    for (;;) {
      {
        const std::scoped_lock lock(mutex_);
        if (comm_ == nullptr) return gave_up();
        FETTLE_ASSIGN(const bool accepted, is_on_its_way(what));
        if (accepted) return success();
      }
      std::this_thread::sleep_for(kNap);
    }
  }

  // Requires the mutex. Returns false while NCCL is still busy.
  Result<bool> is_on_its_way(const char* what) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    const ncclResult_t found = asked == ncclSuccess ? state : asked;
    if (!is_accepted(found)) return nccl_error(what, found, comm_);
    return found == ncclSuccess;
  }

  // Leaves in step with the others, which may still need this worker for work that is done here.
  // Only the destructor calls it, when no other thread uses this object, so is_on_its_way needs no
  // mutex in the loop.
  void take_leave() {
    {
      const std::unique_lock lock(mutex_, kPatience);
      if (comm_ == nullptr || !lock.owns_lock() || !is_accepted(ncclCommFinalize(comm_))) return;
    }
    for (int turn = 0; turn < kLeaveTurns; ++turn) {
      const Result<bool> left = is_on_its_way("leaving");
      if (!left.ok()) return;  // the destructor aborts
      if (*left) {
        ncclCommDestroy(comm_.exchange(nullptr));
        return;
      }
      std::this_thread::sleep_for(kLeaveTurn);
    }
  }

  static Error gave_up() { return io_error("the communicator was given up"); }

  std::timed_mutex mutex_;  // held while NCCL is called
  std::atomic<ncclComm_t> comm_ = nullptr;
  int world_size_ = 0;
  cudaStream_t stream_ = nullptr;
  Trail trail_;
  Flag given_up_;
};

class NcclMaker final : public CommunicatorMaker {
 public:
  explicit NcclMaker(std::string card) : card_(std::move(card)) {}

  std::string version() const override {
    int number = 0;
    ncclGetVersion(&number);
    return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
           std::to_string(number % 100);
  }
  std::string card() const override { return card_; }

  Result<std::string> make_id() override {
    ncclUniqueId id;
    const ncclResult_t made = ncclGetUniqueId(&id);
    if (made != ncclSuccess) return nccl_error("opening a meeting place", made, nullptr);
    return std::string(id.internal, sizeof id.internal);
  }

  Result<std::unique_ptr<Communicator>> start(const std::string& id, std::int64_t world_size,
                                              std::int64_t rank) override {
    ncclUniqueId place;
    if (id.size() != sizeof place.internal) {
      return invalid("an id of " + std::to_string(id.size()) + " bytes, expected " +
                     std::to_string(sizeof place.internal));
    }
    id.copy(place.internal, id.size());
    auto made = std::make_unique<NcclCommunicator>();
    FETTLE_TRY(made->start(place, world_size, rank));
    return std::unique_ptr<Communicator>(std::move(made));
  }

 private:
  const std::string card_;
};

Result<std::string> uuid_of_first_gpu() {
  cudaDeviceProp properties;
  FETTLE_TRY(status_of(cudaGetDeviceProperties(&properties, 0), "asking which GPU this is"));
  return "GPU-" + uuid_text(properties.uuid);
}

}  // namespace

Result<std::unique_ptr<CommunicatorMaker>> nccl_communicators() {
  FETTLE_ASSIGN(std::string card, uuid_of_first_gpu());
  return std::unique_ptr<CommunicatorMaker>(std::make_unique<NcclMaker>(std::move(card)));
}

}  // namespace fettle::kernels::cuda
