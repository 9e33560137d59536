#include "agents/core/observer.h"

#include <fmt/core.h>

#include <utility>

namespace muster::agents {

Observer::Observer(Backend* backend, absl::Duration patience, std::function<void(Message)> post)
    : backend_(*backend),
      patience_(patience),
      post_(std::move(post)),
      end_reader_(backend),
      results_(backend,
               [this](std::function<void()> task) { results_lane_.Post(std::move(task)); }),
      results_lane_(1),
      ends_(1),
      looks_(1) {}

absl::Time Observer::next() const {
  if (is_looking_) return absl::InfiniteFuture();
  return is_wanted_ ? absl::InfinitePast() : next_;
}

void Observer::LookIfDue(absl::Time now, const std::function<std::vector<RunHandle>()>& runs) {
  if (next() > now) return;
  is_wanted_ = false;
  next_ = now + backend_.ObserveInterval();
  std::vector<RunHandle> all = runs();
  if (all.empty()) return;
  is_looking_ = true;
  is_hang_told_ = false;
  began_ = now;
  looks_.Post([this, now, runs = std::move(all)] {
    Observed observed;
    observed.began = now;
    observed.outcome = backend_.Observe(runs);
    results_.Complete(runs, &observed.outcome);
    std::vector<EndReader::End> ends = end_reader_.TakeEnds(runs, &observed.outcome);
    observed.scheduler_calls = backend_.SchedulerCalls();
    post_(ObserveDone{std::move(observed)});
    if (!ends.empty()) ReadEnds(std::move(ends), now);
  });
}

// Runs beside the next looks: a file server that hangs holds up the ends alone.
void Observer::ReadEnds(std::vector<EndReader::End> ends, absl::Time began) {
  ends_.Post([this, began, ends = std::move(ends)] {
    post_(EndsDone{{.observations = end_reader_.Read(ends), .began = began}});
  });
}

void Observer::Ended(absl::Time now) {
  is_looking_ = false;
  next_ = now + backend_.ObserveInterval();
}

std::string Observer::TakeHang(absl::Time now) {
  if (!is_looking_ || is_hang_told_ || now - began_ < patience_) return {};
  is_hang_told_ = true;
  return fmt::format(
      "a look at the runs has not ended after {}: the scheduler or a file server may hang",
      absl::FormatDuration(patience_));
}

std::optional<std::string> Observer::TakeEndsHang() {
  const bool hangs = end_reader_.reading_for() >= patience_;
  if (hangs == is_ends_hang_told_) return std::nullopt;
  is_ends_hang_told_ = hangs;
  if (!hangs) return "";
  return fmt::format(
      "reading what ended runs have left has not ended after {}: a file server may hang; only "
      "their ends wait for it",
      absl::FormatDuration(patience_));
}

}  // namespace muster::agents
