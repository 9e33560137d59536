#include "clients/cli/log_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "contract/characters.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

Json ObjectOf(uint64_t job, uint32_t run, uint32_t rank, v1::LogStream stream, uint64_t offset) {
  Json object;
  if (job > 0) object["job"] = fmt::format("{}", job);
  object["run"] = run;
  object["rank"] = rank;
  object["stream"] = v1::LogStream_Name(stream);
  object["offset"] = fmt::format("{}", offset);
  return object;
}

// Returns how much of a long line becomes an object of its own.
size_t BytesOfCut(std::string_view line) {
  constexpr size_t kMaxCharacterBytes = 4;
  const size_t bytes = contract::CutBetweenCharacters(line, kMaxLogObjectBytes).size();
  const bool is_utf8 = bytes + kMaxCharacterBytes > kMaxLogObjectBytes;
  return is_utf8 ? bytes : kMaxLogObjectBytes;
}

}  // namespace

std::string LogObjects::Take(const Source& source, size_t bytes, Line* line) const {
  if (bytes == 0) return "";
  const std::string data = line->data.substr(0, bytes);
  Json object = ObjectOf(job_, run_, source.first, source.second, line->offset);
  if (contract::IsUtf8(data)) {
    object["data"] = data;
  } else {
    object["data_base64"] = absl::Base64Escape(data);
  }
  line->data.erase(0, bytes);
  line->offset += bytes;
  return object.dump() + "\n";
}

std::string LogObjects::Next(uint32_t rank, v1::LogStream stream, uint64_t offset,
                             std::string_view data) {
  const Source source{rank, stream};
  Line& line = lines_[source];
  std::string out;
  if (offset != line.offset + line.data.size()) {
    out += Take(source, line.data.size(), &line);
    line.offset = offset;
  }
  while (!data.empty()) {
    const size_t end = data.find('\n');
    const std::string_view part = data.substr(0, end == data.npos ? end : end + 1);
    line.data += part;
    data.remove_prefix(part.size());
    while (line.data.size() > kMaxLogObjectBytes) {
      out += Take(source, BytesOfCut(line.data), &line);
    }
    if (end != data.npos) out += Take(source, line.data.size(), &line);
  }
  return out;
}

std::string LogObjects::End(uint32_t rank, v1::LogStream stream, v1::LogEnd end) {
  const Source source{rank, stream};
  Line& line = lines_[source];
  const std::string rest = Take(source, line.data.size(), &line);
  Json object = ObjectOf(job_, run_, rank, stream, line.offset);
  object["end"] = v1::LogEnd_Name(end);
  lines_.erase(source);
  return rest + object.dump() + "\n";
}

std::string LogObjects::Flush() {
  std::string out;
  for (auto& [source, line] : lines_) out += Take(source, line.data.size(), &line);
  lines_.clear();
  return out;
}

}  // namespace muster::cli
