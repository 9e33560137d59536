// The bounds of the HTTP server, each with its reason.
#ifndef MUSTER_BROKER_HTTP_BOUNDS_H_
#define MUSTER_BROKER_HTTP_BOUNDS_H_

#include <chrono>
#include <cstddef>

namespace muster::http {

// Each connection takes a descriptor and some 10 KiB. Further ones are closed at once.
inline constexpr size_t kMaxConnections = 10'000;
// This bounds the bodies of all requests that are being read or answered. It is enough for 16 of
// the largest ones.
inline constexpr size_t kMaxBodyBytesHeld = 256 << 20;
// This is the share of one user: four of the largest requests. While one user fills it, others find
// room.
inline constexpr size_t kMaxBodyBytesOfUser = 64 << 20;
// This bounds the answers that callers have not read. It is enough for 16 of the largest that
// gRPC's listeners send. Beyond it calls are refused for a moment.
inline constexpr size_t kMaxAnswerBytesHeld = 256 << 20;
// This bounds the body of a caller without a credential: a login sends a token and a few names.
inline constexpr size_t kMaxBodyBytesOfStrangers = 64 << 10;
// A connection that has sent no whole head of a request by then is closed, as by gRPC's listeners.
// Later heads have the same time.
inline constexpr std::chrono::seconds kMaxHeadTime{10};
// The time between two requests of a connection.
inline constexpr std::chrono::seconds kMaxIdleTime{75};
// The largest body needs this time over 0.5 Mbit/s.
inline constexpr std::chrono::seconds kMaxBodyTime{300};
// This is the longest time between two pieces of a body, and for reading a piece of an answer.
inline constexpr std::chrono::seconds kMaxSilence{30};
// A caller may take this time to read an answer that was sent before its request was read to the
// end.
inline constexpr std::chrono::seconds kMaxLinger{2};
// A request that is refused by its head is read to its end if it is no larger than this, so that
// the connection stays open.
inline constexpr size_t kMaxDiscardedBytes = 64 << 10;
// The server reads at most this much behind the request that is being answered, because it answers
// one request at a time.
inline constexpr size_t kMaxAheadBytes = 64 << 10;
// This bounds the messages of a stream that wait to be written. At the bound the broker sends no
// further ones, as to a slow reader over gRPC.
inline constexpr size_t kMaxOutputBytes = 256 << 10;
// This is the size of one read, and of one write.
inline constexpr size_t kReadBytes = 16 << 10;
inline constexpr size_t kWriteBytes = 256 << 10;

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_BOUNDS_H_
