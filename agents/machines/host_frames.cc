#include "agents/machines/host_frames.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "agents/machines/record.h"

namespace muster::machines {
namespace {

// Two numbers, a space and the end of the line.
constexpr size_t kMaxLineBytes = 32;

// Returns "HEAD-BYTES BODY-BYTES\n", and both.
std::string EncodeFrame(const Record& head, std::string_view body) {
  const std::string encoded = head.Encode();
  std::string bytes = std::to_string(encoded.size()) + " " + std::to_string(body.size()) + "\n";
  return bytes.append(encoded).append(body);
}

// Takes a number and the character behind it away from the text.
std::optional<size_t> TakeNumber(std::string_view* text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end == text->data() + text->size()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()) + 1);
  return number;
}

}  // namespace

std::string HostRequest::Encode() const {
  Record head;
  head.Add("id", id);
  head.Add("patience_ms", patience_ms);
  for (const std::string& word : words) head.Add("word", word);
  return EncodeFrame(head, input);
}

std::optional<HostRequest> HostRequest::Decode(HostFrame frame) {
  const std::optional<Record> head = Record::Decode(frame.head);
  if (!head.has_value()) return std::nullopt;
  return HostRequest{.id = head->Number("id"),
                     .patience_ms = head->Number("patience_ms"),
                     .words = head->All("word"),
                     .input = std::move(frame.body)};
}

std::string HostAnswer::Encode() const {
  Record head;
  head.Add("id", id);
  head.Add("exit_code", exit_code);
  head.Add("signal", signal);
  std::string text = complaint;
  std::replace(text.begin(), text.end(), '\0', ' ');
  head.Add("complaint", text);
  return EncodeFrame(head, output);
}

std::optional<HostAnswer> HostAnswer::Decode(HostFrame frame) {
  const std::optional<Record> head = Record::Decode(frame.head);
  if (!head.has_value()) return std::nullopt;
  return HostAnswer{.id = head->Number("id"),
                    .exit_code = static_cast<int>(head->Number("exit_code")),
                    .signal = static_cast<int>(head->Number("signal")),
                    .complaint = head->Text("complaint"),
                    .output = std::move(frame.body)};
}

std::optional<HostFrame> FrameReader::Next() {
  std::string_view rest = std::string_view(bytes_).substr(begin_);
  const size_t line_end = rest.substr(0, kMaxLineBytes).find('\n');
  if (is_broken_ || line_end == std::string_view::npos) {
    is_broken_ = is_broken_ || rest.size() >= kMaxLineBytes;
    return std::nullopt;
  }
  const size_t line_bytes = line_end + 1;
  const std::optional<size_t> head = TakeNumber(&rest);
  const std::optional<size_t> body = TakeNumber(&rest);
  is_broken_ =
      !head.has_value() || !body.has_value() || *head > kMaxFrameBytes || *body > kMaxFrameBytes;
  if (is_broken_ || rest.size() < *head + *body) return std::nullopt;
  HostFrame frame = {.head = std::string(rest.substr(0, *head)),
                     .body = std::string(rest.substr(*head, *body))};
  begin_ += line_bytes + *head + *body;
  // The bytes that were taken go once they are the larger part: many frames at once cost no copies.
  if (begin_ * 2 >= bytes_.size()) {
    bytes_.erase(0, begin_);
    begin_ = 0;
  }
  return frame;
}

}  // namespace muster::machines
