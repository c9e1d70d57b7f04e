#include "machine/kernel_texts.h"

#include <gtest/gtest.h>

namespace fettle::machine {
namespace {

TEST(KernelTexts, Memory) {
  const MemoryInfo info = parse_memory(
      "MemTotal:       24684084 kB\nMemFree:  1 kB\nMemAvailable:   20000000 kB\nBuffers: 3 kB\n");
  EXPECT_EQ(info.total, 24684084LL * 1024);
  EXPECT_EQ(info.available, 20000000LL * 1024);
  EXPECT_EQ(parse_memory("").total, 0);
  EXPECT_EQ(parse_memory("HugeMemTotal: 5 kB\nMemTotal: much\n").total, 0);
  EXPECT_EQ(parse_memory("MemTotal:").total, 0);
}

TEST(KernelTexts, CacheSize) {
  EXPECT_EQ(parse_cache_size("32768K\n"), 32 << 20);
  EXPECT_EQ(parse_cache_size("32M"), 32 << 20);
  EXPECT_EQ(parse_cache_size(""), 0);
  EXPECT_EQ(parse_cache_size("much K"), 0);
}

TEST(KernelTexts, LinkSpeed) {
  EXPECT_EQ(parse_link_speed("100000\n"), 12.5e9);
  EXPECT_EQ(parse_link_speed("-1\n"), std::nullopt);
  EXPECT_EQ(parse_link_speed(""), std::nullopt);
}

TEST(KernelTexts, PciLink) {
  EXPECT_NEAR(*parse_pci_link("32.0 GT/s PCIe", "16"), 63e9, 0.1e9);  // PCIe 5.0
  EXPECT_NEAR(*parse_pci_link("16.0 GT/s PCIe", "16"), 31.5e9, 0.1e9);
  EXPECT_NEAR(*parse_pci_link("5.0 GT/s", "8"), 4e9, 1);
  EXPECT_EQ(parse_pci_link("Unknown", "16"), std::nullopt);
  EXPECT_EQ(parse_pci_link("16.0 GT/s PCIe", ""), std::nullopt);
}

}  // namespace
}  // namespace fettle::machine
