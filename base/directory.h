// Lists a directory without exceptions. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fettle {

// The entries of `directory`, in no particular order. Empty if it cannot be read; truncated if
// reading fails halfway, as on an NFS server that has gone.
std::vector<std::filesystem::directory_entry> entries_of(const std::string& directory);

}  // namespace fettle
