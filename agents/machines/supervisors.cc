#include "agents/machines/supervisors.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "agents/hosts/pidfd.h"
#include "agents/hosts/spawn.h"
#include "agents/machines/container.h"
#include "agents/machines/process_search.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

constexpr uint64_t kWakeupId = 0;
constexpr uint64_t kInotifyId = 1;
constexpr uint64_t kFirstSupervisorId = 2;
// At most this many events are taken at once; more come with the next Wait.
constexpr int kMaxEvents = 256;
// The longest time that fits into the argument of epoll_wait; an idle scheduler that looks up once
// an hour costs nothing.
constexpr absl::Duration kLongestWait = absl::Hours(1);

absl::Status LastError(std::string_view what) {
  return absl::ErrnoToStatus(errno, fmt::format("cannot watch supervisors: {}", what));
}

absl::Status AddToEpoll(const hosts::Fd& epoll, int fd, uint64_t id) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) return LastError("epoll_ctl");
  return absl::OkStatus();
}

}  // namespace

std::string DefaultSupervisorPath() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path() / "muster-supervisor";
}

Supervisors::Supervisors(std::string program)
    : program_(std::move(program)), next_id_(kFirstSupervisorId) {}

absl::StatusOr<std::unique_ptr<Supervisors>> Supervisors::Create(std::string program) {
  std::unique_ptr<Supervisors> made(new Supervisors(std::move(program)));
  made->epoll_ = hosts::Fd(epoll_create1(EPOLL_CLOEXEC));
  made->wakeup_ = hosts::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  made->inotify_ = hosts::Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  made->null_ = hosts::Fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const hosts::Fd* fd : {&made->epoll_, &made->wakeup_, &made->inotify_, &made->null_}) {
    if (!fd->valid()) return LastError("epoll, eventfd, inotify or /dev/null");
  }
  if (absl::Status s = AddToEpoll(made->epoll_, made->wakeup_.get(), kWakeupId); !s.ok()) return s;
  if (absl::Status s = AddToEpoll(made->epoll_, made->inotify_.get(), kInotifyId); !s.ok())
    return s;
  return made;
}

absl::StatusOr<pid_t> Supervisors::Start(const std::string& run_key, const std::string& directory,
                                         const std::string& devices,
                                         const std::vector<std::string>& variables) {
  std::vector<std::string> argv = {program_, directory, devices};
  argv.insert(argv.end(), variables.begin(), variables.end());
  absl::StatusOr<hosts::Child> child = hosts::Spawn(
      {.argv = std::move(argv),
       .env = ToolVariables(),
       .working_directory = "/",
       .stdin_fd = null_.get(),
       .stdout_fd = null_.get(),
       .stderr_fd = null_.get(),
       .new_session = true,
       .blocked_signals = {std::begin(kSupervisorSignals), std::end(kSupervisorSignals)}});
  if (!child.ok()) return child.status();
  const pid_t pid = child->pid;
  if (absl::Status s = Watch(run_key, directory,
                             {.pid = pid, .is_child = true, .pidfd = std::move(child->pidfd)});
      !s.ok()) {
    return s;
  }
  return pid;
}

absl::Status Supervisors::Adopt(const std::string& run_key, const std::string& directory,
                                const ProcessId& process) {
  // The handle comes first, then the look, so that what the look sees is what the handle holds.
  hosts::Fd pidfd(process.pid > 0 ? hosts::PidfdOpen(process.pid) : -1);
  if (!pidfd.valid() || Identify(process.pid) != process) {
    return absl::NotFoundError(fmt::format("process {} is gone", process.pid));
  }
  return Watch(run_key, directory,
               {.pid = process.pid, .is_child = false, .pidfd = std::move(pidfd)});
}

absl::Status Supervisors::Watch(const std::string& run_key, const std::string& directory,
                                Entry entry) {
  entry.id = next_id_++;
  if (absl::Status s = AddToEpoll(epoll_, entry.pidfd.get(), entry.id); !s.ok()) return s;
  // A run without a watch (the user's inotify watches are used up) is seen to run a little late, no
  // more.
  entry.watch = inotify_add_watch(inotify_.get(), directory.c_str(), IN_MOVED_TO | IN_ONLYDIR);
  ids_[entry.id] = run_key;
  if (entry.watch >= 0) watches_[entry.watch] = run_key;
  entries_.insert_or_assign(run_key, std::move(entry));
  return absl::OkStatus();
}

void Supervisors::Terminate(const std::string& run_key) {
  const auto found = entries_.find(run_key);
  if (found != entries_.end()) hosts::PidfdSendSignal(found->second.pidfd.get(), SIGTERM);
}

std::optional<int> Supervisors::Forget(const std::string& run_key) {
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  int status = 0;
  const bool reaped = entry.is_child && waitpid(entry.pid, &status, WNOHANG) == entry.pid;
  ids_.erase(entry.id);
  if (entry.watch >= 0) {
    watches_.erase(entry.watch);
    inotify_rm_watch(inotify_.get(), entry.watch);
  }
  entries_.erase(found);
  return reaped ? std::optional<int>(status) : std::nullopt;
}

std::vector<SupervisorEvent> Supervisors::Wait(absl::Duration patience) {
  std::array<epoll_event, kMaxEvents> ready;
  const int ms = static_cast<int>(absl::ToInt64Milliseconds(std::min(patience, kLongestWait))) + 1;
  const int count = epoll_wait(epoll_.get(), ready.data(), kMaxEvents, ms);
  std::vector<SupervisorEvent> events;
  for (int i = 0; i < count; ++i) {
    const uint64_t id = ready[static_cast<size_t>(i)].data.u64;
    if (id == kWakeupId) {
      eventfd_t value = 0;
      eventfd_read(wakeup_.get(), &value);
      events.push_back({.kind = SupervisorEvent::Kind::kPosted});
    } else if (id == kInotifyId) {
      ReadRecordEvents(&events);
    } else if (const auto found = ids_.find(id); found != ids_.end()) {
      events.push_back({.kind = SupervisorEvent::Kind::kEnded, .run_key = found->second});
    }
  }
  return events;
}

void Supervisors::ReadRecordEvents(std::vector<SupervisorEvent>* events) {
  alignas(inotify_event) std::array<char, 64 << 10> buffer;
  const ssize_t size = read(inotify_.get(), buffer.data(), buffer.size());
  for (ssize_t at = 0; at < size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    const auto found = watches_.find(event->wd);
    if (found == watches_.end()) continue;
    events->push_back({.kind = SupervisorEvent::Kind::kRecord,
                       .run_key = found->second,
                       .record = event->len > 0 ? event->name : ""});
  }
}

void Supervisors::Post() { eventfd_write(wakeup_.get(), 1); }

void KillStragglers(std::string_view run_key) {
  KillProcessesWith(fmt::format("MUSTER_RUN_KEY={}", run_key));
}

}  // namespace muster::machines
