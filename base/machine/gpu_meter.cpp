#include "base/machine/gpu_meter.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/machine/nvml.h"

namespace fettle::machine {
namespace {

constexpr std::chrono::milliseconds kBetweenReadings{200};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// CUDA reports the UUIDs of GPUs and of parts in the same form.
nvml::Device find_device(const nvml::Library& library, const std::string& uuid) {
  nvml::Device device = nullptr;
  const std::string part = "MIG-" + uuid;
  if (library.call("nvmlDeviceGetHandleByUUID", part.c_str(), &device)) return device;
  const std::string whole = "GPU-" + uuid;
  if (!library.call("nvmlDeviceGetHandleByUUID", whole.c_str(), &device)) return nullptr;
  return nvml::is_cut(library, device).value_or(false) ? nullptr : device;
}

}  // namespace

void GpuReadings::Mean::add(const std::optional<double>& value) {
  if (!value) return;
  sum += *value;
  ++count;
}

std::optional<double> GpuReadings::Mean::value() const {
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

void GpuReadings::add(const GpuReading& reading, double seconds) {
  utilization_.add(reading.utilization);
  power_.add(reading.power);
  if (reading.memory) memory_ = std::max(memory_.value_or(0), *reading.memory);
  if (!reading.energy) return;
  newest_ = {*reading.energy, seconds};
  if (!first_) first_ = taken_ = newest_;
}

GpuUse GpuReadings::take() {
  GpuUse use{utilization_.value(), memory_, power_.value(), std::nullopt};
  if (newest_) {  // then add() has set the others, too
    use.energy = newest_->joules - first_->joules;
    const double seconds = newest_->seconds - taken_->seconds;
    // Better than the mean of readings: the counter misses nothing between two of them.
    if (seconds > 0) use.power = (newest_->joules - taken_->joules) / seconds;
  }
  utilization_ = power_ = {};
  memory_.reset();
  taken_ = newest_;
  return use;
}

class GpuMeter::Source {
 public:
  explicit Source(const std::string& path) : library_(path) {}

  bool find(const std::string& uuid) {
    if (library_.missing().empty()) device_ = find_device(library_, uuid);
    return device_ != nullptr;
  }

  GpuReading read() const {
    GpuReading reading;
    nvml::Utilization utilization;
    if (library_.call("nvmlDeviceGetUtilizationRates", device_, &utilization)) {
      reading.utilization = utilization.gpu / 1e2;
    }
    nvml::MemoryInfo memory;
    if (library_.call("nvmlDeviceGetMemoryInfo", device_, &memory)) {
      reading.memory = static_cast<double>(memory.used);
    }
    unsigned milliwatts = 0;
    if (library_.call("nvmlDeviceGetPowerUsage", device_, &milliwatts)) {
      reading.power = milliwatts / 1e3;
    }
    unsigned long long millijoules = 0;
    if (library_.call("nvmlDeviceGetTotalEnergyConsumption", device_, &millijoules)) {
      reading.energy = static_cast<double>(millijoules) / 1e3;
    }
    return reading;
  }

 private:
  const nvml::Library library_;
  nvml::Device device_ = nullptr;
};

std::unique_ptr<GpuMeter> GpuMeter::open(const std::string& uuid, const std::string& library) {
  if (uuid.empty()) return nullptr;
  auto source = std::make_unique<Source>(library);
  if (!source->find(uuid)) return nullptr;
  return std::unique_ptr<GpuMeter>(new GpuMeter(std::move(source)));
}

GpuMeter::GpuMeter(std::unique_ptr<Source> source) : source_(std::move(source)) {
  read();
  thread_ = std::jthread([this](const std::stop_token& stop) { read_until(stop); });
}

GpuMeter::~GpuMeter() = default;

void GpuMeter::read() {
  const GpuReading reading = source_->read();
  const std::lock_guard lock(lock_);
  readings_.add(reading, seconds_now());
}

void GpuMeter::read_until(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(lock_);
      ends_.wait_for(lock, stop, kBetweenReadings, [] { return false; });
    }
    if (!stop.stop_requested()) read();
  }
}

GpuUse GpuMeter::take() {
  read();
  const std::lock_guard lock(lock_);
  return readings_.take();
}

}  // namespace fettle::machine
