// What the core has decided and the store has not committed yet. All of it is one commit, and is
// carried out after that, in order. Pure; whoever has it guards it.
#ifndef MUSTER_BROKER_ENGINE_WAITING_OUTPUT_H_
#define MUSTER_BROKER_ENGINE_WAITING_OUTPUT_H_

#include <cstddef>

#include "broker/core/core.h"

namespace muster::broker {

inline bool IsEmpty(const core::Output& output) {
  return output.changes.empty() && output.effects.empty() && output.clusters.empty();
}

class WaitingOutput {
 public:
  void Add(core::Output output);
  bool empty() const { return IsEmpty(output_); }
  // Rows to write, and rows that may have to be read before it is carried out.
  size_t rows() const { return rows_; }
  // All of it; nothing waits afterwards.
  core::Output Take();

 private:
  core::Output output_;
  size_t rows_ = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_WAITING_OUTPUT_H_
