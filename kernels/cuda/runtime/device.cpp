#include "kernels/cuda/runtime/device.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "kernels/cuda/runtime/errors.h"

namespace fettle::kernels::cuda {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{32} << 20;
// A context with its kernels and the libraries' kernels. Reported as 300 to 500 MB; not measured
// here.
constexpr std::int64_t kContextBytes = std::int64_t{512} << 20;

class Block : public Memory {
 public:
  Block(Pool& pool, void* data) : pool_(pool), data_(data) {}
  ~Block() override { pool_.give_back(data_); }
  Buffer data() override { return data_; }

 private:
  Pool& pool_;
  void* const data_;
};

MachineFacts ask_runtime() {
  MachineFacts facts;
  const cudaError_t counted = cudaGetDeviceCount(&facts.devices);
  cudaGetLastError();  // clears the error, which is in the facts
  facts.error = counted;
  facts.error_text = cudaGetErrorString(counted);
  cudaDriverGetVersion(&facts.driver_version);
  cudaRuntimeGetVersion(&facts.runtime_version);
  if (counted != cudaSuccess || facts.devices == 0) return facts;
  cudaDeviceProp properties{};
  const cudaError_t asked = cudaGetDeviceProperties(&properties, 0);
  if (asked != cudaSuccess) cudaGetLastError();  // clears it as above
  facts.error = asked;
  facts.error_text = cudaGetErrorString(asked);
  facts.name = properties.name;
  facts.major = properties.major;
  facts.minor = properties.minor;
  return facts;
}

bool wants_branches() {
  const char* value = std::getenv("FETTLE_CUDA_BRANCHES");  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && std::string_view(value) == "1";
}

// A block without memory, while a device measures.
class NoBlock : public Memory {
 public:
  Buffer data() override { return nullptr; }
};

// An address for its alignment only: nothing is read or written there.
void* no_address() {
  alignas(256) static std::byte place;
  return &place;
}

}  // namespace

std::string uuid_text(const cudaUUID_t& uuid) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : uuid.bytes) {
    // 8-4-4-4-12 digits: these lengths are followed by a dash.
    if (text.size() == 8 || text.size() == 13 || text.size() == 18 || text.size() == 23) {
      text += '-';
    }
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

Status find_gpu() { return check_machine(ask_runtime(), FETTLE_CUDA_ARCHITECTURES); }

// Returns the memory that a process sharing its GPU may allocate: FETTLE_GPU_MEMORY, in MiB, less
// CUDA's own. nullopt if the GPU is not shared.
Result<std::optional<std::int64_t>> share_of_memory() {
  const char* const text = std::getenv("FETTLE_GPU_MEMORY");  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr || *text == '\0') return std::optional<std::int64_t>();
  std::int64_t mebibytes = 0;
  const char* const end = text + std::string_view(text).size();
  const auto read = std::from_chars(text, end, mebibytes);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // still fits 64 bits in bytes
  if (read.ec != std::errc() || read.ptr != end || mebibytes > kMost) {
    return invalid("FETTLE_GPU_MEMORY is \"" + std::string(text) +
                   "\", expected a whole number of MiB");
  }
  const std::int64_t bytes = (mebibytes << 20) - kContextBytes;
  if (bytes > 0) return std::optional(bytes);
  return invalid("FETTLE_GPU_MEMORY is " + std::to_string(mebibytes) +
                 " MiB, and CUDA itself needs " + std::to_string(kContextBytes >> 20) +
                 " of them: ask for a larger part of the GPU");
}

Result<std::unique_ptr<Device>> Device::open() {
  const MachineFacts facts = ask_runtime();
  FETTLE_TRY(check_machine(facts, FETTLE_CUDA_ARCHITECTURES));
  cudaDeviceProp properties;
  FETTLE_TRY(status_of(cudaGetDeviceProperties(&properties, 0), "asking what the GPU is"));
  FETTLE_TRY(status_of(cudaSetDevice(0), "choosing the GPU"));
  // If the GPU's memory is the host's, as on the emulator, each block is a separate allocation, so
  // that sanitizers see accesses outside of it.
  const std::int64_t piece_bytes = properties.integrated != 0 ? 0 : kPieceBytes;
  FETTLE_ASSIGN(const std::optional<std::int64_t> share_bytes, share_of_memory());
  std::unique_ptr<Device> device(new Device(piece_bytes, share_bytes));
  device->identity_ = {properties.name, uuid_text(properties.uuid)};
  device->facts_ = facts;
  device->multiprocessors_ = properties.multiProcessorCount;
  // Non-blocking: the streams and CUDA's default stream never wait for each other.
  FETTLE_TRY(status_of(cudaStreamCreateWithFlags(&device->stream_, cudaStreamNonBlocking),
                       "starting work on the GPU"));
  FETTLE_TRY(status_of(cudaStreamCreateWithFlags(&device->branch_stream_, cudaStreamNonBlocking),
                       "starting work on the GPU"));
  for (cudaEvent_t* event : {&device->fork_, &device->join_}) {
    FETTLE_TRY(status_of(cudaEventCreateWithFlags(event, cudaEventDisableTiming),
                         "starting work on the GPU"));
  }
  device->branches_ = wants_branches();
  return device;
}

Device::~Device() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);  // nullptr: open() failed on its way
  libraries_.clear();                                      // their handles still name a stream
  for (cudaStream_t stream : {stream_, branch_stream_}) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  for (cudaEvent_t event : {fork_, join_}) {
    if (event != nullptr) cudaEventDestroy(event);
  }
}

bool Device::is_capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  must_succeed(cudaStreamIsCapturing(stream_, &status));
  return status != cudaStreamCaptureStatusNone;
}

// Outside a graph a fork would cost the host more calls than it saves the GPU time. Even there, the
// branch uses its own workspace, which must have grown before the graph is captured.
void Device::run_beside(const std::function<void()>& branch,
                        const std::function<void()>& meanwhile) {
  CHECK(!in_branch_, "a branch has no branches");
  const bool forks = branches_ && is_capturing();
  if (forks) {  // adds the branch's stream to the capture; the wait below ends that
    must_succeed(cudaEventRecord(fork_, stream_));
    must_succeed(cudaStreamWaitEvent(branch_stream_, fork_, 0));
  }
  in_branch_ = branches_;
  forked_ = forks;
  branch();
  in_branch_ = forked_ = false;
  meanwhile();
  if (!forks) return;
  must_succeed(cudaEventRecord(join_, branch_stream_));
  must_succeed(cudaStreamWaitEvent(stream_, join_, 0));
}

Result<std::unique_ptr<Memory>> Device::allocate(std::int64_t bytes) {
  if (measuring_) {
    measured_.own += Pool::padded(bytes);
    return std::unique_ptr<Memory>(std::make_unique<NoBlock>());
  }
  // In a capture, each launch of the graph would clear the new block, even after a concurrent
  // branch has written to it.
  CHECK(
      !is_capturing(),
      "memory is allocated while a graph is captured: what is captured must have run once before");
  FETTLE_ASSIGN(void* const data, pool_.take(bytes));
  std::unique_ptr<Memory> block = std::make_unique<Block>(pool_, data);
  must_succeed(cudaMemsetAsync(data, 0, static_cast<std::size_t>(bytes), stream_));
  return block;
}

void Device::release_unused() {
  must_succeed(cudaStreamSynchronize(stream_));
  pool_.release_unused();
}

Status Device::grow(Growing& memory, std::int64_t bytes) {
  if (measuring_) {
    std::int64_t& measured = measured_bytes(memory);
    measured = std::max(measured, Pool::padded(bytes));
    return success();
  }
  if (bytes <= memory.bytes) return success();
  FETTLE_ASSIGN(std::unique_ptr<Memory> block, allocate(bytes));
  memory.blocks.push_back(std::move(block));
  memory.bytes = bytes;
  return success();
}

// Counters add only a few bytes to the workspace.
std::int64_t& Device::measured_bytes(const Growing& memory) {
  return &memory == &branch_scratch_ ? measured_.branch : measured_.shared;
}

void* Device::grown(Growing& memory, std::int64_t bytes) {
  if (measuring_) return no_address();
  if (const Status reserved = grow(memory, bytes); !reserved.ok()) {
    CHECK(reserved.ok(), reserved.error().message);
  }
  return memory.blocks.empty() ? nullptr : memory.blocks.back()->data();
}

Status Device::reserve_scratch(std::int64_t bytes) { return grow(scratch_, bytes); }

Status Device::reserve_branch_scratch(std::int64_t bytes) {
  return branches_ ? grow(branch_scratch_, bytes) : success();  // else a branch uses scratch_
}

void* Device::scratch(std::int64_t bytes) {
  return grown(in_branch_ ? branch_scratch_ : scratch_, bytes);
}

Status Device::reserve_counters(std::int64_t count) {
  return grow(counters_, count * std::int64_t{sizeof(unsigned)});
}

unsigned* Device::counters(std::int64_t count) {
  CHECK(!in_branch_, "the counters are used beside a branch");
  return static_cast<unsigned*>(grown(counters_, count * std::int64_t{sizeof(unsigned)}));
}

void Device::set_measuring(bool measuring) {
  measuring_ = measuring;
  measured_ = {};
}

}  // namespace fettle::kernels::cuda
