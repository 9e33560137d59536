#include "broker/core/fingerprint.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/evp.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "contract/defaults.h"

namespace muster::core {
namespace {

// A spec of some lines, with its messages and strings. A larger one takes memory from the heap.
constexpr size_t kArenaBytes = 4096;

RequestKey Digest(std::string_view bytes) {
  // Fetched once: a fetch for each digest costs more than the digest.
  static EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, sha256, nullptr) != 1) std::abort();
  RequestKey key;
  std::memcpy(&key.high, digest, sizeof(key.high));
  std::memcpy(&key.low, digest + sizeof(key.high), sizeof(key.low));
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
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    spec.SerializeToCodedStream(&coded);
  }
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
