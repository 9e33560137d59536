#include "clients/cli/tail.h"

#include <deque>
#include <string_view>

#include "absl/time/time.h"

namespace muster::cli {

absl::Status SkipToTail(client::Client& client, uint64_t lines, v1::ReadLogRequest* request) {
  v1::ReadLogRequest all = *request;
  all.set_follow(false);
  std::deque<uint64_t> begins;  // of the last lines, the first of them first
  bool is_new_line = true;
  const auto reader = client.ReadLog(all, absl::InfiniteFuture());
  while (true) {
    const auto piece = reader->Next();
    if (!piece.ok()) return piece.status();
    if (!piece->has_value()) break;
    const std::string_view data = (*piece)->data();
    for (size_t at = 0; at < data.size();) {
      if (is_new_line) begins.push_back((*piece)->offset() + at);
      if (begins.size() > lines) begins.pop_front();
      const size_t end = data.find('\n', at);
      is_new_line = end != std::string_view::npos;
      at = is_new_line ? end + 1 : data.size();
    }
  }
  if (!begins.empty()) request->set_offset(begins.front());
  return absl::OkStatus();
}

}  // namespace muster::cli
