#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "clients/cpp/client.h"

namespace muster::client {
namespace {

std::array<uint8_t, 16> RandomBytes() {
  std::array<uint8_t, 16> bytes;
  // getrandom(2) gives up to 256 bytes whole once the kernel has seeded itself.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) abort();
  return bytes;
}

}  // namespace

std::string NewRequestId() {
  std::array<uint8_t, 16> bytes = RandomBytes();
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

}  // namespace muster::client
