// The decisions of the core that are not committed yet. All of them make one commit, and are
// carried out after it, in order. Pure; its owner guards it.
#ifndef MUSTER_BROKER_ENGINE_WAITING_OUTPUT_H_
#define MUSTER_BROKER_ENGINE_WAITING_OUTPUT_H_

#include <cstddef>

#include "broker/core/core.h"

namespace muster::broker {

inline bool IsEmpty(const core::Output& output) {
  return output.changes.empty() && output.effects.empty() && output.clusters.empty() &&
         output.uses.empty();
}

class WaitingOutput {
 public:
  void Add(core::Output output);
  bool empty() const { return IsEmpty(output_); }
  // Number of rows to write, and of rows that may have to be read before the output is carried out.
  size_t rows() const { return rows_; }
  // Returns all of it; nothing waits afterwards.
  core::Output Take();

 private:
  core::Output output_;
  size_t rows_ = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_WAITING_OUTPUT_H_
