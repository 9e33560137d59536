// The frames of streams in the Connect protocol: one byte of flags, four of the length, highest
// first, and the message. Pure.
//
// https://connectrpc.com/docs/protocol/#streaming-rpcs
#ifndef MUSTER_BROKER_HTTP_ENVELOPE_H_
#define MUSTER_BROKER_HTTP_ENVELOPE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::http {

inline constexpr size_t kEnvelopeHeadBytes = 5;
inline constexpr uint8_t kCompressedFlag = 0x01;
inline constexpr uint8_t kEndStreamFlag = 0x02;

// Appends a frame to `out`.
void AppendEnvelope(uint8_t flags, std::string_view message, std::string* out);

// Splits the body of a request into messages, which are parts of `body`. Returns INVALID_ARGUMENT
// if the body does not end where a frame ends, or a frame has flags that no request may have.
absl::StatusOr<std::vector<std::string_view>> SplitEnvelopes(std::string_view body);

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_ENVELOPE_H_
