#include "agents/machines/host_report.h"

#include "agents/machines/record.h"

namespace muster::machines {
namespace {

constexpr char kLetters[] = "acsev";  // by stage
constexpr char kDigits[] = "0123456789abcdef";

// It is a record in a record: its NUL bytes would end the field.
std::string ToHex(std::string_view bytes) {
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string FromHex(std::string_view hex) {
  const auto digit = [](char c) {
    return static_cast<unsigned>(std::string_view(kDigits).find(c)) & 15U;
  };
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  return bytes;
}

std::string EncodeRank(const RankReport& rank) {
  Record record;
  record.Add("run", rank.run_key);
  record.Add("stage", std::string(1, LetterOf(rank.stage)));
  if (rank.started.has_value()) record.Add("started", ToHex(rank.started->Encode()));
  if (rank.exit.has_value()) record.Add("exit", ToHex(rank.exit->Encode()));
  if (!rank.detail.empty()) record.Add("detail", rank.detail);
  return record.Encode();
}

std::optional<RankReport> DecodeRank(std::string_view bytes) {
  const std::optional<Record> record = Record::Decode(bytes);
  if (!record.has_value()) return std::nullopt;
  const std::string letter = record->Text("stage");
  const std::optional<HostStage> stage = StageOf(letter.empty() ? ' ' : letter[0]);
  if (!stage.has_value()) return std::nullopt;
  RankReport rank = {.run_key = record->Text("run"), .stage = *stage};
  if (record->Has("started")) rank.started = Started::Decode(FromHex(record->Text("started")));
  if (record->Has("exit")) rank.exit = ExitRecord::Decode(FromHex(record->Text("exit")));
  rank.detail = record->Text("detail");
  if (rank.stage == HostStage::kEnded && !rank.exit.has_value()) return std::nullopt;
  return rank;
}

}  // namespace

char LetterOf(HostStage stage) { return kLetters[static_cast<int>(stage)]; }

std::optional<HostStage> StageOf(char letter) {
  const size_t at = std::string_view(kLetters).find(letter);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<HostStage>(at);
}

std::string HostReport::Encode() const {
  Record record;
  record.Add("boot", boot_id);
  record.Add("time", time_us);
  for (const RankReport& rank : runs) record.Add("rank", ToHex(EncodeRank(rank)));
  return record.Encode();
}

std::optional<HostReport> HostReport::Decode(std::string_view bytes) {
  const std::optional<Record> record = Record::Decode(bytes);
  if (!record.has_value()) return std::nullopt;
  HostReport report = {
      .boot_id = record->Text("boot"), .time_us = record->Number("time"), .runs = {}};
  for (const std::string& hex : record->All("rank")) {
    std::optional<RankReport> rank = DecodeRank(FromHex(hex));
    if (!rank.has_value()) return std::nullopt;
    report.runs.push_back(*std::move(rank));
  }
  return report;
}

}  // namespace muster::machines
