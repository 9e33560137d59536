// Owns the threads on which use cases read the store, and the places of calls that wait for them.
#ifndef MUSTER_BROKER_APP_READERS_H_
#define MUSTER_BROKER_APP_READERS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"

namespace muster::broker {

// Returns the error for a call that reads the store while too many others do.
absl::Status ReadersBusy();

// All methods may be called from any thread, and none blocks.
class Readers {
 public:
  using Task = std::function<void()>;

  virtual ~Readers() = default;

  // False: too many calls wait, or the threads have stopped; the task was not taken.
  virtual bool PostCall(Task task) = 0;

  // Takes one of the places of waiting calls, for a call whose task comes later and must not be
  // refused then. False: too many calls wait. Each place is given back by one of the two methods
  // below.
  virtual bool Reserve() = 0;
  // False: the threads have stopped; the task was not taken.
  virtual bool PostReserved(Task task) = 0;
  virtual void Unreserve() = 0;

  // Returns the error for a call that was not taken.
  virtual absl::Status Refusal() const { return ReadersBusy(); }
};

// Holds a place for the answer to a call that changes something. It is taken before the change, so
// that a change on disk is answered with OK, however many calls read the store by then. An unused
// place is given back.
class AnswerPlace {
 public:
  // Returns null if too many calls wait. Then nothing may be changed, see Refusal.
  static std::shared_ptr<AnswerPlace> Take(Readers* readers);
  ~AnswerPlace();
  AnswerPlace(const AnswerPlace&) = delete;
  AnswerPlace& operator=(const AnswerPlace&) = delete;

  // Calls `answer` once: with true on a thread that may read the store, or with false within this
  // call if those threads have stopped. Call it at most once, and not after GiveBack.
  void Use(std::function<void(bool may_read)> answer);
  // Gives the place back, because there is no such answer. Call it before an error is answered, so
  // that the client that hears of it can ask again.
  void GiveBack();

 private:
  explicit AnswerPlace(Readers* readers) : readers_(readers) {}

  Readers* readers_;  // null once it is used
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_READERS_H_
