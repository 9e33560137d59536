#include "broker/core/fingerprint.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "contract/defaults.h"
#include "digest/sha256.h"

namespace muster::core {
namespace {

// A spec of some lines, with its messages and strings. A larger one takes memory from the heap.
constexpr size_t kArenaBytes = 4096;

RequestKey Digest(std::string_view bytes) {
  // Each thread has one, because making one costs as much as a short digest.
  thread_local Sha256 sha256;
  sha256.Add(bytes);
  const std::string digest = sha256.FinishBytes();
  RequestKey key;
  std::memcpy(&key.high, digest.data(), sizeof(key.high));
  std::memcpy(&key.low, digest.data() + sizeof(key.high), sizeof(key.low));
  return key;
}

}  // namespace

RequestKey RequestKeyOf(std::string_view project, std::string_view request_id) {
  std::string text;
  text.reserve(project.size() + 1 + request_id.size());
  text.append(project).append(1, '\0').append(request_id);
  return Digest(text);
}

std::string DeterministicBytes(const v1::JobSpec& spec) {
  // The memory has the right size at once, which a stream into a string would find by growing it.
  std::string bytes(spec.ByteSizeLong(), '\0');
  google::protobuf::io::ArrayOutputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  spec.SerializeWithCachedSizes(&coded);
  coded.Trim();
  return bytes;
}

Fingerprint FingerprintOf(const v1::JobSpec& spec) { return Digest(DeterministicBytes(spec)).low; }

Fingerprint RequestFingerprintOf(const v1::JobSpec& sent) {
  // A copy on an arena costs half as much, and every job that is submitted with a request_id takes
  // one.
  alignas(std::max_align_t) char block[kArenaBytes];
  google::protobuf::ArenaOptions options;
  options.initial_block = block;
  options.initial_block_size = sizeof(block);
  google::protobuf::Arena arena(options);
  auto* spec = google::protobuf::Arena::CreateMessage<v1::JobSpec>(&arena);
  *spec = sent;
  contract::TakeOutDefaultsOfSchema2(spec);
  return FingerprintOf(*spec);
}

}  // namespace muster::core
