// Fetches files from the broker, over a connection of its own, so that megabytes delay no cancel.
#ifndef MUSTER_AGENTS_FILES_BROKER_FILES_H_
#define MUSTER_AGENTS_FILES_BROKER_FILES_H_

#include <memory>
#include <string>

#include "agents/core/identity.h"
#include "agents/files/file_source.h"

namespace muster::uploads {

// Connects at the first read.
std::unique_ptr<FileSource> MakeBrokerFiles(agents::BrokerEnd broker);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_BROKER_FILES_H_
