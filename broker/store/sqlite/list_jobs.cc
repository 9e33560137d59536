// Reader::ListJobs: a bounded walk through one index, newest jobs first.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/store/job_view.h"
#include "broker/store/list_limits.h"
#include "broker/store/page_token.h"
#include "broker/store/sqlite/job_row.h"
#include "broker/store/sqlite/reader.h"
#include "broker/store/sqlite/schema.h"

namespace muster::store {
namespace {

// Blocks of jobs looked up for one page of a list by time: a million jobs.
constexpr int kMaxBlocks = 1000;

}  // namespace

struct Reader::Listing {
  const contract::Filter& filter;
  const ListPlan plan;
  const size_t page_size;
  const bool include_spec;

  JobPage page;
  size_t bytes = 0;
  int scanned = 0;
  uint64_t resume_before = 0;  // not 0: the page is full, the next one has lower ids than this

  bool full() const {
    return page.jobs.size() >= page_size || scanned >= kMaxScannedJobs || bytes >= kMaxPageBytes;
  }
};

absl::StatusOr<JobPage> Reader::ListJobs(const contract::Filter& filter, int page_size,
                                         const std::string& page_token, bool include_spec) {
  absl::StatusOr<uint64_t> before = ReadPageToken(instance_, filter, page_token);
  if (!before.ok()) return before.status();
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  Listing listing{filter, PlanFor(filter), static_cast<size_t>(page_size), include_spec, {}, 0, 0,
                  0};
  uint64_t beyond_ranges = 0;
  absl::StatusOr<std::vector<Range>> ranges = RangesFor(listing.plan, *before, &beyond_ranges);
  if (!ranges.ok()) return ranges.status();
  for (Range range : *ranges) {
    if (absl::Status status = ListRange(range, &listing); !status.ok()) return status;
    if (listing.resume_before != 0) break;
  }
  if (listing.resume_before == 0) listing.resume_before = beyond_ranges;
  if (listing.resume_before != 0) {
    listing.page.next_page_token = MakePageToken(instance_, filter, listing.resume_before);
  }
  return std::move(listing.page);
}

absl::StatusOr<std::vector<Reader::Range>> Reader::RangesFor(const ListPlan& plan, uint64_t before,
                                                             uint64_t* next) {
  *next = 0;
  // SQLite's integers have a sign.
  before = std::min<uint64_t>(before, std::numeric_limits<int64_t>::max());
  if (!plan.has_times()) return std::vector<Range>{{0, before}};
  std::vector<Range> ranges;
  ScopedReset reset(&blocks_);
  blocks_.Start()
      .Bind(before / kBlockJobs)
      .Bind(plan.from_unix_micros)
      .Bind(plan.to_unix_micros)
      .Bind(kMaxBlocks);
  int found = 0;
  while (true) {
    absl::StatusOr<bool> row = blocks_.Step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    ++found;
    const uint64_t first = static_cast<uint64_t>(blocks_.Int(0)) * kBlockJobs;
    const uint64_t end = first + kBlockJobs;
    if (!ranges.empty() && ranges.back().first == end) {
      ranges.back().first = first;
    } else {
      ranges.push_back({first, std::min(end, before)});
    }
  }
  if (found == kMaxBlocks) *next = ranges.back().first;
  return ranges;
}

absl::StatusOr<Statement*> Reader::ListStatement(ListPlan::Index index) {
  auto it = lists_.find(index);
  if (it == lists_.end()) {
    absl::StatusOr<Statement> prepared = database_->Prepare(SqlFor(index, kJobColumns));
    if (!prepared.ok()) return prepared.status();
    it = lists_.emplace(index, *std::move(prepared)).first;
  }
  return &it->second;
}

absl::Status Reader::ListRange(Range range, Listing* listing) {
  const ListPlan& plan = listing->plan;
  absl::StatusOr<Statement*> prepared = ListStatement(plan.index);
  if (!prepared.ok()) return prepared.status();
  Statement& rows = **prepared;
  ScopedReset reset(&rows);
  rows.Start();
  if (plan.index == ListPlan::Index::kLabel) rows.Bind(std::string_view(plan.key));
  if (plan.index == ListPlan::Index::kState) {
    rows.Bind(static_cast<int>(plan.state));
  } else if (plan.index != ListPlan::Index::kNone) {
    rows.Bind(std::string_view(plan.value));
  }
  rows.Bind(range.end).Bind(range.first);
  v1::Job job;
  while (true) {
    absl::StatusOr<bool> row = rows.Step();
    if (!row.ok() || !*row) return row.status();
    job.Clear();
    uint32_t runs = 0;
    ReadJobRow(rows, &job, &runs);
    if (listing->full()) {
      listing->resume_before = job.id() + 1;
      return absl::OkStatus();
    }
    ++listing->scanned;
    if (!listing->filter.Matches(job)) continue;
    absl::Status status;
    if (listing->include_spec) status = ReadSpec(job.id(), job.mutable_spec());
    if (status.ok()) status = ReadLatestRun(runs, &job);
    if (!status.ok()) return status;
    listing->bytes += job.ByteSizeLong();
    listing->page.jobs.push_back(std::move(job));
  }
}

}  // namespace muster::store
