#include "broker/app/answer_room.h"

#include <algorithm>
#include <utility>

namespace muster::broker {
namespace {

// The number and the length of a field that holds a message.
constexpr size_t kFrameBytes = 8;

}  // namespace

AnswerRoom::AnswerRoom(const std::vector<v1::Job*>& jobs) : left_(kMaxAnswerBytes) {
  for (const v1::Job* job : jobs) left_ -= std::min(left_, job->ByteSizeLong() + kFrameBytes);
}

void AnswerRoom::Put(v1::StateReason reason, v1::Job* job) {
  const size_t before = job->state_reason().ByteSizeLong();
  const size_t after = reason.ByteSizeLong() + kFrameBytes;
  const size_t grows = after > before ? after - before : 0;
  if (grows > left_) return;
  left_ -= grows;
  *job->mutable_state_reason() = std::move(reason);
}

}  // namespace muster::broker
