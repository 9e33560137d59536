#include "broker/logs/crc32.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string>

namespace muster::logs {
namespace {

uint32_t ByZlib(uint32_t crc, std::string_view data) {
  return static_cast<uint32_t>(
      crc32(crc, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
}

TEST(Crc32Test, IsZlibsForEveryLengthAndPlace) {
  std::mt19937 random(7);
  std::string bytes(5000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  const std::string_view all = bytes;
  for (size_t size = 0; size <= 300; ++size) {
    for (size_t begin = 0; begin < 20; ++begin) {
      const std::string_view data = all.substr(begin, size);
      ASSERT_EQ(Crc32(0, data), ByZlib(0, data)) << size << " bytes from " << begin;
    }
  }
  EXPECT_EQ(Crc32(0, all), ByZlib(0, all));
}

TEST(Crc32Test, GoesOnFromTheBytesBefore) {
  const std::string bytes(4096, 'x');
  const std::string_view all = bytes;
  const uint32_t whole = ByZlib(0, all);
  for (const size_t cut : {0, 1, 63, 64, 65, 1000, 4095, 4096})
    EXPECT_EQ(Crc32(Crc32(0, all.substr(0, cut)), all.substr(cut)), whole) << cut;
}

}  // namespace
}  // namespace muster::logs
