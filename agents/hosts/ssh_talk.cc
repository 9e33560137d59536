#include "agents/hosts/ssh_talk.h"

#include "sync/mutex.h"

namespace muster::hosts {

void TalkWords::Say(std::string_view bytes) {
  const MutexLock lock(mutex_);
  said_ += bytes;
}

void TalkWords::Close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  listener_ = {};
}

std::string TalkWords::TakeSaid() {
  const MutexLock lock(mutex_);
  return std::exchange(said_, {});
}

bool TalkWords::is_closed() const {
  const MutexLock lock(mutex_);
  return is_closed_;
}

void TalkWords::Hear(std::string_view bytes) {
  const MutexLock lock(mutex_);
  if (listener_.hear != nullptr) listener_.hear(bytes);
}

void TalkWords::End(const absl::Status& why) {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  if (listener_.ended != nullptr) listener_.ended(why);
  listener_ = {};
}

SshTalk::~SshTalk() {
  words_->Close();
  wake_();
}

void SshTalk::Say(std::string_view bytes) {
  words_->Say(bytes);
  wake_();
}

}  // namespace muster::hosts
