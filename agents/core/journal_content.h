// Applies journal changes to a journal's content: the in-memory twin of the journal on disk.
#ifndef MUSTER_AGENTS_CORE_JOURNAL_CONTENT_H_
#define MUSTER_AGENTS_CORE_JOURNAL_CONTENT_H_

#include <vector>

#include "agents/core/agent_core.h"

namespace muster::agents {

// Applies changes in order. A fresh content needs a journal_id before an AgentCore is made of it.
void ApplyToContent(const std::vector<JournalChange>& changes, JournalContent* content);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_JOURNAL_CONTENT_H_
