#include "kernels/cuda/device.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/errors.h"

namespace fettle::kernels::cuda {
namespace {

constexpr int kLeastCapability = 80;  // bf16 arithmetic and asynchronous copies
constexpr std::int64_t kPieceBytes = std::int64_t{32} << 20;

std::string version_text(int version) {  // 13000: 13.0
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// CUDA says 35 where there is no driver at all, too.
Status find_gpu() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return success();
  cudaGetLastError();
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (error == cudaErrorInsufficientDriver && driver > 0) {
    return io_error("the NVIDIA driver is for CUDA " + version_text(driver) +
                    ", and this program needs " + version_text(runtime) +
                    ": install a newer driver, or use the backend onednn");
  }
  if (error == cudaSuccess || error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    return io_error(
        "there is no GPU here, or no NVIDIA driver: nvidia-smi should list one, and "
        "CUDA_VISIBLE_DEVICES not hide it; the backend onednn needs none");
  }
  return status_of(error, "looking for a GPU");
}

// 8-4-4-4-12 digits.
std::string uuid_text(const cudaUUID_t& uuid) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : uuid.bytes) {
    if (text.size() == 8 || text.size() == 13 || text.size() == 18 || text.size() == 23) {
      text += '-';
    }
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

class Block : public Memory {
 public:
  Block(Pool& pool, void* data) : pool_(pool), data_(data) {}
  ~Block() override { pool_.give_back(data_); }
  Buffer data() override { return data_; }

 private:
  Pool& pool_;
  void* const data_;
};

}  // namespace

Result<std::unique_ptr<Device>> Device::open() {
  FETTLE_TRY(find_gpu());
  cudaDeviceProp properties;
  FETTLE_TRY(status_of(cudaGetDeviceProperties(&properties, 0), "asking what the GPU is"));
  if (properties.major * 10 + properties.minor < kLeastCapability) {
    return io_error(
        "the GPU, " + std::string(properties.name) + ", has compute capability " +
        std::to_string(properties.major) + "." + std::to_string(properties.minor) +
        ", and at least 8.0 is needed (A100, RTX 30 and later); use the backend onednn");
  }
  FETTLE_TRY(status_of(cudaSetDevice(0), "choosing the GPU"));
  // Where the GPU's memory is the host's, a block is what was asked for: tools see who leaves it.
  std::unique_ptr<Device> device(new Device(properties.integrated != 0 ? 0 : kPieceBytes));
  device->identity_ = {properties.name, uuid_text(properties.uuid)};
  device->multiprocessors_ = properties.multiProcessorCount;
  FETTLE_TRY(status_of(cudaStreamCreateWithFlags(&device->stream_, cudaStreamNonBlocking),
                       "starting work on the GPU"));
  return device;
}

Device::~Device() {
  if (stream_ == nullptr) return;
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

Result<std::unique_ptr<Memory>> Device::allocate(std::int64_t bytes) {
  FETTLE_ASSIGN(void* const data, pool_.take(bytes));
  std::unique_ptr<Memory> block = std::make_unique<Block>(pool_, data);
  must_succeed(cudaMemsetAsync(data, 0, static_cast<std::size_t>(bytes), stream_));
  return block;
}

Status Device::reserve_scratch(std::int64_t bytes) {
  if (bytes <= scratch_bytes_) return success();
  FETTLE_ASSIGN(std::unique_ptr<Memory> grown, allocate(bytes));
  scratch_.push_back(std::move(grown));
  scratch_bytes_ = bytes;
  return success();
}

void* Device::scratch(std::int64_t bytes) {
  if (const Status reserved = reserve_scratch(bytes); !reserved.ok()) {
    CHECK(reserved.ok(), reserved.error().message);
  }
  return scratch_.empty() ? nullptr : scratch_.back()->data();
}

unsigned Device::threads(std::string_view kernel, unsigned otherwise) const {
  const auto found = threads_.find(kernel);
  return found == threads_.end() ? otherwise : found->second;
}

void Device::set_threads(std::string_view kernel, unsigned threads) {
  threads_.insert_or_assign(std::string(kernel), threads);
}

}  // namespace fettle::kernels::cuda
