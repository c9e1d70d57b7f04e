#include "trainer/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "kernels/bfloat16.h"
#include "kernels/float16.h"

namespace fettle::trainer {

static_assert(std::endian::native == std::endian::little, "arrays are little-endian");

namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
constexpr const char* kMetadata = "__metadata__";

struct ElementType {
  const char* name;
  std::int64_t bytes;
};
constexpr ElementType kTypes[] = {{"F64", 8},     {"I64", 8}, {"U64", 8}, {"F32", 4},
                                  {"I32", 4},     {"U32", 4}, {"F16", 2}, {"BF16", 2},
                                  {"I16", 2},     {"U16", 2}, {"I8", 1},  {"F8_E4M3", 1},
                                  {"F8_E5M2", 1}, {"U8", 1},  {"BOOL", 1}};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return Json::array_of(shape).dump();
}

// Absent: a size that is negative or too large.
std::optional<std::int64_t> elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || size > kMostElements) return std::nullopt;
    if (size > 0 && count > kMostElements / size) return std::nullopt;
    count *= size;
  }
  return count;
}

// Absent: it is no list of integers.
std::optional<std::vector<std::int64_t>> integers(const Json* list) {
  if (list == nullptr || !list->is_array()) return std::nullopt;
  std::vector<std::int64_t> values;
  for (const Json& one : list->as_array()) {
    if (!one.is_integer()) return std::nullopt;
    values.push_back(one.as_integer());
  }
  return values;
}

}  // namespace

// ---- Writing -----------------------------------------------------------------------------------

std::string encode_safetensors(const std::vector<NamedArray>& arrays,
                               const SafetensorsMetadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) {
    Json words = Json::object();
    for (const auto& [key, value] : metadata) words.set(key, value);
    header.set(kMetadata, std::move(words));
  }
  std::int64_t end = 0;
  for (const NamedArray& array : arrays) {
    CHECK(header.find(array.name) == nullptr, "two arrays of one name");
    CHECK(elements_of(array.shape) == std::ssize(array.values), "an array unlike its shape");
    const std::int64_t begin = std::exchange(end, end + std::ssize(array.values) * 4);
    Json one = Json::object();
    one.set("dtype", "F32");
    one.set("shape", Json::array_of(array.shape));
    one.set("data_offsets", Json::array_of(std::vector<std::int64_t>{begin, end}));
    header.set(array.name, std::move(one));
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');  // alignment
  const std::uint64_t length = text.size();
  std::string file(kLengthBytes, '\0');
  std::memcpy(file.data(), &length, kLengthBytes);
  file += text;
  file.reserve(file.size() + static_cast<std::size_t>(end));
  for (const NamedArray& array : arrays) {
    file.append(reinterpret_cast<const char*>(array.values.data()), array.values.size_bytes());
  }
  return file;
}

// ---- Reading -----------------------------------------------------------------------------------

Error SafetensorsFile::wrong(const std::string& what) const { return invalid(path_ + ": " + what); }

Result<SafetensorsFile> SafetensorsFile::parse(Bytes file, const std::string& path) {
  SafetensorsFile parsed(std::move(file), path);
  FETTLE_TRY(parsed.read());
  return parsed;
}

Status SafetensorsFile::read() {
  const std::span<const std::uint8_t> bytes = file_.view();
  if (std::ssize(bytes) < kLengthBytes) return wrong("is cut: shorter than 8 bytes");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kLongestHeader) {
    return wrong("says that its header has " + std::to_string(length) +
                 " bytes, expected at most " + std::to_string(kLongestHeader) +
                 "; is it a safetensors file?");
  }
  const auto rest = bytes.subspan(kLengthBytes);
  if (length > rest.size()) return wrong("is cut: its header ends behind the file");
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), length);
  constexpr int kDepth = 4;
  auto header = parse_json(text, {.max_depth = kDepth});
  if (!header.ok()) return wrong("the header: " + header.error().message);
  if (!header->is_object()) return wrong("the header is not an object");
  first_byte_ = kLengthBytes + static_cast<std::int64_t>(length);
  for (const auto& [name, described] : header->as_object()) {
    FETTLE_TRY(read_entry(name, described));
  }
  return check_places(std::ssize(bytes) - first_byte_);
}

Status SafetensorsFile::read_entry(const std::string& name, const Json& described) {
  if (!described.is_object()) return wrong("the header's \"" + name + "\" is not an object");
  if (name == kMetadata) {
    for (const auto& [key, value] : described.as_object()) {
      if (!value.is_string()) return wrong("the metadata \"" + key + "\" is not a text");
      metadata_[key] = value.as_string();
    }
    return success();
  }
  const Json* const type = described.find("dtype");
  const auto shape = integers(described.find("shape"));
  const auto place = integers(described.find("data_offsets"));
  if (type == nullptr || !type->is_string() || !shape || !place || place->size() != 2) {
    return wrong("tensor \"" + name + "\" lacks a dtype, a shape or two data_offsets");
  }
  const auto known = std::ranges::find_if(
      kTypes, [&](const ElementType& one) { return type->as_string() == one.name; });
  if (known == std::end(kTypes)) {
    return wrong("tensor \"" + name + "\" has the unknown dtype \"" + type->as_string() + "\"");
  }
  const auto elements = elements_of(*shape);
  const std::int64_t begin = (*place)[0];
  const std::int64_t end = (*place)[1];
  if (!elements || begin < 0 || end < begin || end - begin != *elements * known->bytes) {
    return wrong("tensor \"" + name + "\" of the shape " + shape_text(*shape) + " and dtype " +
                 known->name + " cannot lie at the bytes " + std::to_string(begin) + " to " +
                 std::to_string(end));
  }
  entries_.push_back({name, known->name, *shape, begin, end});
  return success();
}

// Neither gaps nor overlaps, up to the end of the file.
Status SafetensorsFile::check_places(std::int64_t bytes) {
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::int64_t end = 0;
  for (const Entry& entry : entries_) {
    if (entry.begin != end) {
      return wrong("tensor \"" + entry.name + "\" begins at byte " + std::to_string(entry.begin) +
                   ", expected " + std::to_string(end) + ", where the one before it ends");
    }
    end = entry.end;
  }
  if (end == bytes) return success();
  return wrong("has " + std::to_string(bytes) + " bytes of tensors, expected " +
               std::to_string(end) + (bytes < end ? ": it is cut" : ""));
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &*found;
}

Result<std::vector<float>> SafetensorsFile::values(const Entry& entry) const {
  const std::uint8_t* const bytes = file_.view().data() + first_byte_ + entry.begin;
  const auto size = static_cast<std::size_t>(entry.end - entry.begin);
  if (entry.type == "F32") {
    std::vector<float> values(size / sizeof(float));
    if (size > 0) std::memcpy(values.data(), bytes, size);
    return values;
  }
  if (entry.type != "F16" && entry.type != "BF16") {
    return wrong("tensor \"" + entry.name + "\" has the dtype " + entry.type +
                 ", expected F32, F16 or BF16");
  }
  std::vector<std::uint16_t> halves(size / sizeof(std::uint16_t));
  if (size > 0) std::memcpy(halves.data(), bytes, size);
  const auto widen = entry.type == "F16" ? kernels::from_float16 : kernels::from_bfloat16;
  std::vector<float> values(halves.size());
  std::ranges::transform(halves, values.begin(), widen);
  return values;
}

Result<std::vector<float>> SafetensorsFile::values(std::string_view name,
                                                   const std::vector<std::int64_t>& shape) const {
  const Entry* const entry = find(name);
  if (entry == nullptr) return wrong("lacks the tensor \"" + std::string(name) + "\"");
  if (entry->shape == shape) return values(*entry);
  return wrong("tensor \"" + entry->name + "\" has the shape " + shape_text(entry->shape) +
               ", expected " + shape_text(shape));
}

Status SafetensorsFile::expect_only(std::span<const std::string> names) const {
  for (const Entry& entry : entries_) {
    if (std::ranges::find(names, entry.name) != names.end()) continue;
    return wrong("has the tensor \"" + entry.name + "\", which the model lacks");
  }
  return success();
}

}  // namespace fettle::trainer
