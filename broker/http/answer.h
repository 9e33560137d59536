// The bytes of answers in HTTP/1.1. Pure.
#ifndef MUSTER_BROKER_HTTP_ANSWER_H_
#define MUSTER_BROKER_HTTP_ANSWER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace muster::http {

struct AnswerHead {
  int http_status = 200;
  std::string_view content_type = {};  // empty: there is no body
  std::string_view headers = {};       // more lines, each with its end
  std::string_view cache = "no-store";
  // Nothing means that the body comes in chunks.
  std::optional<size_t> content_length = 0;
  bool keeps_alive = true;
};

std::string HeadText(const AnswerHead& head, absl::Time now);

// Appends a chunk of a body that comes in chunks; an empty one would end it.
void AppendChunk(std::string_view bytes, std::string* out);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_ANSWER_H_
