// Decides which queued job goes where: of the connected clusters that fit and take runs, the one
// where the job is expected to start first gets it (placement/estimate.h).
#include <queue>
#include <utility>

#include "broker/core/impl.h"
#include "broker/core/run_machine.h"
#include "contract/run_key.h"
#include "contract/sentences.h"

namespace muster::core {

Cluster* Core::Impl::FirstWithRoom(const ClusterSet& fits, size_t* from) {
  // Room only shrinks within a round, so what was passed over once stays so.
  for (; *from < fits.size(); ++*from) {
    if (fits[*from]->TakesRuns()) return fits[*from];
  }
  return nullptr;
}

// The lanes that may have the next job, by the turn of its first job. A lane may be here several
// times; the entry with the turn of its present first job counts.
struct Core::Impl::Contender {
  Turn turn;
  Lane* lane;
  size_t from = 0;  // clusters of the lane before this one have no room
  bool operator>(const Contender& other) const { return turn > other.turn; }
};

bool Core::Impl::PlaceJobs(absl::Time now, Output* out) {
  Step step = Begin(now, out);
  waiting_.DropLanesWithoutGroups();
  DropForgotten();
  int64_t checks = options_.max_fit_checks_per_round;
  RefitSome(&checks);

  std::priority_queue<Contender, std::vector<Contender>, std::greater<>> contenders;
  const auto contend = [&](Lane* lane, size_t from) {
    if (!lane->empty() && FirstWithRoom(lane->fits, &from) != nullptr) {
      contenders.push({lane->first_turn(), lane, from});
    }
  };
  waiting_.ForEachLane([&](Lane* lane) { contend(lane, 0); });
  std::map<SessionId, std::vector<agent::v1::Assignment>> assignments;
  int assigned = ResendRuns(options_.max_assignments_per_round, step);
  checks = options_.max_fit_checks_per_round;
  placement::Choices choices(now);
  while (!contenders.empty() && assigned < options_.max_assignments_per_round && checks > 0) {
    const Contender next = contenders.top();
    contenders.pop();
    if (next.lane->empty() || next.lane->first_turn() != next.turn) continue;
    size_t from = next.from;
    if (FirstWithRoom(next.lane->fits, &from) == nullptr) continue;
    Group* group = next.lane->first_group();
    const auto choice = choices.Best(*group, next.lane->fits, &checks);
    if (!choice) continue;
    if (Refits::IsStale(*group, *choice->cluster)) {
      Refit(group, &checks);
      choices.Forget(*group);
      // The group may be in another lane now, and the jobs behind this one move up.
      if (group->project->lane != next.lane) contend(group->project->lane, 0);
      contend(next.lane, from);
      continue;
    }
    AssignNext(next.lane, *choice, step, &assignments);
    ++assigned;
    contend(next.lane, from);
  }
  for (auto& [session, batch] : assignments) {
    out->effects.push_back(SendAssignments{session, std::move(batch)});
  }
  Finish(step);
  // A cluster that the pass has just taken out of all lanes goes in the next round, after the lanes
  // that the pass has emptied.
  const bool is_done = refits_.is_done() && leaving_.empty();
  return assigned == options_.max_assignments_per_round || checks <= 0 || !is_done;
}

void Core::Impl::AssignNext(Lane* lane, const placement::Choices::Choice& choice, Step& step,
                            std::map<SessionId, std::vector<agent::v1::Assignment>>* assignments) {
  Cluster* const cluster = choice.cluster;
  const uint64_t id = lane->first_turn().job;
  Job& job = jobs_.at(id);
  const RunId run_id{id, job.runs() + 1u};
  v1::Transition transition;
  transition.set_run(run_id.number);
  transition.set_run_state(v1::RUN_STATE_ASSIGNED);
  *transition.mutable_evidence() = BrokerEvidence(contract::AssignedTo(cluster->name()), step.now);
  // As it was before this run took its room.
  auto estimate = placement::ToShow(choice.estimate, cluster->load, step.now);
  Apply(id, job, {contract::JobEvent::kAssign, cluster->index}, std::move(transition), step);

  const std::string key = contract::RunKey{instance_, id, run_id.number}.ToString();
  agent::v1::Assignment assignment;
  assignment.set_run_key(key);
  assignment.set_job_id(id);
  assignment.set_run(run_id.number);
  (*assignments)[*cluster->session].push_back(std::move(assignment));
  step.runs.emplace_back(cluster, run_id);
  auto run = std::make_unique<v1::Run>(AssignedRun(run_id.number, key, cluster->name(), step.now));
  if (estimate) *run->mutable_start_estimate() = *std::move(estimate);
  cluster->runs.emplace(run_id, std::move(run));
  cluster->places.emplace(run_id, choice.estimate.places);
}

}  // namespace muster::core
