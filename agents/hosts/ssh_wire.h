// Numbers and strings as SSH writes them (RFC 4251, section 5).
#ifndef MUSTER_AGENTS_HOSTS_SSH_WIRE_H_
#define MUSTER_AGENTS_HOSTS_SSH_WIRE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::hosts {

inline std::string WireNumber(uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

inline std::string WireString(std::string_view text) {
  return WireNumber(static_cast<uint32_t>(text.size())) + std::string(text);
}

// Reads from the beginning of a text that it does not own; nothing where the text is too short.
class WireReader {
 public:
  explicit WireReader(std::string_view text) : rest_(text) {}

  std::optional<uint32_t> Number() {
    const std::optional<std::string_view> bytes = Take(4);
    if (!bytes.has_value()) return std::nullopt;
    uint32_t number = 0;
    for (const char c : *bytes) number = number << 8 | static_cast<unsigned char>(c);
    return number;
  }
  std::optional<std::string_view> String() {
    const std::optional<uint32_t> size = Number();
    return size.has_value() ? Take(*size) : std::nullopt;
  }
  std::optional<std::string_view> Take(size_t size) {
    if (rest_.size() < size) return std::nullopt;
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_WIRE_H_
