// Signals to the ranks of runs, at once and beside everything else.
#include <chrono>
#include <future>
#include <utility>

#include "agents/machines/remote/remote_scheduler.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// The thread that owns the runs writes a few small files between two messages.
constexpr std::chrono::seconds kOwnerPatience(10);

}  // namespace

absl::Status RemoteScheduler::Signal(const std::string& run_key, const ProcessSignal& signal) {
  auto asked = std::make_shared<std::promise<std::vector<SignalPlace>>>();
  std::future<std::vector<SignalPlace>> answer = asked->get_future();
  Post([this, run_key, first_only = signal.first_only, asked] {
    asked->set_value(SignalPlacesOf(run_key, first_only));
  });
  if (answer.wait_for(kOwnerPatience) != std::future_status::ready)
    return absl::UnavailableError("the agent is busy; send the signal again");
  const std::vector<SignalPlace> places = answer.get();
  if (places.empty())
    return absl::FailedPreconditionError("no command of the run has started, or all have ended");
  absl::Status first_error;
  for (const SignalPlace& place : places) {
    const absl::Status status = place.link == nullptr
                                    ? absl::UnavailableError("it is not in the file of hosts")
                                    : place.link->Signal(place.directory, signal);
    if (status.ok()) continue;
    first_error.Update(absl::Status(
        status.code(), ToAbsl(fmt::format("host {}: {}", place.host, MessageOf(status)))));
  }
  return first_error;
}

std::vector<RemoteScheduler::SignalPlace> RemoteScheduler::SignalPlacesOf(
    const std::string& run_key, bool first_only) const {
  std::vector<SignalPlace> places;
  const auto found = active_.find(run_key);
  if (found == active_.end()) return places;
  for (const Rank& rank : found->second.ranks) {
    if (!rank.HasBegun() || rank.IsOver()) continue;
    const std::optional<size_t> host = FindHost(rank.host);
    places.push_back({.host = rank.host,
                      .link = host.has_value() ? hosts_[*host].link.get() : nullptr,
                      .directory = rank.directory});
    if (first_only) break;
  }
  return places;
}

}  // namespace muster::machines
