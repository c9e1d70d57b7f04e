// Safetensors: named arrays and metadata in one file, as the library of that name reads and writes
// it: the length of a header (8 bytes), the header as JSON, then the arrays without gaps.
//
// The reader trusts nothing: sizes and places must agree with each other and with the file's size
// before any array is read. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "trainer/data/bytes.h"

namespace fettle::trainer {

// An fp32 array to write. `values` must outlive the call.
struct NamedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// The file in memory: arrays in this order. Names must differ, and shapes must fit their values.
std::string encode_safetensors(const std::vector<NamedArray>& arrays,
                               const SafetensorsMetadata& metadata);

class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    std::string type;  // "F32", "BF16", "I64", ...
    std::vector<std::int64_t> shape;
    std::int64_t begin = 0;  // of its bytes, behind the header
    std::int64_t end = 0;
  };

  // Errors name the file (`path`): cut, too long, a header over 100 MB or without sense, an unknown
  // type, arrays that overlap, leave gaps or are larger or smaller than their shape.
  static Result<SafetensorsFile> parse(Bytes file, const std::string& path);

  const SafetensorsMetadata& metadata() const { return metadata_; }
  const std::vector<Entry>& entries() const { return entries_; }  // in the order of their bytes

  // nullptr: the file has no array of that name.
  const Entry* find(std::string_view name) const;
  // The values of an array of floats of 32 or 16 bits. Errors: it has another type.
  Result<std::vector<float>> values(const Entry& entry) const;
  // Errors: the array is missing; it has another type, or another shape.
  Result<std::vector<float>> values(std::string_view name,
                                    const std::vector<std::int64_t>& shape) const;

  // Errors: the file has an array that is not among `names`.
  Status expect_only(std::span<const std::string> names) const;

 private:
  SafetensorsFile(Bytes file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Status read();
  Status read_entry(const std::string& name, const Json& described);
  Status check_places(std::int64_t bytes);
  Error wrong(const std::string& what) const;

  Bytes file_;
  std::string path_;
  SafetensorsMetadata metadata_;
  std::vector<Entry> entries_;
  std::int64_t first_byte_ = 0;  // of the arrays
};

}  // namespace fettle::trainer
