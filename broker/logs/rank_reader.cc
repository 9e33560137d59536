#include "broker/logs/rank_reader.h"

#include <algorithm>
#include <utility>

namespace muster::logs {
namespace {

// Marks read ahead: 8 KiB.
constexpr size_t kMarksReadAhead = 512;

uint64_t At(const OrderMark& mark, v1::LogStream stream) {
  return stream == v1::LOG_STREAM_STDOUT ? mark.out : mark.err;
}

}  // namespace

RankReader::RankReader(const Archive* archive, RankId rank, absl::Span<const v1::LogStream> streams)
    : archive_(archive), rank_(rank) {
  for (const v1::LogStream stream : streams) outputs_.push_back({.stream = stream, .facts = {}});
}

void RankReader::Seek(v1::LogStream stream, uint64_t offset) {
  for (Output& output : outputs_) {
    if (output.stream == stream) output.position = offset;
  }
}

const RankReader::Output& RankReader::Find(v1::LogStream stream) const {
  return outputs_.back().stream == stream ? outputs_.back() : outputs_.front();
}

v1::LogEnd RankReader::End(v1::LogStream stream) const { return Find(stream).facts.end; }
uint64_t RankReader::Position(v1::LogStream stream) const { return Find(stream).position; }

absl::StatusOr<std::optional<Piece>> RankReader::Next(size_t max_bytes, bool may_tear) {
  holds_back_ = false;
  // The sizes are read before the marks: all bytes within the sizes then have their marks.
  if (absl::Status status = LookAtLogs(); !status.ok()) return status;
  const absl::StatusOr<Output*> turn = Turn();
  if (!turn.ok()) return turn.status();
  if (*turn == nullptr) return std::nullopt;
  if (last_ != nullptr && last_ != *turn && last_->is_within_line) {
    if (last_->position < last_->facts.size) return Give(last_, max_bytes, /*only_the_line=*/true);
    if (!may_tear && last_->facts.end == v1::LOG_END_MORE_LATER) {
      holds_back_ = true;
      return std::nullopt;
    }
  }
  const uint64_t bytes = std::min<uint64_t>(max_bytes, (*turn)->goal - (*turn)->position);
  return Give(*turn, bytes, /*only_the_line=*/false);
}

absl::Status RankReader::LookAtLogs() {
  for (Output& output : outputs_) {
    const auto facts = archive_->Look(rank_.Log(output.stream));
    if (!facts.ok()) return facts.status();
    output.facts = *facts;
  }
  return absl::OkStatus();
}

absl::StatusOr<RankReader::Output*> RankReader::Turn() {
  while (true) {
    const absl::StatusOr<const OrderMark*> mark = NextMark();
    if (!mark.ok()) return mark.status();
    bool is_reached = true;
    bool has_more = false;
    for (Output& output : outputs_) {
      const uint64_t size = output.facts.size;
      output.goal = *mark == nullptr ? size : std::min(size, At(**mark, output.stream));
      if (output.position < output.goal) return &output;
      is_reached = is_reached && (*mark == nullptr || size >= At(**mark, output.stream));
      has_more = has_more || output.position < size;
    }
    if (*mark == nullptr) return nullptr;
    // The logs were looked at before they reached the mark, unless they began again after an error
    // of the disk: then the order is lost, but no byte is.
    if (!is_reached && !has_more) return nullptr;
    marks_.pop_front();
  }
}

absl::StatusOr<const OrderMark*> RankReader::NextMark() {
  if (outputs_.size() < 2) return nullptr;
  while (marks_.empty()) {
    auto read = archive_->ReadOrder(rank_, next_mark_, kMarksReadAhead);
    if (!read.ok()) return read.status();
    if (read->next == next_mark_) return nullptr;
    next_mark_ = read->next;
    marks_.assign(read->marks.begin(), read->marks.end());
  }
  return &marks_.front();
}

absl::StatusOr<std::optional<Piece>> RankReader::Give(Output* output, uint64_t bytes,
                                                      bool only_the_line) {
  auto read = archive_->Read(rank_.Log(output->stream), output->position, bytes);
  if (!read.ok()) return read.status();
  // The log expired between the two looks.
  if (read->data.empty()) {
    output->facts.end = read->end;
    return std::nullopt;
  }
  const size_t line_end = only_the_line ? read->data.find('\n') : std::string::npos;
  if (line_end != std::string::npos) read->data.resize(line_end + 1);
  // A line longer than a piece may be torn.
  const bool is_long = only_the_line && read->data.size() >= bytes;
  output->is_within_line = !is_long && read->data.back() != '\n';
  last_ = output;
  Piece piece{.stream = output->stream, .offset = output->position, .data = std::move(read->data)};
  output->position += piece.data.size();
  return piece;
}

}  // namespace muster::logs
