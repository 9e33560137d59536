#include "broker/logs/tail_search.h"

#include <algorithm>
#include <string>
#include <utility>

namespace muster::logs {
namespace {

constexpr size_t kMarksPerCall = 4096;
constexpr uint64_t kBytesPerRead = 64 << 10;
// A read costs this many bytes beyond its own, which bounds a search through short parts.
constexpr uint64_t kReadCost = 4096;

}  // namespace

TailSearch::TailSearch(const Archive* archive, RankId rank, absl::Span<const v1::LogStream> streams,
                       uint64_t lines)
    : archive_(archive), rank_(rank), lines_(lines) {
  for (const v1::LogStream stream : streams) outputs_.push_back({.stream = stream});
}

uint64_t TailSearch::Begin(v1::LogStream stream) const {
  return outputs_.back().stream == stream ? outputs_.back().begin : outputs_.front().begin;
}

absl::StatusOr<bool> TailSearch::Continue(size_t max_bytes) {
  if (!std::exchange(started_, true)) {
    if (absl::Status status = Start(); !status.ok()) return status;
  }
  uint64_t cost = 0;
  while (!parts_.empty() && found_ < lines_) {
    if (cost >= max_bytes) return false;
    const absl::StatusOr<uint64_t> read = CountBack(&parts_.back());
    if (!read.ok()) return read.status();
    cost += *read + kReadCost;
    if (parts_.back().begin == parts_.back().end) parts_.pop_back();
  }
  return true;
}

absl::Status TailSearch::Start() {
  for (Output& output : outputs_) {
    const auto facts = archive_->Look(rank_.Log(output.stream));
    if (!facts.ok()) return facts.status();
    output.size = facts->size;
    output.begin = facts->size;
  }
  auto marks = AllMarks();
  if (!marks.ok()) return marks.status();
  std::vector<uint64_t> at(outputs_.size(), 0);
  const auto add = [&](size_t output, uint64_t end) {
    end = std::min(end, outputs_[output].size);
    if (at[output] >= end) return;
    parts_.push_back({.output = output, .begin = at[output], .end = end});
    at[output] = end;
  };
  for (const OrderMark& mark : *marks) {
    add(0, mark.out);
    add(1, mark.err);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) add(i, outputs_[i].size);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OrderMark>> TailSearch::AllMarks() const {
  std::vector<OrderMark> all;
  uint64_t next = 0;
  while (outputs_.size() == 2) {
    const auto read = archive_->ReadOrder(rank_, next, kMarksPerCall);
    if (!read.ok()) return read.status();
    if (read->next == next) break;
    next = read->next;
    all.insert(all.end(), read->marks.begin(), read->marks.end());
  }
  return all;
}

absl::StatusOr<uint64_t> TailSearch::CountBack(Part* part) {
  Output& output = outputs_[part->output];
  const uint64_t first =
      part->end - part->begin > kBytesPerRead ? part->end - kBytesPerRead : part->begin;
  // A line begins after a line end.
  const uint64_t base = first == 0 ? 0 : first - 1;
  const auto read = archive_->Read(rank_.Log(output.stream), base, part->end - base);
  if (!read.ok()) return read.status();
  // The log expired meanwhile, so nothing is left to begin with.
  if (read->data.size() < part->end - base) {
    parts_.assign(1, Part{});
    return 0;
  }
  for (uint64_t place = part->end; place-- > first && found_ < lines_;) {
    if (place != 0 && read->data[place - 1 - base] != '\n') continue;
    output.begin = place;
    ++found_;
  }
  part->end = first;
  return read->data.size();
}

}  // namespace muster::logs
