#include "clients/cli/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "sync/mutex.h"

namespace muster::cli {
namespace {

// A shell gives this code to a process that SIGINT ended.
constexpr int kInterrupted = 130;

}  // namespace

struct OnInterrupt::State {
  Mutex mutex;
  std::string remark ABSL_GUARDED_BY(mutex);
};

OnInterrupt::OnInterrupt(Terminal* terminal, std::string remark)
    : state_(std::make_shared<State>()) {
  state_->remark = std::move(remark);
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  // Threads inherit the mask, so that only the one below hears it.
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  std::thread([terminal, interrupt, state = state_] {
    int signal = 0;
    sigwait(&interrupt, &signal);
    const MutexLock lock(state->mutex);
    terminal->LastNote(state->remark);
    _exit(kInterrupted);
  }).detach();
}

void OnInterrupt::SetRemark(std::string remark) {
  const MutexLock lock(state_->mutex);
  state_->remark = std::move(remark);
}

}  // namespace muster::cli
