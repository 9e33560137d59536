// Decides which queued job goes where: the first job of the project whose turn it is
// (service_turn.h), to that one of the connected clusters that fit, take runs and have room for it
// where it is expected to start first (placement/estimate.h).
//
// If none has room, the job stays here, and so do those that need nearly the same: their queue
// is blocked, and is looked at again when something ends on a cluster of its lane (unblock.cc). A
// cluster without room still has a few places to wait at; these go to the first jobs in their
// order, whatever they need, so that the scheduler there can keep nodes free for a large one.
// For one that has waited long, room is kept (keep_room.cc).
#include <queue>
#include <utility>

#include "broker/core/impl.h"
#include "broker/core/run_machine.h"
#include "broker/core/service_turn.h"
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

// The projects of lanes that may have the next job, by their turns. A project may be here several
// times for a lane; the latest entry counts. Within a round a turn only gets later, but for groups
// that join, which make an entry.
struct Core::Impl::Contender {
  ServiceTurn turn;
  ProjectQueue* project;
  ProjectQueue::List* list;  // of the project: one for room, or one for a place to wait
  size_t from = 0;           // clusters of the lane before this one take no runs
  uint64_t entry = 0;        // see ProjectQueue::List
  bool operator>(const Contender& other) const { return other.turn < turn; }
};

bool Core::Impl::PlaceJobs(absl::Time now, Output* out) {
  Step step = Begin(now, out);
  waiting_.DropEmpty();
  RecountCapacity();
  DropForgotten();
  int64_t checks = options_.max_fit_checks_per_round;
  RefitSome(&checks);
  checks = options_.max_fit_checks_per_round;
  preempting_.Begin(options_.max_preemption_visits_per_round);
  KeepRoom(step);
  const bool has_unblocked = UnblockSome(now, &checks);

  std::priority_queue<Contender, std::vector<Contender>, std::greater<>> contenders;
  const auto contend = [&](ProjectQueue* project, ProjectQueue::List* list, size_t from) {
    if (list->empty() || Accounts::IsFull(*project->account)) return;
    if (FirstWithRoom(project->lane->fits, &from) == nullptr) return;
    list->entry = ++entries_;
    contenders.push({ServiceTurnOf(*project, *list), project, list, from, list->entry});
  };
  waiting_.ForEachLane([&](Lane* lane) {
    size_t from = 0;
    if (FirstWithRoom(lane->fits, &from) == nullptr) return;
    const bool has_place = HasPlaceToWait(lane->fits, now);
    for (auto& [name, project] : lane->projects) {
      contend(&project, &project.open, from);
      if (has_place && MayWait(*lane, project.blocked, now))
        contend(&project, &project.blocked, from);
    }
  });
  std::map<SessionId, std::vector<agent::v1::Assignment>> assignments;
  int assigned = ResendRuns(options_.max_assignments_per_round, step);
  checks = options_.max_fit_checks_per_round;
  placement::Choices choices(now);
  while (!contenders.empty() && assigned < options_.max_assignments_per_round && checks > 0) {
    const Contender next = contenders.top();
    contenders.pop();
    ProjectQueue* const project = next.project;
    ProjectQueue::List* const list = next.list;
    if (list->entry != next.entry || list->empty()) continue;
    size_t from = next.from;
    if (FirstWithRoom(project->lane->fits, &from) == nullptr) continue;
    Group* group = list->first_group();
    if (next.turn != ServiceTurnOf(*project, *list) || ParkIfOverQuota(group->queue)) {
      contend(project, list, from);
      continue;
    }
    const Turn turn = list->first_turn();
    const auto choice = choices.Best(*group, turn, project->lane->fits, &checks);
    const bool may_start = choice && (choice->estimate.has_room || choice->estimate.is_kept);
    // Those that were blocked before are looked at now and then, in PreemptForThoseWhoWait.
    if (!may_start && !group->queue->is_blocked && PreemptForNext(*group, turn, step)) {
      choices.Forget(*group);
      contend(project, list, from);
      continue;
    }
    if (!choice) {
      // Those that were blocked before have no place now either.
      if (group->queue->is_blocked) continue;
      waiting_.Block(group->queue);
      contend(project, list, from);
      continue;
    }
    if (Refits::IsStale(*group, *choice->cluster)) {
      Refit(group, &checks);
      choices.Forget(*group);
      // The group may be in another lane now, and the jobs behind this one move up.
      ProjectQueue* const now_in = group->queue->project;
      if (now_in != project) contend(now_in, &now_in->list_of(*group->queue), 0);
      contend(project, list, from);
      continue;
    }
    AssignNext(list->first_turn().job, *choice, step, &assignments);
    ++assigned;
    contend(project, list, from);
    // The queue has another first job, and is not blocked any more.
    if (list == &project->blocked) contend(project, &project->open, from);
  }
  for (auto& [session, batch] : assignments) {
    out->effects.push_back(SendAssignments{session, std::move(batch)});
  }
  Finish(step);
  // A cluster that the pass has just taken out of all lanes goes in the next round, after the lanes
  // that the pass has emptied.
  const bool is_done =
      refits_.is_done() && has_unblocked && leaving_.empty() && !dependencies_.has_more();
  return assigned == options_.max_assignments_per_round || checks <= 0 || !is_done;
}

bool Core::Impl::ParkIfOverQuota(UserQueue* queue) {
  const auto reached = accounts_.FindReached(*queue->account, queue->gpus);
  if (!reached) return false;
  Account* account = queue->account;
  if (reached->user.empty()) account = queue->account->project;
  waiting_.Park(queue, account);
  return true;
}

void Core::Impl::AssignNext(uint64_t id, const placement::Choices::Choice& choice, Step& step,
                            std::map<SessionId, std::vector<agent::v1::Assignment>>* assignments) {
  Cluster* const cluster = choice.cluster;
  Job& job = jobs_.at(id);
  const RunId run_id{id, job.runs() + 1u};
  v1::Transition transition;
  transition.set_run(run_id.number);
  transition.set_run_state(v1::RUN_STATE_ASSIGNED);
  *transition.mutable_evidence() = BrokerEvidence(contract::AssignedTo(cluster->name()), step.now);
  // As it was before this run took its room.
  auto estimate = placement::ToShow(choice.estimate, cluster->load, step.now);
  Apply(id, job, {contract::JobEvent::kAssign, cluster->index}, std::move(transition), step);
  NoteBesideKept(cluster, id, job, step.now);

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
