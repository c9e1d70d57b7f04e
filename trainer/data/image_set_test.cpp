#include "trainer/data/image_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "trainer/testing/synthetic.h"

#ifdef FETTLE_HAVE_ZLIB
#include <zlib.h>
#endif

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

class ImageSetTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    EXPECT_TRUE(write_file(directory_.file(name), content).ok());
    return directory_.file(name);
  }
  Result<ImageSet> read(const std::string& images, const std::string& labels) {
    DataCache off("");
    return read_image_set(write("images", images), write("labels", labels), off);
  }
  // The error must name the file and the fault.
  void expect_error(const Result<ImageSet>& set, const std::string& file, const std::string& text) {
    ASSERT_FALSE(set.ok());
    EXPECT_THAT(set.error().message, HasSubstr(directory_.file(file)));
    EXPECT_THAT(set.error().message, HasSubstr(text));
  }

  TemporaryDirectory directory_;
  const std::string images_ = idx({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const std::string labels_ = idx({2}, {4, 1});
};

TEST_F(ImageSetTest, ReadsImagesAndLabels) {
  const auto set = read(images_, labels_);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->size(), 2);
  EXPECT_EQ(set->shape(), (kernels::ImageShape{2, 3, 1}));
  EXPECT_EQ(set->classes(), 5);
  EXPECT_EQ(set->image(1)[0], 7);
  EXPECT_EQ(set->label(0), 4);
}

TEST_F(ImageSetTest, AFourthDimensionIsTheChannels) {
  const auto set = read(idx({2, 2, 1, 3}, std::vector<std::uint8_t>(12)), labels_);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->shape(), (kernels::ImageShape{2, 1, 3}));
}

TEST_F(ImageSetTest, RefusesWhatIsNoIdxFile) {
  expect_error(read("not an IDX file", labels_), "images",
               "starts with 0x6e6f7420; expected an IDX file of images (magic 0x00000803)");
  expect_error(read(labels_, labels_), "images", "starts with 0x00000801");
  expect_error(read(images_, images_), "labels",
               "starts with 0x00000803; expected an IDX file of labels (magic 0x00000801)");
  expect_error(read("ab", labels_), "images", "has 2 bytes, no IDX header");
  expect_error(read("", labels_), "images", "is empty");
  expect_error(read(images_.substr(0, 9), labels_), "images", "ends within its IDX header");
}

TEST_F(ImageSetTest, RefusesFilesThatAreCutShortOrTooLong) {
  expect_error(read(images_.substr(0, images_.size() - 1), labels_), "images",
               "is cut short: its header announces 12 bytes of images, it holds 11");
  expect_error(read(images_ + "x", labels_), "images", "is too long");
  expect_error(read(images_, idx({2}, {1})), "labels", "is cut short");
}

TEST_F(ImageSetTest, RefusesCountsThatDiffer) {
  expect_error(read(images_, idx({3}, {1, 2, 3})), "labels", "holds 3 labels");
}

TEST_F(ImageSetTest, RefusesImpossibleDimensions) {
  expect_error(read(idx({2, 0, 3}, {}), labels_), "images", "a side of 0 pixels");
  expect_error(read(idx({1 << 30, 16000, 16000}, {}), labels_), "images", "announces more than");
  expect_error(read(idx({0, 2, 3}, {}), labels_), "images", "holds no images");
}

TEST_F(ImageSetTest, RefusesImagesWhoseChannelsComeFirst) {
  const std::vector<std::uint8_t> values(2 * 3 * 64, 1);
  expect_error(read(idx({2, 3, 8, 8}, values), labels_), "images",
               "looks like [n, channels, height, width]");
  EXPECT_TRUE(read(idx({2, 8, 8, 3}, values), labels_).ok());
}

TEST_F(ImageSetTest, NamesAFileThatIsMissing) {
  DataCache off("");
  const auto set = read_image_set(directory_.file("images"), directory_.file("labels"), off);
  expect_error(set, "labels", "No such file");
}

#ifdef FETTLE_HAVE_ZLIB

std::string gzipped(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return *read_file(path);
}

TEST_F(ImageSetTest, ReadsGzippedFiles) {
  const auto set = read(gzipped(directory_.file("images"), images_), labels_);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->image(1)[5], 12);
}

TEST_F(ImageSetTest, RefusesDamagedGzipFiles) {
  const std::string whole = gzipped(directory_.file("images"), images_);
  expect_error(read(whole.substr(0, whole.size() - 3), labels_), "images", "damaged or cut short");
  expect_error(read(whole.substr(0, 10), labels_), "images", "damaged or cut short");
  std::string flipped = whole;
  flipped[whole.size() - 6] = static_cast<char>(flipped[whole.size() - 6] ^ 1);  // of the CRC
  expect_error(read(flipped, labels_), "images", "damaged or cut short");
  std::string bomb = whole;
  bomb.replace(bomb.size() - 4, 4, "\xFF\xFF\xFF\xFF");  // announces 4 GB
  expect_error(read(bomb, labels_), "images", "damaged or cut short");
  std::string larger = whole;
  larger[larger.size() - 4] = 1;  // the low bits of a size beyond 2^32
  expect_error(read(larger, labels_), "images", "gunzip it if it holds more than 4 GiB");
}

TEST_F(ImageSetTest, TheCacheServesTheDecompressedCopyUntilTheSourceChanges) {
  const std::string path = directory_.file("images");
  const std::string where = directory_.file("cache/data");
  gzipped(path, images_);
  const std::string old_content = images_;
  { ASSERT_TRUE(DataCache(where).read(path).ok()); }  // the writer has finished at the brace
  std::vector<std::filesystem::path> copies;
  for (const auto& entry : std::filesystem::directory_iterator(where)) {
    copies.push_back(entry.path());
  }
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(*read_file(copies[0]), old_content);

  // Served from the copy: a changed copy shows. A copy of another length is made again.
  ASSERT_TRUE(write_file(copies[0], std::string(images_.size(), 'x')).ok());
  EXPECT_EQ(DataCache(where).read(path)->view()[0], 'x');
  ASSERT_TRUE(write_file(copies[0], "changed copy").ok());
  EXPECT_EQ(DataCache(where).read(path)->size(), images_.size());

  // Another source under the same name gets another copy.
  gzipped(path, images_ + "more");
  EXPECT_EQ(DataCache(where).read(path)->size(), images_.size() + 4);
}

// As left by cp -p, rsync -t or tar.
TEST_F(ImageSetTest, TheCacheNoticesASourceOfTheSameSizeAndTime) {
  const std::string path = directory_.file("images");
  const std::string where = directory_.file("cache");
  const auto write_stored = [&path](const std::string& content) {  // not compressed: equal lengths
    gzFile file = gzopen(path.c_str(), "wb0");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
  };
  write_stored("before");
  const auto time = std::filesystem::last_write_time(path);
  { ASSERT_TRUE(DataCache(where).read(path).ok()); }
  write_stored("behind");
  std::filesystem::last_write_time(path, time);
  EXPECT_EQ(DataCache(where).read(path)->view()[2], 'h');
}

TEST_F(ImageSetTest, TheCacheKeepsWhatIsUsedAndRemovesWhatIsNot) {
  const std::string where = directory_.file("cache");
  const auto age = [&where](int days) {
    for (const auto& entry : std::filesystem::directory_iterator(where)) {
      const auto now = std::filesystem::file_time_type::clock::now();
      std::filesystem::last_write_time(entry, now - std::chrono::hours(24 * days));
    }
  };
  const auto read = [&](const std::string& name) {
    gzipped(directory_.file(name), name);
    std::filesystem::last_write_time(directory_.file(name), {});  // the same each time
    ASSERT_TRUE(DataCache(where).read(directory_.file(name)).ok());
  };
  const auto count = [&where] {
    return std::distance(std::filesystem::directory_iterator(where), {});
  };
  read("one");
  age(20);
  read("one");  // from the cache
  read("two");
  EXPECT_EQ(count(), 2);
  age(31);
  read("two");
  read("three");
  EXPECT_EQ(count(), 2) << "nobody has used the first for a month";
}

TEST_F(ImageSetTest, ReadsSeveralGzipMembers) {
  const std::string first = gzipped(directory_.file("a"), images_.substr(0, 10));
  const std::string second = gzipped(directory_.file("b"), images_.substr(10));
  const auto set = read(first + second, labels_);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->image(1)[5], 12);
  std::string damaged = first + second;
  damaged[first.size() - 6] = static_cast<char>(damaged[first.size() - 6] ^ 1);  // the first's CRC
  expect_error(read(damaged, labels_), "images", "damaged or cut short");
  expect_error(read(first + second.substr(0, 12), labels_), "images", "damaged or cut short");
  expect_error(read(first + second + "rest", labels_), "images", "damaged or cut short");
}

TEST_F(ImageSetTest, WorksWhereTheCacheCannotBeWritten) {
  gzipped(directory_.file("images"), images_);
  DataCache cache(write("a file", "no directory"));
  EXPECT_TRUE(cache.read(directory_.file("images")).ok());
}

#endif

}  // namespace
}  // namespace fettle::trainer
