// What lies in a directory, read without exceptions. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fettle {

// The entries of `directory`, in no particular order. Empty where it cannot be read; cut short
// where the reading fails on the way, as on an NFS server that has gone.
std::vector<std::filesystem::directory_entry> entries_of(const std::string& directory);

}  // namespace fettle
