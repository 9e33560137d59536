#include "broker/app/readers.h"

#include <utility>

#include "contract/errors.h"

namespace muster::broker {

std::shared_ptr<AnswerPlace> AnswerPlace::Take(Readers* readers) {
  if (!readers->Reserve()) return nullptr;
  return std::shared_ptr<AnswerPlace>(new AnswerPlace(readers));
}

AnswerPlace::~AnswerPlace() { GiveBack(); }

void AnswerPlace::GiveBack() {
  if (Readers* const readers = std::exchange(readers_, nullptr)) readers->Unreserve();
}

void AnswerPlace::Use(std::function<void(bool may_read)> answer) {
  // The place is taken until its task begins; without threads nothing waits for places.
  Readers* const readers = std::exchange(readers_, nullptr);
  if (!readers->PostReserved([answer] { answer(true); })) answer(false);
}

absl::Status ReadersBusy() {
  return contract::RetryableError(absl::StatusCode::kResourceExhausted, "READERS_BUSY",
                                  "too many calls that read the store wait already; try again",
                                  absl::Milliseconds(200));
}

}  // namespace muster::broker
