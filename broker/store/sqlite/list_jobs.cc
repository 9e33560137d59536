// Implements Reader::ListJobs, by bounded walks through indexes, in the order of the list. If an
// index finds only a few jobs in another order, these are sorted instead.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "broker/store/job_view.h"
#include "broker/store/list_limits.h"
#include "broker/store/page_token.h"
#include "broker/store/sqlite/job_row.h"
#include "broker/store/sqlite/reader.h"
#include "broker/store/sqlite/schema.h"
#include "contract/spec_mask.h"

namespace muster::store {
namespace {

// One page of a list by time looks up at most so many blocks of jobs, which hold a million jobs.
constexpr int kMaxBlocks = 1000;

// Joins `SELECT what FROM ... WHERE ... AND more` of all accesses.
std::string SelectAll(const std::vector<Access>& accesses, std::string_view what,
                      std::string_view more) {
  std::vector<std::string> parts;
  for (const Access& access : accesses) {
    parts.push_back(fmt::format("SELECT {} {} WHERE {}{}", what, access.from, access.where,
                                fmt::format(fmt::runtime(more), access.id)));
  }
  return fmt::format("{}", fmt::join(parts, " UNION ALL "));
}

}  // namespace

struct Reader::Listing {
  const ListQuery& query;
  const ListPlan plan;
  const std::optional<contract::JobPlace> after;  // place at which the last page ended

  JobPage page;
  size_t bytes = 0;
  int scanned = 0;
  contract::JobPlace last;  // place of the last job that was looked at
  bool is_cut = false;      // the page is full; the next one begins after `last`

  bool full() const {
    return page.jobs.size() >= static_cast<size_t>(query.page_size) || scanned >= kMaxScannedJobs ||
           bytes >= kMaxPageBytes;
  }
};

absl::StatusOr<JobPage> Reader::ListJobs(const Scope& scope, ListQuery query) {
  query.filter = scope.Narrow(std::move(query.filter));
  auto after = ReadPageToken(instance_, query.filter, query.order, query.page_token);
  if (!after.ok()) return after.status();
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  Listing listing{query, PlanFor(query.filter), *after, {}, 0, 0, {}, false};
  absl::StatusOr<bool> is_sorted = SortFew(&listing);
  if (!is_sorted.ok()) return is_sorted.status();
  if (!*is_sorted) {
    const bool is_by_id = query.order.field == contract::JobOrder::Field::kId;
    absl::Status status = is_by_id ? ListById(&listing) : ListInOrder(&listing);
    if (!status.ok()) return status;
  }
  if (listing.is_cut) {
    listing.page.next_page_token =
        MakePageToken(instance_, query.filter, query.order, listing.last);
  }
  return std::move(listing.page);
}

absl::StatusOr<Statement*> Reader::Prepared(const std::string& sql) {
  // Enough for all indexes, orders, directions and sets of states.
  constexpr size_t kMaxKept = 200;
  auto it = lists_.find(sql);
  if (it == lists_.end()) {
    absl::StatusOr<Statement> prepared = database_->Prepare(sql);
    if (!prepared.ok()) return prepared.status();
    if (lists_.size() >= kMaxKept) lists_.clear();
    it = lists_.emplace(sql, *std::move(prepared)).first;
  }
  return &it->second;
}

// ---- few jobs, sorted here

absl::StatusOr<bool> Reader::SortFew(Listing* listing) {
  const bool is_by_id = listing->query.order.field == contract::JobOrder::Field::kId;
  std::vector<Access> accesses;
  if (listing->plan.by_range) {
    accesses.push_back(*listing->plan.by_range);
  } else if (listing->plan.is_narrow && !is_by_id) {
    accesses = listing->plan.by_id;
  }
  if (accesses.empty()) return false;
  const absl::StatusOr<bool> are_few = AreFew(accesses);
  if (!are_few.ok() || !*are_few) return are_few;
  const absl::Status status = Sort(accesses, listing);
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<bool> Reader::AreFew(const std::vector<Access>& accesses) {
  absl::StatusOr<Statement*> prepared =
      Prepared(fmt::format("SELECT count(*) FROM ({} LIMIT ?)", SelectAll(accesses, "1", "")));
  if (!prepared.ok()) return prepared.status();
  Statement& count = **prepared;
  ScopedReset reset(&count);
  count.Start();
  for (const Access& access : accesses) BindAll(access.values, &count);
  absl::StatusOr<bool> row = count.Bind(kMaxSortedJobs + 1).Step();
  if (!row.ok()) return row.status();
  return count.Int(0) <= kMaxSortedJobs;
}

absl::Status Reader::Sort(const std::vector<Access>& accesses, Listing* listing) {
  struct Found {
    contract::JobPlace place;
    v1::Job job;
    uint32_t runs = 0;
  };
  const ListQuery& query = listing->query;
  absl::StatusOr<Statement*> prepared = Prepared(SelectAll(accesses, kJobColumns, ""));
  if (!prepared.ok()) return prepared.status();
  Statement& rows = **prepared;
  std::vector<Found> found;
  {
    ScopedReset reset(&rows);
    rows.Start();
    for (const Access& access : accesses) BindAll(access.values, &rows);
    while (true) {
      absl::StatusOr<bool> row = rows.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      Found one;
      ReadJobRow(rows, &one.job, &one.runs);
      if (!query.filter.Matches(one.job)) continue;
      one.place = contract::PlaceOf(one.job, query.order);
      if (listing->after && !contract::ComesBefore(*listing->after, one.place, query.order))
        continue;
      found.push_back(std::move(one));
    }
  }
  std::sort(found.begin(), found.end(), [&query](const Found& a, const Found& b) {
    return contract::ComesBefore(a.place, b.place, query.order);
  });
  for (Found& one : found) {
    if (listing->full()) {
      listing->is_cut = true;
      break;
    }
    absl::Status status = AddToPage(std::move(one.job), one.runs, listing);
    if (!status.ok()) return status;
    listing->last = std::move(one.place);
  }
  return absl::OkStatus();
}

// ---- by number

absl::Status Reader::ListById(Listing* listing) {
  const bool descending = listing->query.order.descending;
  IdRange ids = listing->plan.ids;
  if (listing->after && descending) ids.end = std::min(ids.end, listing->after->id);
  if (listing->after && !descending) ids.first = std::max(ids.first, listing->after->id + 1);
  if (ids.first >= ids.end) return absl::OkStatus();
  std::optional<uint64_t> go_on_after;
  absl::StatusOr<std::vector<IdRange>> ranges = RangesFor(*listing, ids, &go_on_after);
  if (!ranges.ok()) return ranges.status();
  for (const IdRange range : *ranges) {
    if (absl::Status status = ListRange(range, listing); !status.ok()) return status;
    if (listing->is_cut) return absl::OkStatus();
  }
  if (go_on_after) {
    listing->is_cut = true;
    listing->last.id = *go_on_after;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<IdRange>> Reader::RangesFor(const Listing& listing, IdRange ids,
                                                       std::optional<uint64_t>* go_on_after) {
  const ListPlan& plan = listing.plan;
  if (!plan.has_times()) return std::vector<IdRange>{ids};
  const bool descending = listing.query.order.descending;
  std::vector<IdRange> ranges;
  Statement& blocks = descending ? blocks_ : blocks_upwards_;
  ScopedReset reset(&blocks);
  blocks.Start()
      .Bind(ids.first / kBlockJobs)
      .Bind((ids.end - 1) / kBlockJobs)
      .Bind(plan.from_unix_micros)
      .Bind(plan.to_unix_micros)
      .Bind(kMaxBlocks);
  int found = 0;
  while (true) {
    absl::StatusOr<bool> row = blocks.Step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    ++found;
    const uint64_t first = static_cast<uint64_t>(blocks.Int(0)) * kBlockJobs;
    const IdRange block{std::max(first, ids.first), std::min(first + kBlockJobs, ids.end)};
    if (!ranges.empty() && ranges.back().first == block.end) {
      ranges.back().first = block.first;
    } else if (!ranges.empty() && ranges.back().end == block.first) {
      ranges.back().end = block.end;
    } else {
      ranges.push_back(block);
    }
  }
  if (found == kMaxBlocks) *go_on_after = descending ? ranges.back().first : ranges.back().end - 1;
  return ranges;
}

absl::Status Reader::ListRange(IdRange range, Listing* listing) {
  const std::vector<Access>& accesses = listing->plan.by_id;
  const std::string_view direction = listing->query.order.descending ? "DESC" : "ASC";
  // Joined parts are ordered by a column of the result.
  const std::string_view id = accesses.size() > 1 ? "1" : std::string_view(accesses[0].id);
  absl::StatusOr<Statement*> prepared = Prepared(
      fmt::format("{} ORDER BY {} {}",
                  SelectAll(accesses, kJobColumns, " AND {0} >= ? AND {0} < ?"), id, direction));
  if (!prepared.ok()) return prepared.status();
  Statement& rows = **prepared;
  ScopedReset reset(&rows);
  rows.Start();
  for (const Access& access : accesses) {
    BindAll(access.values, &rows);
    rows.Bind(range.first).Bind(range.end);
  }
  return TakeRows(rows, Walk::Skip::kNone, listing);
}

// ---- in another order

absl::Status Reader::ListInOrder(Listing* listing) {
  for (const Walk& walk : WalksFor(listing->query.order, listing->after)) {
    absl::StatusOr<Statement*> prepared =
        Prepared(fmt::format("SELECT {} {}", kJobColumns, walk.sql));
    if (!prepared.ok()) return prepared.status();
    Statement& rows = **prepared;
    ScopedReset reset(&rows);
    rows.Start();
    BindAll(walk.values, &rows);
    absl::Status status = TakeRows(rows, walk.skip, listing);
    if (!status.ok() || listing->is_cut) return status;
  }
  return absl::OkStatus();
}

// ---- common to all of them

absl::Status Reader::TakeRows(Statement& rows, Walk::Skip skip, Listing* listing) {
  const ListQuery& query = listing->query;
  v1::Job job;
  while (true) {
    absl::StatusOr<bool> row = rows.Step();
    if (!row.ok() || !*row) return row.status();
    if (listing->full()) {
      listing->is_cut = true;
      return absl::OkStatus();
    }
    ++listing->scanned;
    job.Clear();
    uint32_t runs = 0;
    ReadJobRow(rows, &job, &runs);
    contract::JobPlace place = contract::PlaceOf(job, query.order);
    const bool is_in_other_part = (skip == Walk::Skip::kThoseWithField && !place.is_absent) ||
                                  (skip == Walk::Skip::kThoseWithPriority && job.priority() != 0);
    // A page that ends here goes on after this job, in the part that is being read.
    if (is_in_other_part) {
      place.is_absent = skip == Walk::Skip::kThoseWithField;
      place.number = 0;
    }
    listing->last = std::move(place);
    if (is_in_other_part || !query.filter.Matches(job)) continue;
    if (absl::Status status = AddToPage(std::move(job), runs, listing); !status.ok()) return status;
  }
}

absl::Status Reader::AddToPage(v1::Job job, uint32_t runs, Listing* listing) {
  absl::Status status;
  if (listing->query.include_spec) status = ReadSpec(&job, listing->query.spec_mask.get());
  const bool keeps_run = listing->query.include_latest_run;
  if (status.ok()) status = ReadLatestRun(runs, &job, keeps_run);
  if (!status.ok()) return status;
  listing->bytes += job.ByteSizeLong();
  listing->page.jobs.push_back(std::move(job));
  return absl::OkStatus();
}

}  // namespace muster::store
