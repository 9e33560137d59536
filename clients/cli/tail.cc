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

std::vector<std::string> LastLines(client::Client& client, v1::ReadLogRequest request, size_t lines,
                                   size_t max_bytes, absl::Time deadline) {
  request.set_follow(false);
  // As much of the end as the lines can need; each has its line end, too.
  const size_t most = lines * (max_bytes + 1);
  std::string end;
  const auto reader = client.ReadLog(request, deadline);
  while (true) {
    const auto piece = reader->Next();
    if (!piece.ok()) return {};
    if (!piece->has_value()) break;
    end += (*piece)->data();
    if (end.size() > most) end.erase(0, end.size() - most);
  }
  while (end.ends_with('\n')) end.pop_back();
  std::vector<std::string> last;
  std::string_view rest = end;
  while (!rest.empty() && last.size() < lines) {
    const size_t begin = rest.rfind('\n') == rest.npos ? 0 : rest.rfind('\n') + 1;
    std::string_view line = rest.substr(begin);
    if (line.size() > max_bytes) line.remove_prefix(line.size() - max_bytes);
    last.emplace(last.begin(), line);
    rest = rest.substr(0, begin == 0 ? 0 : begin - 1);
  }
  return last;
}

}  // namespace muster::cli
