#include "broker/http/json_codec.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>

#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::http {
namespace {

namespace pb = google::protobuf;

constexpr char kUrlPrefix[] = "type.googleapis.com";
// The parser's message quotes the text; a longer message helps nobody.
constexpr size_t kMaxWords = 500;

// It has no state of its own: any thread may ask it.
pb::util::TypeResolver* Types() {
  static const std::unique_ptr<pb::util::TypeResolver> types(
      pb::util::NewTypeResolverForDescriptorPool(kUrlPrefix, pb::DescriptorPool::generated_pool()));
  return types.get();
}

std::string UrlOf(std::string_view type) { return fmt::format("{}/{}", kUrlPrefix, type); }

}  // namespace

absl::StatusOr<std::string> FromJson(std::string_view type, std::string_view json) {
  std::string bytes;
  // An empty body is the message without fields, as in the binary form.
  if (json.empty()) return bytes;
  const pb::util::Status status = pb::util::JsonToBinaryString(
      Types(), UrlOf(type), pb::StringPiece(json.data(), json.size()), &bytes);
  if (status.ok()) return bytes;
  const std::string words = status.message().ToString();
  return contract::Error(absl::StatusCode::kInvalidArgument, "BAD_JSON",
                         fmt::format("the body is not the JSON of a {}: {}", type,
                                     contract::CutBetweenCharacters(words, kMaxWords)));
}

absl::StatusOr<std::string> ToJson(std::string_view type, std::string_view bytes) {
  std::string json;
  const pb::util::Status status =
      pb::util::BinaryToJsonString(Types(), UrlOf(type), std::string(bytes), &json);
  if (status.ok()) return json;
  return absl::InternalError(ToAbsl(
      fmt::format("the answer could not be written as JSON: {}", status.message().ToString())));
}

}  // namespace muster::http
