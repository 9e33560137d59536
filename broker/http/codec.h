// The forms in which messages come and go, by the content types that name them. Pure.
#ifndef MUSTER_BROKER_HTTP_CODEC_H_
#define MUSTER_BROKER_HTTP_CODEC_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "broker/http/methods.h"

namespace muster::http {

struct Codec {
  bool is_json = false;
  bool is_stream = false;

  // "application/connect+json"
  std::string_view ContentType() const;
};

// Returns nothing if the broker does not know the type. Parameters, such as a charset, are ignored.
std::optional<Codec> CodecOf(std::string_view content_type);

// Returns the content types that a method takes, for a header.
std::string_view TypesOf(const Method& method);

// These turn a request into the form of gRPC, and an answer into the form that the caller wants.
absl::StatusOr<std::string> Decode(const Codec& codec, const Method& method,
                                   std::string_view message);
absl::StatusOr<std::string> Encode(const Codec& codec, const Method& method, std::string message);

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_CODEC_H_
