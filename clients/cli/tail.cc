#include "clients/cli/tail.h"

#include <string_view>
#include <utility>

#include "absl/time/time.h"

namespace muster::cli {

std::vector<std::string> LastLines(client::Client& client, v1::ReadLogRequest request, size_t lines,
                                   size_t max_bytes, absl::Time deadline) {
  request.set_follow(false);
  request.set_tail_lines(static_cast<uint32_t>(lines));
  // The part of the end that the lines can need at most; each has its line end, too.
  const size_t most = lines * (max_bytes + 1);
  std::string end;
  v1::LogStream stream = v1::LOG_STREAM_UNSPECIFIED;  // of the last piece
  const auto reader = client.ReadLog(request, deadline);
  while (true) {
    const auto piece = reader->Next();
    if (!piece.ok()) return {};
    if (!piece->has_value()) break;
    // A line that one output left unfinished does not run on into the other one's.
    const bool is_other = std::exchange(stream, (*piece)->stream()) != (*piece)->stream();
    if (is_other && !end.empty() && !end.ends_with('\n')) end += '\n';
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
