// The bounds of the HTTP server, each with its reason.
#ifndef MUSTER_BROKER_HTTP_BOUNDS_H_
#define MUSTER_BROKER_HTTP_BOUNDS_H_

#include <chrono>
#include <cstddef>

namespace muster::http {

// Each takes a descriptor and some 10 KiB. More are closed at once.
inline constexpr size_t kMaxConnections = 10'000;
// The bodies of all requests that are being read or answered: 16 of the largest ones.
inline constexpr size_t kMaxBodyBytesHeld = 256 << 20;
// The share of one user in them: four of the largest requests. While somebody fills it, others find
// room.
inline constexpr size_t kMaxBodyBytesOfUser = 64 << 20;
// The answers that wait to be read by callers: 16 of the largest that gRPC's listeners send to
// anybody. With more, calls are refused for a moment.
inline constexpr size_t kMaxAnswerBytesHeld = 256 << 20;
// The body of a caller without a credential: a login sends a token and a few names.
inline constexpr size_t kMaxBodyBytesOfStrangers = 64 << 10;
// A connection that is not a caller's by then is closed, as by gRPC's listeners; the head of a
// request takes no longer either.
inline constexpr std::chrono::seconds kMaxHeadTime{10};
// The time between two requests of a connection.
inline constexpr std::chrono::seconds kMaxIdleTime{75};
// The largest body comes in this time over 0.5 Mbit/s.
inline constexpr std::chrono::seconds kMaxBodyTime{300};
// The time between two pieces of a body, and for taking a piece of an answer.
inline constexpr std::chrono::seconds kMaxSilence{30};
// The time in which a caller may read an answer before which its request was not read to the end.
inline constexpr std::chrono::seconds kMaxLinger{2};
// A request that is refused by its head is read to its end if it is so small: the connection lives
// on.
inline constexpr size_t kMaxDiscardedBytes = 64 << 10;
// So much is read ahead of what a caller sends behind the request that is being answered. One
// request is answered at a time.
inline constexpr size_t kMaxAheadBytes = 64 << 10;
// Messages of a stream that wait to be written; with more, the broker sends no further ones, as to
// a slow reader over gRPC.
inline constexpr size_t kMaxOutputBytes = 256 << 10;
// One read, and one write.
inline constexpr size_t kReadBytes = 16 << 10;
inline constexpr size_t kWriteBytes = 256 << 10;

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_BOUNDS_H_
