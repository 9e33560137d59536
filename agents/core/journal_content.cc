#include "agents/core/journal_content.h"

#include <algorithm>

namespace muster::agents {
namespace {

void Apply(const PutRun& put, JournalContent* content) {
  for (JournalRun& run : content->runs) {
    if (run.order == put.run.order) {
      run = put.run;
      return;
    }
  }
  content->runs.push_back(put.run);
}

void Apply(const DeleteRun& gone, JournalContent* content) {
  std::erase_if(content->runs,
                [&](const JournalRun& run) { return run.assignment->run_key() == gone.run_key; });
}

void Apply(const PutEvent& put, JournalContent* content) { content->events.push_back(put.event); }

void Apply(const DeleteEventsUpTo& gone, JournalContent* content) {
  std::erase_if(content->events, [&](const agent::v1::RunEvent& event) {
    return event.sequence() <= gone.sequence;
  });
}

void Apply(const PutMeta& put, JournalContent* content) { content->meta = put.meta; }

}  // namespace

void ApplyToContent(const std::vector<JournalChange>& changes, JournalContent* content) {
  for (const JournalChange& change : changes) {
    std::visit([&](const auto& what) { Apply(what, content); }, change);
  }
  std::sort(content->runs.begin(), content->runs.end(),
            [](const JournalRun& a, const JournalRun& b) { return a.order < b.order; });
}

}  // namespace muster::agents
