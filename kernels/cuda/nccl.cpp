// The Communicator of NVIDIA GPUs: NCCL 2.28, non-blocking, so that what hangs can be given up.
//
// NCCL's calls return at once and may go on in the background (ncclInProgress); an order lies on
// the stream only when ncclCommGetAsyncError no longer says so, and the event behind it can be
// recorded only then. ncclCommAbort is safe when no other thread is inside NCCL, so every call
// takes the mutex, and abort() waits for it, but not for ever: a call that never returns is what
// abort() is for.
#include "kernels/cuda/nccl.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <array>
#include <chrono>
#include <mutex>
#include <utility>

#include "kernels/cuda/errors.h"

namespace fettle::kernels::cuda {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);

bool is_accepted(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

Error nccl_error(const std::string& what, ncclResult_t result, ncclComm_t comm) {
  std::string words = ncclGetErrorString(result);
  const char* const more = ncclGetLastError(comm);
  if (more != nullptr && *more != '\0') words += std::string(": ") + more;
  return io_error(what + ": NCCL says: " + words);
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator() = default;
  ~NcclCommunicator() override {
    NcclCommunicator::abort();
    if (event_ != nullptr) cudaEventDestroy(event_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  Status meet(const ncclUniqueId& id, std::int64_t world_size, std::int64_t rank) {
    FETTLE_TRY(
        status_of(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream for NCCL"));
    FETTLE_TRY(
        status_of(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event for NCCL"));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t result = ncclCommInitRankConfig(&comm_, static_cast<int>(world_size), id,
                                                       static_cast<int>(rank), &config);
    if (is_accepted(result)) return success();
    return nccl_error("meeting the other GPUs", result, comm_);
  }

  Status start_sum(float* values, std::int64_t count) override {
    const std::scoped_lock lock(mutex_);
    if (comm_ == nullptr) return io_error("the communicator has been given up");
    recorded_ = false;
    const auto result = ncclAllReduce(values, values, static_cast<std::size_t>(count), ncclFloat,
                                      ncclSum, comm_, stream_);
    if (is_accepted(result)) return success();
    return nccl_error("adding up", result, comm_);
  }

  Progress progress() override {
    const std::scoped_lock lock(mutex_);
    if (comm_ == nullptr) return failed("it has been given up");
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    if (asked == ncclSuccess && state == ncclInProgress) return Progress::kUnderWay;
    if (asked != ncclSuccess || state != ncclSuccess) {
      const ncclResult_t wrong = asked != ncclSuccess ? asked : state;
      return failed(nccl_error("the GPUs' connection", wrong, comm_).message);
    }
    if (!recorded_) {
      recorded_ = true;
      if (const cudaError_t error = cudaEventRecord(event_, stream_); error != cudaSuccess) {
        return failed(words_of(error));
      }
    }
    const cudaError_t reached = cudaEventQuery(event_);
    if (reached == cudaErrorNotReady) return Progress::kUnderWay;
    return reached == cudaSuccess ? Progress::kDone : failed(words_of(reached));
  }

  std::string failure() override { return failure_; }

  void abort() override {
    std::unique_lock lock(mutex_, kPatience);
    const ncclComm_t comm = std::exchange(comm_, nullptr);
    if (comm != nullptr) ncclCommAbort(comm);
  }

 private:
  Progress failed(std::string why) {
    failure_ = std::move(why);
    return Progress::kFailed;
  }

  std::timed_mutex mutex_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  bool recorded_ = false;
  std::string failure_;
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
    FETTLE_TRY(made->meet(place, world_size, rank));
    return std::unique_ptr<Communicator>(std::move(made));
  }

 private:
  const std::string card_;
};

// As nvidia-smi has it, but for the hyphens.
Result<std::string> uuid_of_first_gpu() {
  cudaDeviceProp properties;
  FETTLE_TRY(status_of(cudaGetDeviceProperties(&properties, 0), "asking which GPU this is"));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (const char byte : properties.uuid.bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<CommunicatorMaker>> nccl_communicators() {
  FETTLE_ASSIGN(std::string card, uuid_of_first_gpu());
  return std::unique_ptr<CommunicatorMaker>(std::make_unique<NcclMaker>(std::move(card)));
}

}  // namespace fettle::kernels::cuda
