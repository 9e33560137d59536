#include "broker/http/codec.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "broker/http/json_codec.h"
#include "contract/text.h"

namespace muster::http {
namespace {

struct Form {
  std::string_view type;
  Codec codec;
};

constexpr Form kForms[] = {
    {"application/json", {.is_json = true, .is_stream = false}},
    {"application/proto", {.is_json = false, .is_stream = false}},
    {"application/connect+json", {.is_json = true, .is_stream = true}},
    {"application/connect+proto", {.is_json = false, .is_stream = true}},
};

}  // namespace

std::string_view Codec::ContentType() const {
  for (const Form& form : kForms) {
    if (form.codec.is_json == is_json && form.codec.is_stream == is_stream) return form.type;
  }
  return {};
}

std::optional<Codec> CodecOf(std::string_view content_type) {
  const absl::string_view type =
      absl::StripAsciiWhitespace(ToAbsl(content_type.substr(0, content_type.find(';'))));
  for (const Form& form : kForms) {
    if (absl::EqualsIgnoreCase(type, ToAbsl(form.type))) return form.codec;
  }
  return std::nullopt;
}

std::string_view TypesOf(const Method& method) {
  return method.IsUnary() ? "application/json, application/proto"
                          : "application/connect+json, application/connect+proto";
}

absl::StatusOr<std::string> Decode(const Codec& codec, const Method& method,
                                   std::string_view message) {
  if (codec.is_json) return FromJson(method.input, message);
  return std::string(message);
}

absl::StatusOr<std::string> Encode(const Codec& codec, const Method& method, std::string message) {
  if (codec.is_json) return ToJson(method.output, message);
  return message;
}

}  // namespace muster::http
