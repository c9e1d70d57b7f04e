#include "trainer/data/cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "base/cache_folder.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/philox.h"

namespace fettle::trainer {

namespace {

// Where the copy of `path` lies; "" when the source cannot be identified.
std::string copy_name(const std::string& directory, const std::string& path) {
  struct stat info {};
  if (directory.empty() || stat(path.c_str(), &info) != 0) return "";
  std::error_code error;
  const std::string whole = std::filesystem::weakly_canonical(path, error).string();
  if (error) return "";
  std::uint64_t key = 0;  // mix_keys() hashes one word after the other into it
  for (const char c : whole) key = mix_keys(key, static_cast<unsigned char>(c));
  key = mix_keys(key, static_cast<std::uint64_t>(info.st_size));
  key = mix_keys(key, static_cast<std::uint64_t>(info.st_mtim.tv_sec));
  key = mix_keys(key, static_cast<std::uint64_t>(info.st_mtim.tv_nsec));
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), key, 16);
  return directory + "/" + std::string(digits.data(), end.ptr) + ".raw";
}

// Writers that were killed leave their temporary files; no file takes that long to write.
void remove_stale_files(const std::string& directory) {
  constexpr auto kStale = std::chrono::hours(1);
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const auto& entry : entries_of(directory)) {
    std::error_code error;
    const bool temporary = entry.path().string().find(".raw.tmp") != std::string::npos;
    if (temporary && now - entry.last_write_time(error) > kStale) {
      std::filesystem::remove(entry.path(), error);
    }
  }
}

// A cache that cannot be written (read-only home, full disk) costs time, nothing else.
void write_copy(const std::string& directory, const std::string& path, const Bytes& content) {
  if (!make_directories(directory).ok()) return;
  remove_stale_files(directory);
  const auto view = content.view();
  (void)write_file(path, {reinterpret_cast<const char*>(view.data()), view.size()},
                   Durability::kPower);
}

}  // namespace

DataCache DataCache::from_environment() {
  return DataCache(cache_folder("FETTLE_DATA_CACHE", "data"));
}

Result<Bytes> DataCache::read(const std::string& path) {
  FETTLE_ASSIGN(Bytes source, map_file(path));
  if (!is_gzip(source.view())) return source;

  const std::string copy = copy_name(directory_, path);
  if (!copy.empty()) {
    // Any error means that there is no copy yet: it is made again.
    if (auto cached = map_file(copy); cached.ok()) return cached;
  }
  FETTLE_ASSIGN(Bytes content, gunzip(source.view(), path));
  if (!copy.empty()) {
    writers_.emplace_back(
        [content, copy, directory = directory_] { write_copy(directory, copy, content); });
  }
  return content;
}

}  // namespace fettle::trainer
