#include "broker/http/error_body.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "broker/http/codes.h"
#include "broker/http/json_codec.h"
#include "contract/text.h"

namespace muster::http {
namespace {

std::string Base64WithoutPadding(std::string_view bytes) {
  std::string text = absl::Base64Escape(ToAbsl(bytes));
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::string DetailBody(std::string_view type_url, std::string_view value) {
  const std::string_view type = type_url.substr(type_url.rfind('/') + 1);
  const absl::StatusOr<std::string> debug = ToJson(type, value);
  return fmt::format(R"({{"type":{},"value":"{}"{}}})", JsonString(type),
                     Base64WithoutPadding(value),
                     debug.ok() ? fmt::format(R"(,"debug":{})", *debug) : "");
}

}  // namespace

std::string JsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ErrorBody(const absl::Status& status) {
  std::string details;
  status.ForEachPayload([&details](absl::string_view type_url, const absl::Cord& payload) {
    if (!details.empty()) details += ',';
    details += DetailBody(ToStd(type_url), std::string(payload));
  });
  if (!details.empty()) details = fmt::format(R"(,"details":[{}])", details);
  return fmt::format(R"({{"code":"{}","message":{}{}}})", ConnectCode(status.code()),
                     JsonString(ToStd(status.message())), details);
}

std::string EndOfStream(const absl::Status& status) {
  return status.ok() ? "{}" : fmt::format(R"({{"error":{}}})", ErrorBody(status));
}

}  // namespace muster::http
