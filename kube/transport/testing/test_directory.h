// For tests: a directory that is removed at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/check.h"
#include "base/file.h"

namespace fettle::kube {

class TestDirectory {
 public:
  TestDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "fettle-XXXXXX";
    CHECK(::mkdtemp(name.data()) != nullptr, "mkdtemp");
    path_ = name;
  }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  // Writes the file and returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    std::string file = path_ + "/" + name;
    CHECK(write_file(file, content).ok(), "write_file");
    return file;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace fettle::kube
