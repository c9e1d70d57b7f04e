#include "runtime/local/store/network_disk.h"

#include <sys/vfs.h>

#include <cstdint>

namespace fettle::local {
namespace {

struct Magic {
  std::uint32_t number;
  const char* name;
};

// <linux/magic.h> and the file systems' own headers.
constexpr Magic kNetwork[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},      {0xFF534D42, "SMB"},     {0xFE534D42, "SMB"},
    {0x5346414F, "AFS"},    {0x00C36400, "Ceph"}, {0x0BD00BD0, "Lustre"},  {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"}, {0x01021997, "9P"},   {0x20030528, "OrangeFS"}};

}  // namespace

std::string network_file_system(const std::string& path) {
  struct statfs about {};
  if (::statfs(path.c_str(), &about) != 0) return "";
  for (const Magic& magic : kNetwork) {
    if (static_cast<std::uint32_t>(about.f_type) == magic.number) return magic.name;
  }
  return "";
}

std::string network_warning(const std::string& path, const std::string& file_system) {
  return path + " lies on a network file system (" + file_system +
         "): fettle keeps its state there without SQLite's write-ahead log, which is slower, and "
         "is as safe as that file system's locks; better keep it on a local disk: -C DIR";
}

}  // namespace fettle::local
