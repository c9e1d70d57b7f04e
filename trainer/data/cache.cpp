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

// The path of the copy of `path`; "" if the source cannot be identified.
std::string copy_name(const std::string& directory, const std::string& path,
                      const GzipTrailer& trailer) {
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
  // A file of the same size may replace it with the old time: cp -p, rsync -t, tar.
  key = mix_keys(key, std::uint64_t{trailer.crc} << 32 | trailer.length);
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), key, 16);
  return directory + "/" + std::string(digits.data(), end.ptr) + ".raw";
}

// Removes temporary files of killed writers (no file takes an hour to write), and copies that no
// training has used for a month; each use renews their time.
void remove_stale_files(const std::string& directory) {
  constexpr auto kTemporary = std::chrono::hours(1);
  constexpr auto kUnused = std::chrono::hours(24 * 30);
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const auto& entry : entries_of(directory)) {
    std::error_code error;
    const std::string name = entry.path().string();
    const bool temporary = name.find(".raw.tmp") != std::string::npos;
    if (!temporary && !name.ends_with(".raw")) continue;
    const auto written = entry.last_write_time(error);
    if (!error && now - written > (temporary ? kTemporary : kUnused)) {
      std::filesystem::remove(entry.path(), error);
    }
  }
}

void renew(const std::string& copy) {
  std::error_code ignored;  // on failure the copy is made again in a month
  std::filesystem::last_write_time(copy, std::filesystem::file_time_type::clock::now(), ignored);
}

// A cache that cannot be written (read-only home, full disk) only costs time.
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
  FETTLE_ASSIGN(MappedFile file, MappedFile::open(path));
  const Bytes source = file.bytes();
  if (!is_gzip(source.view())) {
    mapped_.push_back(std::move(file));
    return source;
  }
  const GzipTrailer trailer = gzip_trailer(source.view());
  const std::string copy = copy_name(directory_, path, trailer);
  if (!copy.empty()) {
    // On any error, or with another length, the copy is made again.
    const auto cached = map_file(copy);
    if (cached.ok() && cached->size() == trailer.length) {
      renew(copy);
      return *cached;
    }
  }
  FETTLE_ASSIGN(Bytes content, gunzip(source.view(), path));
  // For a file with several members the trailer has only the last one's length.
  if (!copy.empty() && content.size() == trailer.length) {
    writers_.emplace_back(
        [content, copy, directory = directory_] { write_copy(directory, copy, content); });
  }
  return content;
}

}  // namespace fettle::trainer
