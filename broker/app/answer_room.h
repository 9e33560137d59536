// Bounds what computed reasons may add to an answer with many jobs: the store bounds what it gives,
// and the reasons come on top of that.
#ifndef MUSTER_BROKER_APP_ANSWER_ROOM_H_
#define MUSTER_BROKER_APP_ANSWER_ROOM_H_

#include <cstddef>
#include <limits>
#include <vector>

#include "muster/v1/job.pb.h"

namespace muster::broker {

// gRPC's clients take messages of up to 4 MiB by default.
inline constexpr size_t kMaxAnswerBytes = (4 << 20) - (64 << 10);

class AnswerRoom {
 public:
  // The room is enough for one job: its answer is small whatever it has.
  AnswerRoom() = default;
  // Takes the room for an answer with these jobs.
  explicit AnswerRoom(const std::vector<v1::Job*>& jobs);

  // Gives the job the reason in place of the one that it has, or leaves it as it is if there is no
  // room.
  void Put(v1::StateReason reason, v1::Job* job);

 private:
  size_t left_ = std::numeric_limits<size_t>::max();
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_ANSWER_ROOM_H_
