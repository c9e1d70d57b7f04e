// Small learnable images for tests: each class has its own bright quadrant, under noise. The IDX
// files that hold them, and random text. For tests only.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/file.h"
#include "base/philox.h"
#include "trainer/data/image_set.h"

namespace fettle::trainer {

// A directory that is removed at the end of the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "fettle-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct SyntheticImages {
  static constexpr std::int64_t kSide = 8;
  static constexpr std::int64_t kClasses = 4;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;

  explicit SyntheticImages(std::int64_t count, std::uint64_t seed = 1) {
    Random random(seed);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto label = static_cast<std::int64_t>(random.below(kClasses));
      labels.push_back(static_cast<std::uint8_t>(label));
      for (std::int64_t y = 0; y < kSide; ++y) {
        for (std::int64_t x = 0; x < kSide; ++x) {
          const bool bright = y / (kSide / 2) * 2 + x / (kSide / 2) == label;
          pixels.push_back(static_cast<std::uint8_t>(random.below(150) + (bright ? 60 : 0)));
        }
      }
    }
  }

  ImageSet set() const {
    return ImageSet({kSide, kSide, 1}, Bytes::copy_of(pixels), Bytes::copy_of(labels));
  }
};

// Random tokens, 16 bits each, below `vocabulary` and below 250.
inline ImageSet synthetic_text(std::int64_t samples, std::int64_t length, std::int64_t vocabulary) {
  const auto below = static_cast<std::uint64_t>(std::min<std::int64_t>(vocabulary, 250));
  Random random(3);
  std::vector<std::uint8_t> tokens;
  for (std::int64_t i = 0; i < samples * length + 1; ++i) {
    tokens.push_back(static_cast<std::uint8_t>(random.below(below)));
    tokens.push_back(0);
  }
  return ImageSet::of_text(Bytes::copy_of(tokens), length, vocabulary);
}

inline void append_big_endian(std::string& to, std::int64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>((value >> shift) & 255);
}

// An IDX file of bytes with these dimensions.
inline std::string idx(const std::vector<std::int64_t>& dimensions,
                       const std::vector<std::uint8_t>& values) {
  std::string file = {0, 0, 8, static_cast<char>(dimensions.size())};
  for (const std::int64_t size : dimensions) append_big_endian(file, size);
  return file.append(values.begin(), values.end());
}

// Writes the images into `directory` and returns a configuration that reads them.
inline api::DataConfig write_synthetic(const TemporaryDirectory& directory, std::int64_t count) {
  const SyntheticImages images(count);
  const std::int64_t side = SyntheticImages::kSide;
  api::DataConfig config;
  config.train_images = directory.file("images");
  config.train_labels = directory.file("labels");
  config.validation_samples = count / 4;
  (void)write_file(config.train_images, idx({count, side, side}, images.pixels));
  (void)write_file(config.train_labels, idx({count}, images.labels));
  return config;
}

}  // namespace fettle::trainer
