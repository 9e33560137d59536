// The threads on which use cases read the store; and a place among the calls that wait for them.
#ifndef MUSTER_BROKER_APP_READERS_H_
#define MUSTER_BROKER_APP_READERS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"

namespace muster::broker {

// All methods may be called from any thread, and none blocks.
class Readers {
 public:
  using Task = std::function<void()>;

  virtual ~Readers() = default;

  // False: too many calls wait, or the threads have stopped; the task was not taken.
  virtual bool PostCall(Task task) = 0;

  // For a call whose task comes later, and must not be refused then: takes one of the places of
  // waiting calls. False: too many wait. Each place is given back by one of the other two.
  virtual bool Reserve() = 0;
  // False: the threads have stopped; the task was not taken.
  virtual bool PostReserved(Task task) = 0;
  virtual void Unreserve() = 0;
};

// A place for the answer of a call that changes something, taken before the change: what is on disk
// is answered with OK, however many calls read the store by then. Given back if it is not used.
class AnswerPlace {
 public:
  // Null: too many calls wait. Nothing may be changed then, see ReadersBusy.
  static std::shared_ptr<AnswerPlace> Take(Readers* readers);
  ~AnswerPlace();
  AnswerPlace(const AnswerPlace&) = delete;
  AnswerPlace& operator=(const AnswerPlace&) = delete;

  // Calls `answer` once: with true on a thread that may read the store, with false in this call if
  // those threads have stopped. At most one call, and not after GiveBack.
  void Use(std::function<void(bool may_read)> answer);
  // There will be no such answer. Before an error is answered, so that who hears it can ask again.
  void GiveBack();

 private:
  explicit AnswerPlace(Readers* readers) : readers_(readers) {}

  Readers* readers_;  // null: used
};

// What a call is told that reads the store while too many others do.
absl::Status ReadersBusy();

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_READERS_H_
