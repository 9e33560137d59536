#include "broker/engine/waiting_output.h"

#include <iterator>
#include <utility>
#include <vector>

namespace muster::broker {
namespace {

template <typename T>
void MoveAppend(std::vector<T>& to, std::vector<T>&& from) {
  if (to.empty()) {
    to = std::move(from);
  } else {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
}

size_t RowsOf(const core::Output& output) {
  size_t rows = output.changes.size();
  for (const core::Effect& effect : output.effects) {
    if (const auto* send = std::get_if<core::SendAssignments>(&effect)) {
      rows += send->assignments.size();
    }
  }
  return rows;
}

}  // namespace

void WaitingOutput::Add(core::Output output) {
  rows_ += RowsOf(output);
  MoveAppend(output_.changes, std::move(output.changes));
  MoveAppend(output_.effects, std::move(output.effects));
  MoveAppend(output_.clusters, std::move(output.clusters));
  MoveAppend(output_.uses, std::move(output.uses));
}

core::Output WaitingOutput::Take() {
  rows_ = 0;
  return std::exchange(output_, {});
}

}  // namespace muster::broker
