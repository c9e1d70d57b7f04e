// NPY files, the format of numpy.save (numpy.lib.format, versions 1.0 and 2.0), and sets of images
// in two of them.
// Pure functions but for reading files; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/data/bytes.h"
#include "trainer/data/cache.h"
#include "trainer/data/image_set.h"

namespace fettle::trainer {

enum class NpyType { kUint8, kUint16, kInt32, kInt64, kFloat32 };

struct NpyArray {
  NpyType type = NpyType::kUint8;
  std::vector<std::int64_t> shape;
  Bytes values;  // in C order, little-endian, not necessarily aligned
};

// Errors name the file (`path`), what was found and what was expected: not an NPY file, another
// version, a truncated or damaged header, another type, Fortran order, fewer or more values than
// the shape needs.
Result<NpyArray> parse_npy(Bytes file, const std::string& path);

// The same from a file. Errors also: no values; `what`: a name for the expected ones.
Result<NpyArray> read_npy(const std::string& path, const std::string& what, DataCache& cache);

// Value i of an array of whole numbers.
std::int64_t integer_at(const NpyArray& array, std::int64_t i);

// Images: uint8 or float32, [n, height, width] or [n, height, width, channels]; [n, numbers] for
// data other than images. Labels: whole numbers, [n], counted from 0. Plain or gzipped.
// Errors: those of parse_npy; other types, dimensions or counts; a label out of range; a float that
// is not finite.
Result<ImageSet> read_npy_image_set(const std::string& images, const std::string& labels,
                                    DataCache& cache);

// The images alone; each has the label 0. Errors as above.
Result<ImageSet> read_npy_images(const std::string& path, DataCache& cache);

// The head of an NPY file whose values follow: `type` as numpy writes it ("<f4", "<i8").
std::string npy_head(const std::string& type, const std::vector<std::int64_t>& shape);

}  // namespace fettle::trainer
