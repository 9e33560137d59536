#include "broker/core/waiting_tree.h"

#include <algorithm>
#include <utility>

namespace muster::core {
namespace {

// Lists `child`, which stands at `*listed`, at `turn`; without a turn it does not wait.
template <typename Place, typename Children, typename Child>
void List(Child* child, const std::optional<Place>& turn, std::optional<Place>* listed,
          Children* waiting) {
  if (turn == *listed) return;
  if (*listed) waiting->erase(**listed);
  if (turn) waiting->emplace(*turn, child);
  *listed = turn;
}

}  // namespace

void WaitingTree::Relist(UserQueue* queue) {
  std::optional<UserTurn> turn;
  if (!queue->waiting.empty() && queue->parked_by == nullptr) {
    const Turn first = queue->first_turn();
    turn = UserTurn{first.priority, queue->account->score, first.job};
  }
  const bool has_another_first =
      queue->listed && (queue->waiting.empty() || queue->first_turn().job != queue->listed->job);
  if (queue->is_blocked && has_another_first) return Unblock(queue);
  List(queue, turn, &queue->listed, &queue->project->list_of(*queue).waiting);
}

void WaitingTree::Join(Group* group, ClusterSet fits) {
  UserAccount* account = nullptr;
  if (group->queue != nullptr) {
    if (group->lane()->fits == fits) return;
    account = group->queue->account;
    Leave(group);
  } else {
    account = accounts_.Open(group->requirements.project, group->user);
  }
  std::unique_ptr<Lane>& lane = lanes_[fits];
  if (lane == nullptr) {
    lane = std::make_unique<Lane>();
    lane->fits = std::move(fits);
  }
  ProjectQueue& project = lane->projects[group->requirements.project];
  project.lane = lane.get();
  project.account = account->project;
  const auto [at, is_new] =
      project.queues.try_emplace({account->user, placement::RoomClassOf(group->requirements)});
  UserQueue& queue = at->second;
  if (is_new) {
    queue.project = &project;
    queue.account = account;
    queue.gpus = GpuDemandOf(group->requirements);
    queue.need = &at->first.second;
    account->queues.push_back(&queue);
  }
  ++queue.groups;
  group->queue = &queue;
  Refresh(group);
}

void WaitingTree::Leave(Group* group) {
  UserQueue* const queue = std::exchange(group->queue, nullptr);
  List(group, std::optional<Turn>(), &group->listed, &queue->waiting);
  Relist(queue);
  if (--queue->groups == 0) emptied_.push_back(queue);
}

void WaitingTree::Refresh(Group* group) {
  std::optional<Turn> front;
  if (!group->line.empty()) front = group->line.front();
  List(group, front, &group->listed, &group->queue->waiting);
  Relist(group->queue);
}

void WaitingTree::Block(UserQueue* queue) {
  if (queue->is_blocked) return;
  List(queue, std::optional<UserTurn>(), &queue->listed, &queue->project->open.waiting);
  std::vector<UserQueue*>& alike = blocked_[*queue->need];
  queue->is_blocked = true;
  queue->blocked_at = static_cast<uint32_t>(alike.size());
  alike.push_back(queue);
  Relist(queue);
}

void WaitingTree::Unblock(UserQueue* queue) {
  if (!queue->is_blocked) return;
  List(queue, std::optional<UserTurn>(), &queue->listed, &queue->project->blocked.waiting);
  const auto at = blocked_.find(*queue->need);
  std::vector<UserQueue*>& alike = at->second;
  alike[queue->blocked_at] = alike.back();
  alike[queue->blocked_at]->blocked_at = queue->blocked_at;
  alike.pop_back();
  if (alike.empty()) blocked_.erase(at);
  queue->is_blocked = false;
  Relist(queue);
}

void WaitingTree::Relist(const UserAccount& account) {
  for (UserQueue* queue : account.queues) Relist(queue);
}

void WaitingTree::RelistAll() {
  accounts_.ForEachUserAccount([this](UserAccount* account) { Relist(*account); });
}

void WaitingTree::Park(UserQueue* queue, Account* account) {
  Unblock(queue);
  queue->parked_by = account;
  account->parked.push_back(queue);
  Relist(queue);
}

void WaitingTree::Unpark(Account* account) {
  std::erase_if(account->parked, [this](UserQueue* queue) {
    if (accounts_.FindReached(*queue->account, queue->gpus)) return false;
    queue->parked_by = nullptr;
    Relist(queue);
    return true;
  });
}

void WaitingTree::UnparkAll() {
  accounts_.ForEachUserAccount([this](UserAccount* account) {
    for (UserQueue* queue : account->queues) {
      if (queue->parked_by == nullptr) continue;
      std::erase(queue->parked_by->parked, queue);
      queue->parked_by = nullptr;
      Relist(queue);
    }
  });
}

void WaitingTree::Drop(UserQueue* queue) {
  if (queue->parked_by != nullptr) std::erase(queue->parked_by->parked, queue);
  Unblock(queue);
  std::erase(queue->account->queues, queue);
  ProjectQueue* const project = queue->project;
  project->queues.erase(ProjectQueue::Key(queue->account->user, *queue->need));
  if (!project->queues.empty()) return;
  Lane* const lane = project->lane;
  lane->projects.erase(project->account->name);
  if (lane->projects.empty()) lanes_.erase(ClusterSet(lane->fits));
}

void WaitingTree::DropEmpty() {
  // A queue may be named twice.
  std::sort(emptied_.begin(), emptied_.end());
  emptied_.erase(std::unique(emptied_.begin(), emptied_.end()), emptied_.end());
  for (UserQueue* queue : std::exchange(emptied_, {})) {
    if (queue->groups == 0) Drop(queue);
  }
}

}  // namespace muster::core
