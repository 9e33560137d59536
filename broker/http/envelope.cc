#include "broker/http/envelope.h"

#include <fmt/format.h>

#include "contract/errors.h"

namespace muster::http {
namespace {

absl::Status BadBody(std::string_view words) {
  return contract::Error(absl::StatusCode::kInvalidArgument, "BAD_ENVELOPE", words);
}

}  // namespace

void AppendEnvelope(uint8_t flags, std::string_view message, std::string* out) {
  const auto size = static_cast<uint32_t>(message.size());
  out->push_back(static_cast<char>(flags));
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(size >> shift));
  out->append(message);
}

absl::StatusOr<std::vector<std::string_view>> SplitEnvelopes(std::string_view body) {
  std::vector<std::string_view> messages;
  while (!body.empty()) {
    if (body.size() < kEnvelopeHeadBytes) {
      return BadBody(
          fmt::format("the body ends {} bytes into a frame's head, which has 5: one of flags and "
                      "four of the message's length, highest first",
                      body.size()));
    }
    const auto flags = static_cast<uint8_t>(body[0]);
    if ((flags & kCompressedFlag) != 0) {
      // The protocol names this code for it.
      return contract::Error(absl::StatusCode::kInternal, "NO_COMPRESSION",
                             "a frame is compressed, and the broker takes none that is: send "
                             "messages as they are");
    }
    if (flags != 0) {
      return BadBody(
          fmt::format("a frame has the flags {}, and the broker takes 0 only: send "
                      "messages uncompressed, and no end of the stream",
                      flags));
    }
    size_t size = 0;
    for (size_t at = 1; at < kEnvelopeHeadBytes; ++at) {
      size = size << 8 | static_cast<uint8_t>(body[at]);
    }
    body.remove_prefix(kEnvelopeHeadBytes);
    if (size > body.size()) {
      return BadBody(fmt::format("a frame says that its message has {} bytes, and {} follow", size,
                                 body.size()));
    }
    messages.push_back(body.substr(0, size));
    body.remove_prefix(size);
  }
  return messages;
}

}  // namespace muster::http
