#include "broker/http/answer.h"

#include <fmt/format.h>

#include <iterator>

#include "broker/http/codes.h"

namespace muster::http {

std::string HeadText(const AnswerHead& head, absl::Time now) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nDate: {}\r\n", head.http_status,
                 ReasonPhrase(head.http_status),
                 absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone()));
  if (!head.content_type.empty()) fmt::format_to(out, "Content-Type: {}\r\n", head.content_type);
  if (!head.content_length) {
    text += "Transfer-Encoding: chunked\r\n";
  } else if (head.http_status != 204 && head.http_status != 304) {
    fmt::format_to(out, "Content-Length: {}\r\n", *head.content_length);
  }
  fmt::format_to(out, "Cache-Control: {}\r\nX-Content-Type-Options: nosniff\r\n", head.cache);
  text += head.headers;
  if (!head.keeps_alive) text += "Connection: close\r\n";
  text += "\r\n";
  return text;
}

void AppendChunk(std::string_view bytes, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "{:x}\r\n", bytes.size());
  out->append(bytes);
  out->append("\r\n");
}

}  // namespace muster::http
