// ScratchFolder: an empty folder for this user alone, which goes with the object.
#pragma once

#include <string>

#include "base/result.h"

namespace fettle::cli {

class ScratchFolder {
 public:
  // Makes it where the system keeps temporary files ($TMPDIR). kIo: it cannot.
  static Result<ScratchFolder> make();
  ~ScratchFolder();
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path);

  std::string path_;  // "" = moved from
};

}  // namespace fettle::cli
