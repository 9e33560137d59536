#include "agents/slurm/look_pace.h"

namespace muster::slurm {

void LookPace::Looked(bool awaits, bool asked) {
  if (!awaits) {
    interval_ = absl::InfiniteDuration();
  } else if (asked) {
    interval_ = interval_ * 3 / 2;
  }
}

}  // namespace muster::slurm
