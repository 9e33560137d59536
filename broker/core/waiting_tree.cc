#include "broker/core/waiting_tree.h"

#include <utility>

namespace muster::core {
namespace {

template <typename Children>
std::optional<Turn> FirstOf(const Children& waiting) {
  if (waiting.empty()) return std::nullopt;
  return waiting.begin()->first;
}

// Lists `child`, which stands at `*listed`, at `turn`; without a turn it does not wait.
template <typename Children, typename Child>
void List(Child* child, std::optional<Turn> turn, std::optional<Turn>* listed, Children* waiting) {
  if (turn == *listed) return;
  if (*listed) waiting->erase(**listed);
  if (turn) waiting->emplace(*turn, child);
  *listed = turn;
}

void Relist(ProjectQueue* project) {
  List(project, FirstOf(project->waiting), &project->listed, &project->lane->waiting);
}

}  // namespace

void WaitingTree::Join(Group* group, ClusterSet fits) {
  if (group->project != nullptr) {
    if (group->project->lane->fits == fits) return;
    Leave(group);
  }
  std::unique_ptr<Lane>& lane = lanes_[fits];
  if (lane == nullptr) {
    lane = std::make_unique<Lane>();
    lane->fits = std::move(fits);
  }
  ProjectQueue& project = lane->projects[group->requirements.project];
  project.lane = lane.get();
  ++project.groups;
  group->project = &project;
  Refresh(group);
}

void WaitingTree::Leave(Group* group) {
  ProjectQueue* project = std::exchange(group->project, nullptr);
  List(group, std::nullopt, &group->listed, &project->waiting);
  Relist(project);
  if (--project->groups == 0) project->lane->projects.erase(group->requirements.project);
}

void WaitingTree::Refresh(Group* group) {
  std::optional<Turn> front;
  if (!group->line.empty()) front = group->line.front();
  List(group, front, &group->listed, &group->project->waiting);
  Relist(group->project);
}

void WaitingTree::DropLanesWithoutGroups() {
  std::erase_if(lanes_, [](const auto& entry) { return entry.second->projects.empty(); });
}

}  // namespace muster::core
