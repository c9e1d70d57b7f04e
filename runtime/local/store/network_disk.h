// Whether files lie on the disk of another machine. That is a bad place for a Study's state:
// SQLite's write-ahead log needs memory that all its readers share, and the server keeps the locks.
// Asks the file system; thread-safe.
#pragma once

#include <string>

namespace fettle::local {

// "NFS", "SMB" ...: the network file system of `path`, an existing file or directory; "" for a
// local file system, or if the system does not say.
std::string network_file_system(const std::string& path);

// The sentence for people whose `path` lies on a network file system.
std::string network_warning(const std::string& path, const std::string& file_system);

}  // namespace fettle::local
